"""The `signals:` part of a rule file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from scheduler.model.rules import MAX_AGES, ByKind, Reduce, Signal, Unit
from scheduler.signals.format.built_in import is_built_in, read_built_in
from scheduler.signals.format.inflight import read_inflight
from scheduler.signals.format.keys import read_by
from scheduler.signals.format.query import (
    Asked,
    Language,
    check_matchers,
    read_lag,
    read_query,
    read_server,
    read_window,
)
from scheduler.signals.format.units import Measure, read_amount
from scheduler.strict_yaml.fields import Fields, Shape, read_fields, read_list, read_mapping
from scheduler.strict_yaml.nodes import YamlNode, YamlScalar
from scheduler.strict_yaml.report import Scope, clip, got
from scheduler.strict_yaml.values import read_duration, read_word

MIN_INTERVAL_S: Final = 1.0
MAX_INTERVAL_S: Final = 86_400.0
DEFAULT_INTERVAL_S: Final = 15.0
MAX_SMOOTHING_S: Final = 3_600.0

SIGNAL: Final = Shape(
    fields=(
        "expr",
        "by",
        "node_label",
        "unit",
        "interval",
        "max_age",
        "range",
        "reduce",
        "inflight",
        "window",
        "smoothing",
        "lag",
        "server",
        "workload",
        "pair",
    ),
    required=("expr",),
    later={"dialect": "a dialect per signal (dialect)"},
    refused={"history": "history is the window of a count. Write `count: {same: [app], window: 1h}`"},
)
SIGNAL_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")


@dataclass(frozen=True, slots=True)
class Declared:
    """A signal's name and place; `signal` is None where its declaration has problems.

    `unit` and `by` are kept apart, so that rules over a broken signal are still read as far as they can be.
    """

    name: str
    where: str
    signal: Signal | None
    unit: Unit | None
    by: ByKind | None

    @property
    def measure(self) -> Measure:
        return Measure(self.name, self.unit)


def read_signals(node: YamlNode | None, scope: Scope, asked: Asked, declared: dict[str, Declared]) -> None:
    """Add the signals of one file to `declared`."""
    mapping = read_mapping(node, scope, "Write `<name>: {expr: …}`, or drop the line")
    if mapping is None:
        return
    for key, body in mapping.entries:
        if scope.report.is_full:
            return
        inner = Scope(scope.report, f"signal '{clip(key.value)}'")
        if not SIGNAL_NAME.fullmatch(key.value):
            write = "Write lower-case letters, digits and `_`, a letter first, at most 63"
            inner.problem(key, f"not a signal's name, {got(key)}. {write}")
        if key.value in declared:
            inner.problem(key, f"is defined twice, first at {declared[key.value].where}. Rename one of the two")
            read_signal(key, body, inner, asked)
        else:
            declared[key.value] = read_signal(key, body, inner, asked)


def read_signal(key: YamlScalar, body: YamlNode, scope: Scope, asked: Asked) -> Declared:
    n_problems = len(scope.report.problems)
    where = scope.where(key)
    if is_built_in(body):
        return Declared(key.value, where, *read_built_in(key, body, scope))
    fields = read_fields(body, scope, SIGNAL)
    if fields is None:
        return Declared(key.value, where, None, None, None)
    unit_word = read_word(fields.get("unit"), scope.inner("unit"), list(Unit))
    unit = Unit(unit_word) if unit_word else None if "unit" in fields else Unit.NONE
    joined = read_by(fields)
    by = joined.by if joined else None
    reduce = read_word(fields.get("reduce"), scope.inner("reduce"), list(Reduce))
    interval_s, max_age_s = _ages(fields)
    span = _range(fields, Measure(key.value, unit))
    inflight = read_inflight(fields.get("inflight"), scope.inner("inflight"), Measure(key.value, unit), by)
    server = read_server(fields.get("server"), scope.inner("server"), asked.servers)
    matchers = asked.matchers.get(server, ())
    language = Language(asked.dialect, asked.features.get(server, frozenset()), is_narrowed=bool(matchers))
    query = read_query(fields, joined, language, is_reduced="reduce" in fields)
    window_s = read_window(fields, query)
    smoothing_s = _smoothing(fields)
    lag = read_lag(fields, joined, language)
    if len(scope.report.problems) == n_problems:
        check_matchers(fields, matchers)
    if len(scope.report.problems) > n_problems or query is None or joined is None or unit is None:
        return Declared(key.value, where, None, unit, by)
    signal = Signal(
        name=key.value,
        expr=query.expr,
        by=joined.by,
        label=joined.label,
        workload=joined.workload,
        pair=joined.pair,
        node_label=joined.node_label,
        unit=unit,
        interval_s=interval_s,
        max_age_s=max_age_s,
        is_max_age_written="max_age" in fields,
        range=span,
        reduce=Reduce(reduce) if reduce else None,
        window_s=window_s,
        smoothing_s=smoothing_s,
        lag=lag,
        server=server,
        dialect=asked.dialect,
        inflight=inflight,
        where=where,
    )
    return Declared(key.value, where, signal, unit, by)


def _ages(fields: Fields) -> tuple[float, float]:
    """Return interval and max_age; the defaults where they cannot be read."""
    interval, max_age = fields.get("interval"), fields.get("max_age")
    scope = fields.scope.inner("interval")
    interval_s = read_duration(interval, scope)
    if interval is not None and interval_s is not None and not MIN_INTERVAL_S <= interval_s <= MAX_INTERVAL_S:
        scope.problem(interval, f"must be from 1s to 1d, {got(interval)}. Write `interval: 15s`")
        interval_s = None
    if interval_s is None and "interval" in fields:
        read_duration(max_age, fields.scope.inner("max_age"))
        return DEFAULT_INTERVAL_S, MAX_AGES * DEFAULT_INTERVAL_S
    known_s = DEFAULT_INTERVAL_S if interval_s is None else interval_s
    scope = fields.scope.inner("max_age")
    max_age_s = read_duration(max_age, scope)
    if max_age is not None and max_age_s is not None and max_age_s < 2.0 * known_s:
        what = f"must be at least two intervals ({_seconds(2.0 * known_s)}), {got(max_age)}"
        scope.problem(max_age, f"{what}. Write `max_age: {_seconds(MAX_AGES * known_s)}`, or a shorter interval")
    return known_s, MAX_AGES * known_s if max_age_s is None else max_age_s


def _seconds(value: float) -> str:
    return f"{value:g}s"


def _smoothing(fields: Fields) -> float:
    """Return seconds, 0 where samples are taken as they are."""
    node, scope = fields.get("smoothing"), fields.scope.inner("smoothing")
    seconds = read_duration(node, scope)
    if seconds is None or node is None:
        return 0.0
    if not 0.0 < seconds <= MAX_SMOOTHING_S:
        write = "Write the half-life of past samples, as `smoothing: 30s`, or drop the line"
        scope.problem(node, f"must be above 0s and at most 1h, {got(node)}. {write}")
    if "inflight" in fields:
        what = "a smoothed value shows a placed Pod later than the window of `inflight` assumes, got both"
        scope.problem(fields.at("smoothing"), f"{what}. Drop one, or write a longer range into the expression")
    return seconds


def _range(fields: Fields, measure: Measure) -> tuple[float, float] | None:
    scope = fields.scope.inner("range")
    items = read_list(fields.get("range"), scope, "Write `range: [lowest, highest]`")
    if items is None:
        return None
    if len(items) != 2:
        scope.problem(fields.at("range"), f"must be two numbers, got {len(items)}. Write `range: [lowest, highest]`")
        return None
    low, high = read_amount(items[0], scope, measure), read_amount(items[1], scope, measure)
    if low is None or high is None:
        return None
    if low >= high:
        scope.problem(
            items[0], f"the lowest must be below the highest, got [{low:g}, {high:g}]. Write `range: [lowest, highest]`"
        )
        return None
    return low, high
