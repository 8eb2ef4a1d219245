"""The page /signals: what every signal says now, what is wrong with it, and what rules make of it, as JSON.

`?signal=NAME` shows nodes of one signal, `?node=NAME` one node in all signals; `sort` is value, age or name, `limit`
how many nodes of each signal. What is not a finite number is null.

signals
    State (fresh, fading, absent), age, nodes covered of all, `suspect`: the last answer was doubtful, so rules only
    score. Of the last answer series, samples dropped by reason, `problems` by name and in `words`. `pause` and
    `next_try_s`.
rules
    Mode, weight, nodes refused now (null where that depends on the Pod), whether the valve is open.
learned
    What Pods of a workload were seen to add to a signal, for signals that learn it: median and quartiles of each.
nodes
    By signal in order: value, age, state, `why` it has none, pending load (`inflight`), and what each rule says of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Self

import msgspec
import numpy as np

from scheduler.loop.pages.signals import (
    Figures,
    LearnedFigures,
    ListingFault,
    NodeFigures,
    RuleFigures,
    SignalFigures,
    SignalsQuery,
    VerdictFigures,
)
from scheduler.model.signals import Freshness
from scheduler.rules.shown import Sort, Verdict
from scheduler.serve.answered_page import OwnFigures, PageRefused, RoutedPage
from scheduler.signals.asking.query_health import QueryHealth
from scheduler.signals.problems import MissingReason, problems_of, words_of

MAX_LIMIT: Final = 5_000
"""As many of one signal take the deciding thread 2 ms a slice."""

_DEFAULT_LIMIT: Final = 20
_PARAMETERS: Final = ("signal", "node", "sort", "limit")
_SHOWN_ERROR: Final = 300

_figures: msgspec.msgpack.Decoder[list[Figures]] = msgspec.msgpack.Decoder(list[Figures])


class SignalsPage(RoutedPage[SignalsQuery, bytes]):
    """Made of the figures that answer the query, and of what the serving process knows of the signals' queries."""

    path = "/signals"
    limit_s = 10.0  # of thousands of nodes it is made of many slices, and one page waits for another

    def __init__(self, query: SignalsQuery) -> None:
        super().__init__(query)
        self._found: list[Figures] = []

    @classmethod
    def read(cls, parameters: Mapping[str, str]) -> Self:
        unknown = sorted(parameters.keys() - set(_PARAMETERS))
        if unknown:
            raise PageRefused(f"unknown parameter {unknown[0]!r}. Use {', '.join(_PARAMETERS)}")
        signal, node = parameters.get("signal", ""), parameters.get("node", "")
        sort, limit = parameters.get("sort", Sort.VALUE.value), parameters.get("limit", str(_DEFAULT_LIMIT))
        if signal and node:
            raise PageRefused("signal and node: use one of them")
        if sort not in {one.value for one in Sort}:
            raise PageRefused(f"sort: must be {', '.join(Sort)}, got {sort!r}")
        if not (limit.isascii() and limit.isdigit() and len(limit) <= 9) or int(limit) > MAX_LIMIT:
            raise PageRefused(f"limit: must be from 0 to {MAX_LIMIT}, got {limit!r}")
        return cls(SignalsQuery(signal, node, Sort(sort), int(limit)))

    def add(self, slice_: bytes) -> None:
        self._found += _figures.decode(slice_)

    def body(self, own: OwnFigures) -> bytes:
        """Return the page as JSON; numbers that are not finite are null.

        Raises
        ------
        PageRefused
            There is no such signal or node.
        RuntimeError
            The listing ended by a fault.
        """
        query_health = own.query_health()
        signals = {one.name: one for one in self._found if isinstance(one, SignalFigures)}
        for one in self._found:
            if isinstance(one, ListingFault):
                raise RuntimeError(one.text)
        if self.query.signal and self.query.signal not in signals:
            raise PageRefused(f"no signal {self.query.signal!r}; there are {', '.join(signals) or 'none'}", 404)
        nodes = list(self._nodes(signals, query_health))
        if self.query.node and not nodes and any(one.n_nodes for one in signals.values()):
            raise PageRefused(f"no node {self.query.node!r}", 404)
        page = {
            "signals": [_signal(one, query_health.get(one.name)) for one in signals.values()],
            "rules": [_rule(one) for one in self._found if isinstance(one, RuleFigures)],
            "learned": [_learned(one) for one in self._found if isinstance(one, LearnedFigures)],
            "nodes": nodes,
        }
        return msgspec.json.encode(page) + b"\n"

    def _nodes(
        self, signals: Mapping[str, SignalFigures], query_health: Mapping[str, QueryHealth]
    ) -> Iterator[dict[str, Any]]:
        rules = {one.name: one for one in self._found if isinstance(one, RuleFigures)}
        for i, figures in enumerate(self._found):
            if isinstance(figures, NodeFigures) and figures.signal in signals:
                behind = []
                for one in self._found[i + 1 :]:
                    if not isinstance(one, VerdictFigures):
                        break
                    behind.append(one)
                signal = signals[figures.signal]
                yield from _rows(signal, figures, _verdicts(behind, rules), query_health.get(signal.name))


