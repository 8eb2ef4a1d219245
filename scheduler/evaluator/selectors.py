"""Selectors: which series, and which of their samples at a time; subqueries, whose steps stand in for samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from scheduler.evaluator.patterns import compile_pattern
from scheduler.evaluator.store import Series, SeriesStore, Times, is_stale
from scheduler.evaluator.values import NAME, Floats, LabelKey, Labels, Vector, label_key
from scheduler.promql.nodes import Range, Selector, Subquery

_MILLISECOND_NS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Moment:
    """When an expression is evaluated, in Unix milliseconds.

    start_ms, end_ms
        What `@ start()` and `@ end()` mean: the ends of a range query, `at_ms` for any other.
    """

    at_ms: int
    lookback_ms: int
    start_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True)
class Window:
    """The samples of one series after `start_ms` up to and with `end_ms`: at least one, without stale markers."""

    labels: Labels
    times: Times
    values: Floats
    start_ms: int
    end_ms: int


def select_latest(store: SeriesStore, selector: Selector, moment: Moment) -> Iterator[tuple[Labels, int, float]]:
    """Yield labels, time in milliseconds and value of each series' latest sample within the lookback."""
    ref_ms = reference_ms(selector, moment)
    for series in _series_of(store, selector):
        times, values = series.samples()
        i = int(np.searchsorted(times, ref_ms, side="right")) - 1
        if i < 0 or times[i] <= ref_ms - moment.lookback_ms or is_stale(values[i : i + 1])[0]:
            continue
        yield series.labels, int(times[i]), float(values[i])


def select_windows(store: SeriesStore, selector: Range, moment: Moment) -> Iterator[Window]:
    """Yield the samples of each series that has any within the range."""
    end_ms = reference_ms(selector.selector, moment)
    start_ms = end_ms - _milliseconds(selector.range_s)
    for series in _series_of(store, selector.selector):
        times, values = series.samples()
        first, behind = np.searchsorted(times, (start_ms, end_ms), side="right")
        times, values = times[first:behind], values[first:behind]
        stale = is_stale(values)
        if stale.any():
            times, values = times[~stale], values[~stale]
        if len(times):
            yield Window(series.labels, times, values, start_ms, end_ms)


def subquery_windows(node: Subquery, moment: Moment, evaluated_at: Callable[[Moment], Vector]) -> Iterator[Window]:
    """Yield the results of each series within the range; steps lie at whole multiples of the step since 1970.

    `evaluated_at` gives the inner expression at a moment.
    """
    end_ms = reference_ms(node, moment)
    # `expression.parse` has refused a subquery without a step.
    step_ms, start_ms = _milliseconds(node.step_s or 0.0), end_ms - _milliseconds(node.range_s)
    found: dict[LabelKey, tuple[Labels, list[int], list[float]]] = {}
    for at_ms in range((start_ms // step_ms + 1) * step_ms, end_ms + 1, step_ms):
        vector = evaluated_at(replace(moment, at_ms=at_ms))
        for labels, value in zip(vector.labels, vector.values.tolist(), strict=True):
            _, times, values = found.setdefault(label_key(labels), (labels, [], []))
            times.append(at_ms)
            values.append(value)
    for labels, times, values in found.values():
        yield Window(labels, np.array(times, dtype=np.int64), np.array(values), start_ms, end_ms)


def _milliseconds(seconds: float) -> int:
    """Return whole milliseconds, of whole nanoseconds."""
    return int(round(seconds * 1e9) / _MILLISECOND_NS)


def matchers_of(selector: Selector) -> list[tuple[str, str, str]]:
    """Return the matchers as (label, operator, value), the metric name among them."""
    found = [(matcher.label, matcher.operator, matcher.value) for matcher in selector.matchers]
    return [*found, (NAME, "=", selector.name)] if selector.name else found


def _series_of(store: SeriesStore, selector: Selector) -> list[Series]:
    matchers = matchers_of(selector)
    name = next((value for label, operator, value in matchers if label == NAME and operator == "=" and value), None)
    tests = [_test(label, operator, value) for label, operator, value in matchers]
    return store.select(name, lambda labels: all(test(labels) for test in tests))


def _test(label: str, operator: str, value: str) -> Callable[[Labels], bool]:
    """Return a matcher; a label that is not there is empty to it."""
    if operator == "=":
        return lambda labels: labels.get(label, "") == value
    if operator == "!=":
        return lambda labels: labels.get(label, "") != value
    pattern, wanted = compile_pattern(value), operator == "=~"
    return lambda labels: (pattern.fullmatch(labels.get(label, "")) is not None) is wanted


def reference_ms(selector: Selector | Subquery, moment: Moment) -> int:
    """Return the time that a selector or subquery looks at, by its `@` and `offset`."""
    at = selector.moved.at
    ref_ms = moment.at_ms if at is None else _at_ms(at, moment)
    return ref_ms - _milliseconds(selector.moved.offset_s)


def _at_ms(at: float | str, moment: Moment) -> int:
    if isinstance(at, str):
        return moment.start_ms if at == "start" else moment.end_ms
    return round(at * 1000)
