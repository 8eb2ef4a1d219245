"""What /signals asks: signals, rules and single nodes as they are now, handed out in slices.

The deciding thread cuts its columns to the rows that are asked for and encodes them; words and JSON are made by the
process that serves the page.
"""

from __future__ import annotations

import enum
import heapq
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from scheduler.cluster.cache import Cache
from scheduler.loop.pages.keyed_samples import chosen_samples, tripped_samples
from scheduler.loop.pages.query import ListingQuery, PageContext
from scheduler.loop.ports import Clock
from scheduler.model.arrays import FloatArray, IntArray
from scheduler.model.rules import KEYED, ByKind, FilterMissing, Mode, Rule, Signal
from scheduler.model.signals import Freshness, SignalColumn
from scheduler.model.snapshot import Snapshot
from scheduler.model.views import NodeView
from scheduler.plugins.signals import rule_weight, scores_of
from scheduler.rules.pending_column import amount_in_unit
from scheduler.rules.reading import read_column, read_tripped
from scheduler.signals.columns.store import SignalStore

log = logging.getLogger(__name__)

_SLICE_S: Final = 0.0005
"""How long a slice is worked on, the figures under way apart: those of one signal or rule are 0.1 to 0.3 ms."""

_MAX_LEARNED: Final = 50


class Sort(enum.StrEnum):
    """The order of the nodes of a signal: the highest value first, the oldest sample, the name."""

    VALUE = "value"
    AGE = "age"
    NAME = "name"


class SignalsQuery(ListingQuery, frozen=True):
    """All signals, and of one or of all the first `limit` nodes in this order; with a node that node alone."""

    signal: str = ""
    node: str = ""
    sort: Sort = Sort.VALUE
    limit: int = 0

    def slices(self, context: PageContext) -> Iterator[bytes]:
        return iter(SignalListing(context.cache, context.signals, context.clock, self).slice, b"")


class Verdict(enum.IntEnum):
    """What the filter of a rule says of one node."""

    PASSES = 0
    BEYOND = 1
    UNMEASURED = 2


class SignalFigures(msgspec.Struct, frozen=True, array_like=True, tag="signal"):
    """One signal as a whole.

    key
        What one series stands for, as files write it; `label` is shown as the label itself.
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
    """Some nodes of one signal, in order; float64 each, NaN: no usable sample, or nothing in flight is counted.

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
        query, rules = self._query, self._now.snapshot.signals.rules
        for signal in rules.signals.values():
            yield _signal_figures(signal, self._now)
        for rule in rules.rules:
            yield _rule_figures(rule, self._now)
        for signal in rules.signals.values():
            yield from _learned_figures(signal, self._now.store)
        for signal in rules.signals.values():
            if query.signal in ("", signal.name) and (query.node or query.limit):
                yield from self._nodes_of(signal, [rule for rule in rules.rules if rule.signal == signal.name])

    def _nodes_of(self, signal: Signal, rules: Sequence[Rule]) -> Iterator[Figures]:
        if signal.by in KEYED:
            yield from self._samples_of(signal, rules)
            return
        column = _column_of(signal, self._now.snapshot)
        if column is None or column.values.shape != self._now.nodes.alive.shape:
            return
        rows, layout = _chosen(column, self._now.nodes, self._query), self._now.nodes.layout
        names = [self._now.nodes.names[row] for row in rows]
        ages_s = np.full(len(rows), column.age_s) if column.row_lag_s is None else column.age_s + column.row_lag_s[rows]
        inflight = np.full(len(rows), np.nan) if column.inflight is None else column.inflight[rows]
        values = np.where(column.has_sample[rows], column.values[rows], np.nan)
        keys = [_label_of(self._now.nodes, row, signal.label) for row in rows] if signal.by is ByKind.LABEL else []
        yield NodeFigures(signal.name, names, keys, values.tobytes(), ages_s.tobytes(), inflight.tobytes())
        for rule in rules:
            if self._now.nodes.layout != layout:
                return  # nodes have come or gone between two slices: what the names stood for may be others now
            yield _verdict_figures(rule, rows, self._now.snapshot)

    def _samples_of(self, signal: Signal, rules: Sequence[Rule]) -> Iterator[Figures]:
        snapshot = self._now.snapshot
        column, whole = snapshot.signals.keyed.get(signal.name), snapshot.signals.columns.get(signal.name)
        if column is None or whole is None or whole.freshness is Freshness.ABSENT:
            return
        shown = chosen_samples(signal, column, snapshot.nodes, self._query.node, self._query.limit)
        values, n_shown = column.values[shown.at], len(shown.at)
        ages_s, inflight = np.full(n_shown, whole.age_s), np.full(n_shown, np.nan)
        yield NodeFigures(signal.name, shown.names, shown.keys, values.tobytes(), ages_s.tobytes(), inflight.tobytes())
        for rule in rules:
            if rule.filter is not None:
                verdicts = np.where(tripped_samples(column, rule.name, shown.at), Verdict.BEYOND, Verdict.PASSES)
                yield VerdictFigures(rule.name, verdicts.astype(np.uint8).tobytes(), b"")