def _signal(figures: SignalFigures, health: QueryHealth | None) -> dict[str, Any]:
    told: dict[str, Any] = {
        "name": figures.name,
        "asks": figures.asks,
        "by": figures.key,
        "unit": figures.unit,
        "server": figures.server,
        "state": figures.state.value,
        "suspect": figures.is_suspect,
        "age_s": _number(figures.age_s),
        "interval_s": figures.interval_s,
        "spacing_s": figures.spacing_s or None,
        "max_age_s": figures.max_age_s,
        "nodes": figures.n_nodes,
        "covered": None if figures.is_built_in and figures.depends_on_pod else figures.n_covered,
        "depends_on_pod": figures.depends_on_pod,
        "problems": [],
        "words": "",
    }
    if health is None:
        return told
    answer = health.last
    told |= {"pause": health.pause, "next_try_s": round(health.next_try_s, 1)}
    if answer is None:
        return told | {"words": "not asked yet" if not figures.is_built_in else ""}
    problems = problems_of(answer)
    words = [words_of(problem) for problem in problems]
    if answer.error:
        words = [f"{words[0]}: {answer.error[:_SHOWN_ERROR]}"]
    elif answer.warnings:
        words[0] += f": {answer.warnings[0][:_SHOWN_ERROR]}"
    return told | {
        "problems": [problem.value for problem in problems],
        "words": "; ".join(words),
        "error": answer.error[:_SHOWN_ERROR],
        "last_answer_ago_s": round(health.last_ago_s, 1),
        "lag_s": _number(answer.lag_s),
        "series": answer.n_series,
        "mapped": answer.n_mapped,
        "dropped": {name: n for name in answer.drops.__struct_fields__ if (n := getattr(answer.drops, name))},
    }


def _learned(figures: LearnedFigures) -> dict[str, Any]:
    return {
        "signal": figures.signal,
        "workload": f"{figures.namespace}/{figures.workload}",
        "of": figures.resource,
        "seen": figures.n,
        "adds": _number(figures.median),
        "quartiles": [_number(figures.low), _number(figures.high)],
    }


def _rule(figures: RuleFigures) -> dict[str, Any]:
    return {
        "name": figures.name,
        "signal": figures.signal,
        "mode": figures.mode,
        "weight": figures.weight if figures.has_score else None,
        "refused_nodes": figures.n_refused if figures.has_filter and figures.n_refused >= 0 else None,
        "valve_open": figures.is_valve_open,
    }


def _verdicts(
    behind: Sequence[VerdictFigures], rules: Mapping[str, RuleFigures]
) -> list[tuple[RuleFigures, bytes, Sequence[float]]]:
    return [
        (rules[one.rule], one.verdicts, np.frombuffer(one.scores, dtype=np.float64).tolist())
        for one in behind
        if one.rule in rules
    ]


def _rows(
    signal: SignalFigures,
    figures: NodeFigures,
    verdicts: Sequence[tuple[RuleFigures, bytes, Sequence[float]]],
    health: QueryHealth | None,
) -> Iterator[dict[str, Any]]:
    values, ages_s, inflight = (np.frombuffer(part) for part in (figures.values, figures.ages_s, figures.inflight))
    for i, name in enumerate(figures.names):
        value, age_s = _number(float(values[i])), float(ages_s[i])
        key = figures.keys[i] if figures.keys else name
        row: dict[str, Any] = {"signal": signal.name, "node": name}
        if figures.keys:
            row["key"] = key
        row |= {"value": value, "age_s": _number(age_s), "state": _state(signal, value, age_s)}
        if value is None:
            row["why"] = _missing_reason(signal, key, health).value
        row |= {
            "inflight": _number(float(inflight[i])),
            "rules": [_said(rule, said[i], scores[i] if scores else None) for rule, said, scores in verdicts],
        }
        yield row


def _state(signal: SignalFigures, value: float | None, age_s: float) -> str:
    if value is None:
        return "absent" if signal.state is Freshness.ABSENT else "missing"
    return Freshness.FRESH.value if age_s <= signal.fresh_s else Freshness.FADING.value


def _missing_reason(signal: SignalFigures, key: str, health: QueryHealth | None) -> MissingReason:
    """Return why a node has no value; what the last answer says is not told of an older one that is in force."""
    if signal.state is Freshness.ABSENT:
        return MissingReason.NO_ANSWER if math.isinf(signal.age_s) else MissingReason.TOO_OLD
    if health is None or health.last is None or health.last.error:
        return MissingReason.UNKNOWN
    return MissingReason.UNKNOWN if signal.depends_on_pod else health.missing.get(key, MissingReason.NO_SERIES)


def _said(rule: RuleFigures, verdict: int, score: float | None) -> dict[str, Any]:
    said = ""
    if verdict != Verdict.PASSES:
        said = "refused" if verdict == Verdict.BEYOND else "refused, no sample"
        if rule.mode != "enforce" or rule.is_valve_open:
            said = f"{said} ({rule.mode if rule.mode != 'enforce' else 'valve open'})"
    return {"rule": rule.name, "verdict": said, "score": None if score is None else round(score, 3)}


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
