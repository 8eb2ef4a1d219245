"""A Prometheus that is down, slow, or says only a part."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping

from tests.e2e.world import CPU_EXPR
from tests.faults.bench.answers import (
    GATE,
    INTERVAL_S,
    MAX_AGE_S,
    NODE_CPU,
    break_with,
    looks,
    mend,
    of_query,
    oldest_s,
    saying,
    until_told,
    until_well,
    with_series,
)
from tests.faults.bench.bench import Bench, Setting
from tests.faults.bench.churn import GATE_SERIES
from tests.faults.bench.placing import Placing, measure_all_placed, quantile
from tests.faults.bench.servers import NODES
from tests.faults.bench.told import Decisions, nodes, parsed, samples_used
from tests.faults.row import Row
from tests.support.fault_proxy import Asked, Fault
from tests.support.manifests import Json
from tests.support.vane import VaneProcess

_GATE_EXPR = f"max by (instance) ({GATE_SERIES})"
_LOOK_S = 0.5
"""How late a page may be looked at."""
_QUERY_DEADLINE_S = 6.0


class _Counted:
    """Passes queries on, and counts them."""

    def __init__(self) -> None:
        self.n = 0

    def __call__(self, asked: Asked) -> None:
        self.n += 1
        asked.say(asked.forward())


def _p99_ms(decisions: Decisions) -> float:
    return 1000.0 * quantile((one["decided_in_s"] for one in decisions.more()), 0.99)


def down(bench: Bench) -> None:
    """Prometheus is killed, and comes back."""
    server, vane, placing, counted = bench.servers.prometheus, bench.leader().vane, Placing(bench), _Counted()
    break_with(bench, counted)
    decisions = Decisions(vane)
    bench.last(well_s := bench.seconds(25, 8))
    p99_well_ms, asked_per_s = _p99_ms(decisions), counted.n / well_s
    killed_s = time.monotonic()
    server.kill()
    told_s = until_told(bench, vane, NODE_CPU, {"unreachable"})
    counted.n = 0
    bench.last(down_s := bench.seconds(80, 14))
    share_asked = counted.n / down_s / asked_per_s
    p99_down_ms, names = _p99_ms(decisions), placing.names()
    bench.figure("told as unreachable after, s", told_s, at_most=2 * INTERVAL_S)
    bench.figure("down for, s", time.monotonic() - killed_s)
    bench.figure("queries meanwhile, of those before", share_asked, at_most=1.0)
    bench.figure("p99 of decisions before, ms", p99_well_ms)
    bench.figure("p99 of decisions meanwhile, ms", p99_down_ms, at_most=max(1.1 * p99_well_ms, p99_well_ms + 2.0))
    measure_all_placed(bench, names)
    server.start()
    for name, expr in ((GATE, _GATE_EXPR), (NODE_CPU, CPU_EXPR)):
        bench.until(lambda expr=expr: len(server.query(expr)) == len(NODES), 20.0, f"{name} in Prometheus")  # type: ignore[misc]
        bench.figure(f"{name} well after, s", until_well(bench, vane, name), at_most=INTERVAL_S + _LOOK_S)


def _measure_others(bench: Bench, vane: VaneProcess, seconds: float) -> None:
    """Hold how long ago another signal was answered against its interval, on both replicas."""
    found = looks(bench, vane, NODE_CPU, seconds)
    ago_s = [one["last_answer_ago_s"] for one in found]
    bench.figure("another signal's last answer ago, p99, s", quantile(ago_s, 0.99), at_most=1.5 * INTERVAL_S)
    bench.figure("another signal's last answer ago, longest, s", max(ago_s))
    bench.figure("age of its samples, oldest, s", oldest_s(found), at_most=2.5 * INTERVAL_S)
    bench.figure("looks at it that found problems", sum(bool(one["problems"]) for one in found), at_most=0)


def slow(bench: Bench) -> None:
    """One query hangs, and twelve take a second each."""
    vane, placing = bench.leader().vane, Placing(bench)

    def fault(asked: Asked) -> None:
        if asked.query == _GATE_EXPR:
            asked.hang()
            return
        if asked.query.startswith(_SLOW):
            bench.servers.prometheus_proxy.mended.wait(INTERVAL_S)
        asked.say(asked.forward())

    break_with(bench, fault)
    told_s = until_told(bench, vane, GATE, {"timeout"})
    _measure_others(bench, vane, bench.seconds(90, 15))
    mend(bench)
    bench.figure("the query that hangs told as timeout after, s", told_s, at_most=_QUERY_DEADLINE_S + INTERVAL_S + 1)
    bench.figure("it is well again after, s", until_well(bench, vane, GATE))
    measure_all_placed(bench, placing.names())


_SLOW = "max by (instance) (node_load5 + "
_SLOW_SIGNALS = "".join(
    f"  slow_{i}: {{expr: '{_SLOW}{i})', by: node, interval: 1s, max_age: 20s}}\n" for i in range(12)
)
_SLOW_RULES = "".join(
    f"  - {{name: slow-{i}, signal: slow_{i}, score: {{best: 0, worst: 100}}, weight: 1}}\n" for i in range(12)
)


def explodes(bench: Bench) -> None:
    """One query gives 150,000 series, then more samples than the server loads."""
    vane, placing = bench.leader().vane, Placing(bench)
    one = b'{"metric":{"instance":"node-00"},"value":[1700000000.1,"1"]}'
    body = b'{"status":"success","data":{"resultType":"vector","result":[' + b",".join([one] * 150_000) + b"]}}"
    too_many = {
        "status": "error",
        "errorType": "execution",
        "error": "query processing would load too many samples into memory in query execution",
    }
    for problem, fault in (("too_much", _writing(body)), ("rejected", saying(422, too_many))):
        break_with(bench, of_query(_GATE_EXPR, fault))
        told_s = until_told(bench, vane, GATE, {problem})
        bench.figure(f"told as {problem} after, s", told_s, at_most=2 * INTERVAL_S + 1)
        _measure_others(bench, vane, bench.seconds(40, 8))
        mend(bench)
        until_well(bench, vane, GATE)
    measure_all_placed(bench, placing.names())


def _writing(body: bytes) -> Fault:
    return lambda asked: asked.write(body)


_KEPT = frozenset(NODES[: len(NODES) * 6 // 10])
_TELL_TALE = 0.9375
"""What a partial answer says of its nodes: no other one does, and a binary fraction stays what it is."""


def _partial(more: Mapping[str, object], value_of: Mapping[str, float] | None = None) -> Fault:
    """Leave out two nodes of five, and give the others a value by which the answer is known again."""

    def change(series: list[Json]) -> list[Json]:
        kept = [one for one in series if one["metric"].get("instance") in _KEPT]
        for one in kept:
            value = _TELL_TALE if value_of is None else value_of[one["metric"]["instance"]]
            one["value"][1] = repr(value)
        return kept

    return of_query(CPU_EXPR, with_series(change, **more))


def _measure_unused(bench: Bench, vane: VaneProcess, decisions: Decisions) -> None:
    made = decisions.more()
    used = [one["value"] for one in samples_used(made, NODE_CPU)]
    bench.figure("decisions meanwhile", len(made), at_least=10)
    bench.figure("of them by a partial answer", sum(value == _TELL_TALE for value in used), at_most=0)


def _partial_for_long(bench: Bench, problem: str, **more: object) -> VaneProcess:
    """Leave out nodes for a moment, some times, and then for longer than the last good answer is in force."""
    vane = bench.leader().vane
    for _ in range(int(bench.seconds(5, 1))):
        decisions = Decisions(vane)
        break_with(bench, _partial(more))
        told_s = until_told(bench, vane, NODE_CPU, {problem})
        bench.last(MAX_AGE_S / 2)
        _measure_unused(bench, vane, decisions)
        bench.figure(f"told as {problem} after, s", told_s, at_most=2 * INTERVAL_S)
        mend(bench)
        until_well(bench, vane, NODE_CPU)
    values = {name: 0.5 + 0.01 * i for i, name in enumerate(sorted(_KEPT))}
    break_with(bench, _partial(more, values))
    bench.until(lambda: _is_accepted(vane, values), 2 * MAX_AGE_S + 10, "the end of the last good answer")
    bench.figure("score of a node without sample off the median, most", _off_the_median(vane), at_most=0.01)
    return vane


def partial_with_warnings(bench: Bench) -> None:
    """Two nodes of five are missing, and the server says so; where nothing better is left that only scores."""
    placing = Placing(bench)
    vane = _partial_for_long(bench, "warnings", warnings=["no store matched"])
    rules = parsed(vane.page(f"signals?signal={NODE_CPU}&limit=0"))["rules"]
    refusing = next(rule for rule in rules if rule["name"] == "avoid-hot-nodes")
    bench.figure("refusals by an answer with warnings", int(not refusing["valve_open"]), at_most=0)
    mend(bench)
    bench.figure("well again after, s", until_well(bench, vane, NODE_CPU), at_most=2 * INTERVAL_S)
    measure_all_placed(bench, placing.names())


def partial_in_silence(bench: Bench) -> None:
    """Two nodes of five are missing, and nothing is said; after `max_age` they count as taken off for good."""
    placing = Placing(bench)
    vane = _partial_for_long(bench, "partial")
    mend(bench)
    until_well(bench, vane, NODE_CPU)
    measure_all_placed(bench, placing.names())


def _is_accepted(vane: VaneProcess, values: dict[str, float]) -> bool:
    found = nodes(vane, NODE_CPU)
    return any(name in found and found[name]["value"] == value for name, value in values.items())


def _off_the_median(vane: VaneProcess) -> float:
    """Return how far the score of a node without sample is from the median of those with one."""
    scores: dict[bool, list[float]] = {True: [], False: []}
    for node in nodes(vane, NODE_CPU).values():
        score = next(said["score"] for said in node["rules"] if said["score"] is not None)
        scores[node["value"] is not None].append(score)
    return max((abs(one - statistics.median(scores[True])) for one in scores[False]), default=float("nan"))


ROWS = (
    Row("F15", "Prometheus is killed, and comes back", down),
    Row(
        "F16-slow",
        "a query that hangs, and twelve of a second each",
        slow,
        Setting(signals=_SLOW_SIGNALS, rules=_SLOW_RULES),
    ),
    Row("F16-explodes", "a query that explodes: too many series, too many samples", explodes),
    Row("F17-warnings", "answers without two nodes of five, with warnings", partial_with_warnings),
    Row("F17-silent", "answers without two nodes of five, without warnings", partial_in_silence),
)
