"""What is valid PromQL, yet seldom what a rule file means, and what not every Prometheus reads."""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Final

from scheduler.model.rules import ByKind
from scheduler.promql.checks import COMPARISONS
from scheduler.promql.functions import EXPERIMENTAL_AGGREGATIONS
from scheduler.promql.nodes import (
    Aggregation,
    Binary,
    Call,
    Feature,
    Node,
    Paren,
    Range,
    Selector,
    Subquery,
    Unary,
    children,
    nodes_of,
)
from scheduler.signals.format.promql import OF_TWO_SAMPLES, ParsedQuery

_RATES: Final = frozenset({"rate", "irate", "increase"})
_SHORTEST_S: Final = 30.0
"""Two scrapes, where one comes every 15 s; hardly any Prometheus scrapes more often."""

_COUNTER: Final = re.compile(r".*_(?:total|count|sum|bucket)")
_GAUGE: Final = re.compile(
    r"up|.*_(?:up|bytes|ratio|percent|percentage|celsius|temperature|info|status|success|ready|limit|capacity|available"
    r"|free|used|utili[sz]ation|watts?|volts?|hertz|load1|load5|load15|depth|active|inflight|in_flight|timestamp_seconds)"
    r"|DCGM_FI_DEV_(?:\w+_UTIL|\w+_TEMP|POWER_USAGE|FB_\w+)"
)
# Functions, aggregations and operators under which it does not matter how large a counter is.
_NOT_ITS_SIZE: Final = OF_TWO_SAMPLES | {
    *("absent", "absent_over_time", "present_over_time", "count_over_time", "timestamp", "start_timestamp"),
    *("ts_of_first_over_time", "ts_of_last_over_time", "ts_of_max_over_time", "ts_of_min_over_time"),
    *("count", "group", "-"),
}
_ASK: Final = {
    Feature.RANGES: "`anchored` and `smoothed` are experimental",
    Feature.FILL: "`fill`, `fill_left` and `fill_right` are experimental",
    Feature.DURATIONS: "a range or an offset is computed, which Prometheus reads from 3.14 on",
}


def lint_query(query: ParsedQuery, by: ByKind, *, is_reduced: bool) -> list[str]:
    """Return warnings in words; `is_reduced` where the signal says how several series become one."""
    if query.root is None:
        return []
    warnings = _of_counters(query.root) + _computed_to_nothing(query.root)
    if by is ByKind.CLUSTER:
        return warnings + _several_series(query.root)
    if _filters(query.root):
        write = "Write `bool` after the comparison, or leave the limit to the rule"
        warnings.append(f"a comparison drops series, and a dropped series means a missing value. {write}")
    # Of cards there usually is one series each.
    return warnings if by is ByKind.GPU else warnings + _node_keyed(query.root, is_reduced=is_reduced)


def lint_features(query: ParsedQuery, switched_on: Set[str]) -> list[str]:
    """Return a warning for each feature that the query needs and its Prometheus is not said to have."""
    lacking = sorted(feature for feature in query.needs if feature not in switched_on)
    return [
        f"{_experimental(query.root) if feature is Feature.FUNCTIONS else _ASK[feature]}. Start "
        f"{'an older one' if feature is Feature.DURATIONS else 'Prometheus'} with --enable-feature={feature}, and "
        f"write {feature} under features of the server in the configuration"
        for feature in lacking
    ]


def _experimental(root: Node | None) -> str:
    nodes = [] if root is None else nodes_of(root)
    calls = [node.function.name for node in nodes if isinstance(node, Call) and node.function.is_experimental]
    ops = [node.op for node in nodes if isinstance(node, Aggregation) and node.op in EXPERIMENTAL_AGGREGATIONS]
    names = list(dict.fromkeys(calls + ops))
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} experimental"


def _of_counters(root: Node) -> list[str]:
    """Return what is wrong with how counters and gauges are read, as far as their names tell them apart."""
    found: dict[str, None] = {}
    # With each node: whether something around it makes the size of a counter harmless.
    waiting: list[tuple[Node, bool]] = [(root, False)]
    while waiting:
        node, is_harmless = waiting.pop()
        if isinstance(node, Call) and node.function.name in OF_TWO_SAMPLES:
            found.update(dict.fromkeys(_of_samples(node)))
        if isinstance(node, Selector) and not is_harmless and _COUNTER.fullmatch(node.name):
            write = "Write `rate(…[5m])` or `increase(…[5m])` of it"
            found[f"{node.name} is a counter by its name: it only grows, and starts again at 0. {write}"] = None
        inner = children(node)
        is_harmless = is_harmless or _names(node) in _NOT_ITS_SIZE
        waiting += [(child, is_harmless) for child in inner[:1]]
        # To the right of `and` and `unless`, only what is there counts.
        is_set = isinstance(node, Binary) and node.op in ("and", "unless")
        waiting += [(child, is_harmless or is_set) for child in inner[1:]]
    return list(found)


def _computed_to_nothing(root: Node) -> list[str]:
    ranges = [node for node in nodes_of(root) if isinstance(node, (Range, Subquery)) and node.is_computed]
    if not any(not node.range_s > 0 for node in ranges):
        return []
    write = "Write a duration, as `[5m]`"
    return [f"a range is computed to nothing: Vane asks instant queries, where `step()` and `range()` are 0. {write}"]


def _names(node: Node) -> str:
    if isinstance(node, Call):
        return node.function.name
    return node.op if isinstance(node, (Aggregation, Binary)) else ""


def _of_samples(call: Call) -> list[str]:
    found = []
    function = call.function.name
    for arg in call.args:
        if not isinstance(arg, Range):
            continue
        name = arg.selector.name
        if function in _RATES and _GAUGE.fullmatch(name):
            write = "Write `deriv(…)` for its slope, or `avg_over_time(…)` for its mean"
            found.append(f"{function} of {name}, a gauge by its name: each fall counts as a restart. {write}")
        if 0 < arg.range_s < _SHORTEST_S:
            write = "Write a range of four scrapes, as `[2m]`"
            what = f"{function} needs two samples, and {arg.range_s:g} s seldom hold them"
            found.append(f"{what}: with a scrape every 15 s there is no value at all. {write}")
    return found


def _node_keyed(root: Node, *, is_reduced: bool) -> list[str]:
    nodes = nodes_of(root)
    if is_reduced or any(isinstance(node, Aggregation) for node in nodes):
        return []
    names = [node.name for node in nodes if isinstance(node, Selector)]
    # A recorded series has been aggregated by its rule; by convention only those have a colon.
    if not names or all(":" in name for name in names):
        return []
    return [
        "nothing is aggregated, and several series of one node are an error. "
        "Write `max by (instance) (…)` or `reduce: max`"
    ]


def _several_series(root: Node) -> list[str]:
    top = _unwrapped(root)
    if isinstance(top, Aggregation) and top.grouping:
        return ["the aggregation keeps labels, and `by: cluster` means one series. Write `sum(…)`, or another `by`"]
    return []


def _filters(root: Node) -> bool:
    top = _unwrapped(root)
    return isinstance(top, Binary) and top.op in COMPARISONS and not top.is_bool


def _unwrapped(node: Node) -> Node:
    while isinstance(node, (Paren, Unary)):
        node = node.expr
    return node