def _signal_figures(signal: Signal, now: _Now) -> SignalFigures:
    nodes, column = now.nodes, _column_of(signal, now.snapshot)
    is_read = signal.built_in is not None
    is_known = column is not None and column.values.shape == nodes.alive.shape
    return SignalFigures(
        name=signal.name,
        asks=signal.source,
        key=signal.label or signal.by.value,
        unit=signal.unit.value,
        server=signal.server,
        is_built_in=is_read,
        interval_s=signal.interval_s,
        fresh_s=signal.fresh_s,
        max_age_s=signal.max_age_s,
        depends_on_pod=signal.depends_on_pod,
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


def _rule_figures(rule: Rule, now: _Now) -> RuleFigures:
    table = now.snapshot.signals
    n_refused = -1
    if rule.filter is not None and not _depends_on_pod(rule, now.snapshot):
        tripped = read_tripped(rule, None, now.snapshot)
        n_refused = 0 if tripped is None else int(np.count_nonzero(tripped & now.nodes.alive))
    return RuleFigures(
        name=rule.name,
        signal=rule.signal,
        mode="canary" if rule.canary is not None and rule.mode is Mode.ENFORCE else rule.mode.value,
        weight=rule_weight(rule.weight, table) if rule.score is not None else 0.0,
        has_filter=rule.filter is not None,
        has_score=rule.score is not None,
        is_valve_open=rule.name in table.open_valves,
        n_refused=n_refused,
    )


def _verdict_figures(rule: Rule, rows: IntArray, snapshot: Snapshot) -> VerdictFigures:
    verdicts = np.zeros(len(rows), dtype=np.uint8)
    if rule.filter is not None:
        if rule.filter.missing is FilterMissing.REJECT:
            column = read_column(rule, None, snapshot)
            verdicts[... if column is None else ~column.has_sample[rows]] = Verdict.UNMEASURED
        tripped = read_tripped(rule, None, snapshot)
        if tripped is not None:
            verdicts[tripped[rows]] = Verdict.BEYOND
    scores = scores_of(rule, None, snapshot)[rows] if rule.score is not None else _NO_SCORES
    return VerdictFigures(rule.name, verdicts.tobytes(), scores.tobytes())


_NO_SCORES: Final[FloatArray] = np.zeros(0)


def _depends_on_pod(rule: Rule, snapshot: Snapshot) -> bool:
    signal = snapshot.signals.rules.signals.get(rule.signal)
    return rule.label_match is not None or signal is None or signal.depends_on_pod


def _column_of(signal: Signal, snapshot: Snapshot) -> SignalColumn | None:
    """Return the signal with what is in flight, of one with two keys an overview; None for counts of other Pods."""
    if signal.built_in is not None and signal.depends_on_pod:
        return None
    return read_column(Rule("", signal.name), None, snapshot)


def _label_of(nodes: NodeView, row: int, label: str) -> str:
    node = nodes.node(row)
    return "" if node is None else (node.metadata.labels or {}).get(label, "")


def _chosen(column: SignalColumn, nodes: NodeView, query: SignalsQuery) -> IntArray:
    """Return the rows to show, int64, in order; equal ones by name."""
    if query.node:
        row = nodes.row_of(query.node)
        return np.array([] if row is None or not nodes.alive[row] else [row], dtype=np.int64)
    rows = np.flatnonzero(nodes.alive)
    if query.sort is Sort.VALUE:
        # Highest first; -NaN sorts behind all numbers.
        keys = -np.where(column.has_sample[rows], column.expected[rows], np.nan)
    elif query.sort is Sort.AGE and column.row_lag_s is not None:
        keys = -column.row_lag_s[rows]
    else:
        names = nodes.names
        return np.array(heapq.nsmallest(query.limit, rows.tolist(), key=names.__getitem__), dtype=np.int64)
    first: IntArray = rows[np.argsort(keys, kind="stable")][: query.limit]
    return first
