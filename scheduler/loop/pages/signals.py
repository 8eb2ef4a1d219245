"""What /signals asks: signals, rules and single nodes as they are now, returned in slices.

The deciding thread cuts its columns to the rows that are asked for and encodes them; words and JSON are made by the
process that serves the page.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from scheduler.cluster.cache import Cache
from scheduler.loop.pages.query import ListingQuery, PageContext
from scheduler.loop.ports import Clock
from scheduler.model.arrays import FloatArray
from scheduler.model.rules import Mode, Signal
from scheduler.model.signals import Freshness
from scheduler.model.snapshot import Snapshot
from scheduler.model.views import NodeView
from scheduler.rules.compiled import compiled_rules
from scheduler.rules.compiled_rule import CompiledRule
from scheduler.rules.pending_column import amount_in_unit
from scheduler.rules.reading import Reading
from scheduler.rules.shown import Sort, Wanted
from scheduler.signals.columns.store import SignalStore

log = logging.getLogger(__name__)

_SLICE_S: Final = 0.0005
"""How long a slice is worked on, the figures under way apart: those of one signal or rule are 0.1 to 0.3 ms."""

_MAX_LEARNED: Final = 50


class SignalsQuery(ListingQuery, frozen=True):
    """All signals, and of one or of all the first `limit` nodes in this order; with a node that node alone."""

    signal: str = ""
    node: str = ""
    sort: Sort = Sort.VALUE
    limit: int = 0

    def slices(self, context: PageContext) -> Iterator[bytes]:
        return iter(SignalListing(context.cache, context.signals, context.clock, self).slice, b"")


class SignalFigures(msgspec.Struct, frozen=True, array_like=True, tag="signal"):
    """One signal as a whole.

    key
        What one series stands for, as files write it; `label` is shown as the label itself.
    spacing_s
        How far apart its samples come, 0 where that is not known.
    age_s
        Infinite before the first answer.
    n_nodes, n_covered
        All nodes, and those with a usable sample; of a signal that depends on the Pod those that any Pod may read.
    """

    name: str
    asks: str
    key: str
    unit: str
    server: str
    is_built_in: bool
    interval_s: float
    spacing_s: float
    fresh_s: float
    max_age_s: float
    depends_on_pod: bool
    state: Freshness
    age_s: float
    is_suspect: bool
    n_nodes: int
    n_covered: int


class RuleFigures(msgspec.Struct, frozen=True, array_like=True, tag="rule"):
    """One rule as a whole; `n_refused` is -1 where that depends on the Pod, `mode` enforce, canary or shadow."""

    name: str
    signal: str
    mode: str
    weight: float
    has_filter: bool
    has_score: bool
    is_valve_open: bool
    n_refused: int


class NodeFigures(msgspec.Struct, frozen=True, array_like=True, tag="nodes"):
    """Some nodes of one signal, in order; float64 each, NaN: no usable sample, or no pending load counted.

    `keys` are the values of the node label that joins signal and nodes, workloads, or pairs of domains; empty where the
    names say it all. Of cards a node has one entry for each.
    """

    signal: str
    names: list[str]
    keys: list[str]
    values: bytes
    ages_s: bytes
    inflight: bytes


class VerdictFigures(msgspec.Struct, frozen=True, array_like=True, tag="verdicts"):
    """One rule over the nodes of the NodeFigures before it: Verdict as uint8, score as float64, empty without one."""

    rule: str
    verdicts: bytes
    scores: bytes


class LearnedFigures(msgspec.Struct, frozen=True, array_like=True, tag="learned"):
    """What Pods of one workload were seen to add to a signal, each: median and quartiles over `n` observations.

    In cores for cpu, whole units of another `resource`, or in the signal's unit where that is empty.
    """

    signal: str
    namespace: str
    workload: str
    resource: str
    n: int
    median: float
    low: float
    high: float


class ListingFault(msgspec.Struct, frozen=True, array_like=True, tag="fault"):
    """The listing ends here; the log says more."""

    text: str


Figures = SignalFigures | RuleFigures | LearnedFigures | NodeFigures | VerdictFigures | ListingFault


@dataclass(frozen=True, slots=True)
class _Now:
    """The world at one moment of a listing; void once a message has been applied."""

    snapshot: Snapshot
    store: SignalStore

    @property
    def nodes(self) -> NodeView:
        return self.snapshot.nodes


class SignalListing:
    """The figures that one query asks for, each as it is when its slice is made."""

    def __init__(self, cache: Cache, store: SignalStore, clock: Clock, query: SignalsQuery) -> None:
        self._cache = cache
        self._store = store
        self._clock = clock
        self._query = query
        self._encoder = msgspec.msgpack.Encoder()
        self._now = self._look()
        self._figures = self._list()

    def slice(self) -> bytes:
        """Return the next figures as a msgpack array, nothing after the last."""
        began_s = self._clock()
        found: list[Figures] = []
        try:
            self._now = self._look()
            for figures in self._figures:
                found.append(figures)
                if self._clock() - began_s >= _SLICE_S:
                    break
        except Exception as error:  # a fault of ours on a page must not end the process
            log.exception("signals cannot be listed")
            found.append(ListingFault(f"{type(error).__name__}: {error}"))
        return self._encoder.encode(found) if found else b""

    def _look(self) -> _Now:
        now_s = self._clock()
        table = self._store.freeze(NodeView(self._cache.state.nodes), now_s)
        return _Now(self._cache.snapshot(table, now_s), self._store)

    def _list(self) -> Iterator[Figures]:
        # The rule set may be swapped between two slices: what is listed is the one that was in force at the start.
        query, signals = self._query, self._now.snapshot.signals.rules.signals
        compiled = compiled_rules(self._now.snapshot)
        for name, reading in compiled.signals.items():
            yield _signal_figures(signals[name], reading, self._now)
        for rule in compiled.rules:
            yield _rule_figures(rule, self._now)
        for signal in signals.values():
            yield from _learned_figures(signal, self._now.store)
        for name, reading in compiled.signals.items():
            if query.signal in ("", name) and (query.node or query.limit):
                over_it = [one for one in compiled.rules if one.rule.signal == name]
                yield from self._samples_of(name, reading, over_it)

    def _samples_of(self, signal: str, reading: Reading, rules: Sequence[CompiledRule]) -> Iterator[Figures]:
        query, layout = self._query, self._now.nodes.layout
        shown = reading.shown(self._now.snapshot, Wanted(query.node, query.sort, query.limit))
        if shown is None:
            return
        figures = (shown.values.tobytes(), shown.ages_s.tobytes(), shown.pending.tobytes())
        yield NodeFigures(signal, shown.names, shown.keys, *figures)
        for one in rules:
            if self._now.nodes.layout != layout and shown.samples is None:
                return  # nodes have come or gone between two slices: what the names stood for may be others now
            verdicts = one.reading.verdicts(self._now.snapshot, shown)
            if verdicts is not None:
                is_scored = one.rule.score is not None and shown.samples is None
                scores = one.scores(None, self._now.snapshot)[shown.at] if is_scored else _NO_SCORES
                yield VerdictFigures(one.name, verdicts.tobytes(), scores.tobytes())


def _signal_figures(signal: Signal, reading: Reading, now: _Now) -> SignalFigures:
    nodes, column, is_read = now.nodes, reading.column(None, now.snapshot), not reading.is_asked
    is_known = column is not None and column.values.shape == nodes.alive.shape
    paced = signal if column is None or is_read else column.signal
    return SignalFigures(
        name=signal.name,
        asks=reading.source,
        key=reading.key,
        unit=signal.unit.value,
        server=signal.server,
        is_built_in=is_read,
        interval_s=signal.interval_s,
        spacing_s=paced.spacing_s,
        fresh_s=paced.fresh_s,
        max_age_s=paced.max_age_s,
        depends_on_pod=reading.depends_on_pod,
        state=Freshness.FRESH if is_read else Freshness.ABSENT if column is None else column.freshness,
        age_s=0.0 if is_read else np.inf if column is None else column.age_s,
        is_suspect=now.store.is_suspect(signal.name),
        n_nodes=nodes.n_alive,
        n_covered=int(np.count_nonzero(column.has_sample & nodes.alive)) if column is not None and is_known else 0,
    )


def _learned_figures(signal: Signal, store: SignalStore) -> Iterator[LearnedFigures]:
    """Yield the workloads of which most was seen, at most `_MAX_LEARNED`."""
    effect = signal.inflight
    if effect is None:
        return
    told = sorted(store.learned.told(signal).items(), key=lambda one: (-one[1].n, one[0]))
    for (namespace, workload), learned in told[:_MAX_LEARNED]:
        figures = (amount_in_unit(signal, effect, one) for one in (learned.median, learned.low, learned.high))
        yield LearnedFigures(signal.name, namespace, workload, effect.resource, learned.n, *figures)


def _rule_figures(one: CompiledRule, now: _Now) -> RuleFigures:
    rule, table, n_refused = one.rule, now.snapshot.signals, -1
    if rule.filter is not None and not one.reading.depends_on_pod:
        n_refused = int(np.count_nonzero(one.refused(now.snapshot)))
    return RuleFigures(
        name=rule.name,
        signal=rule.signal,
        mode="canary" if rule.canary is not None and rule.mode is Mode.ENFORCE else rule.mode.value,
        weight=one.weight(now.snapshot) if rule.score is not None else 0.0,
        has_filter=rule.filter is not None,
        has_score=rule.score is not None,
        is_valve_open=rule.name in table.open_valves,
        n_refused=n_refused,
    )


_NO_SCORES: Final[FloatArray] = np.zeros(0)
