"""The functions of PromQL that are evaluated here, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Protocol

import numpy as np

from scheduler.evaluator.histograms import bucket_quantiles
from scheduler.evaluator.patterns import check_pattern, compile_pattern, expand
from scheduler.evaluator.ranges import KEEPS_NAME, OVER_RANGE
from scheduler.evaluator.selectors import Moment, Window, matchers_of
from scheduler.evaluator.sums import quantile
from scheduler.evaluator.values import (
    EMPTY,
    NAME,
    ExecutionError,
    Floats,
    Labels,
    Vector,
    make_vector,
    unique_vector,
    with_label,
    without_name,
)
from scheduler.promql.nodes import Node, Range, Selector, String, unwrapped


class Evaluation(Protocol):
    """What a function asks its arguments' values from."""

    @property
    def moment(self) -> Moment: ...

    def vector(self, node: Node) -> Vector: ...

    def scalar(self, node: Node) -> float: ...

    def windows(self, node: Node) -> Iterator[Window]: ...

    def latest(self, node: Selector) -> Iterator[tuple[Labels, int, float]]: ...

    def warn(self, text: str) -> None:
        """Add to the warnings of the answer, once."""


Arguments = Sequence[Node]
Function = Callable[[Evaluation, Arguments], Vector | float]


def _text(node: Node) -> str:
    literal = unwrapped(node)
    return literal.value if isinstance(literal, String) else ""


def warn_of_quantile(evaluation: Evaluation, q: float) -> None:
    if not 0 <= q <= 1:
        evaluation.warn(f"PromQL warning: quantile value should be between 0 and 1, got {q:g}")


def _over_range(name: str) -> Function:
    compute = OVER_RANGE[name]

    def function(evaluation: Evaluation, arguments: Arguments) -> Vector:
        labels, values = [], []
        for window in evaluation.windows(arguments[0]):
            value = compute(window)
            if value is not None:
                labels.append(window.labels if name in KEEPS_NAME else without_name(window.labels))
                values.append(value)
        return unique_vector(labels, values)

    return function


def _quantile_over_time(evaluation: Evaluation, arguments: Arguments) -> Vector:
    q = evaluation.scalar(arguments[0])
    windows = list(evaluation.windows(arguments[1]))
    if windows:
        warn_of_quantile(evaluation, q)
    return unique_vector((without_name(one.labels) for one in windows), (quantile(q, one.values) for one in windows))


def _absent_over_time(evaluation: Evaluation, arguments: Arguments) -> Vector:
    if next(evaluation.windows(arguments[0]), None) is not None:
        return EMPTY
    argument = unwrapped(arguments[0])
    labels = _labels_looked_for(argument.selector) if isinstance(argument, Range) else {}
    return make_vector([labels], [1.0])


def _each(compute: Callable[[Floats], Floats]) -> Function:
    def function(evaluation: Evaluation, arguments: Arguments) -> Vector:
        vector = evaluation.vector(arguments[0])
        return unique_vector(map(without_name, vector.labels), compute(vector.values))

    return function


def _clamp(evaluation: Evaluation, vector: Vector, low: float, high: float) -> Vector:
    if low > high:
        return EMPTY
    values = -_least(-low, -_least(high, vector.values))
    return unique_vector(map(without_name, vector.labels), values)


def _least(bound: float, values: Floats) -> Floats:
    """Return the lesser of each value and the bound; NaN wins over numbers, and -Inf over NaN."""
    least: Floats = np.minimum(bound, values)
    least[(values == -np.inf) | (bound == -np.inf)] = -np.inf
    return least


def _clamp_both(evaluation: Evaluation, arguments: Arguments) -> Vector:
    low, high = (evaluation.scalar(argument) for argument in arguments[1:])
    return _clamp(evaluation, evaluation.vector(arguments[0]), low, high)


def _clamp_min(evaluation: Evaluation, arguments: Arguments) -> Vector:
    return _clamp(evaluation, evaluation.vector(arguments[0]), evaluation.scalar(arguments[1]), np.inf)


def _clamp_max(evaluation: Evaluation, arguments: Arguments) -> Vector:
    return _clamp(evaluation, evaluation.vector(arguments[0]), -np.inf, evaluation.scalar(arguments[1]))


def _round(evaluation: Evaluation, arguments: Arguments) -> Vector:
    vector = evaluation.vector(arguments[0])
    nearest = evaluation.scalar(arguments[1]) if len(arguments) > 1 else 1.0
    inverse = np.float64(1.0) / np.float64(nearest)
    return unique_vector(map(without_name, vector.labels), np.floor(vector.values * inverse + 0.5) / inverse)


def _scalar(evaluation: Evaluation, arguments: Arguments) -> float:
    vector = evaluation.vector(arguments[0])
    return float(vector.values[0]) if len(vector) == 1 else np.nan


def _vector(evaluation: Evaluation, arguments: Arguments) -> Vector:
    return make_vector([{}], [evaluation.scalar(arguments[0])])


def _time(evaluation: Evaluation, _: Arguments) -> float:
    return evaluation.moment.at_ms / 1000


def _timestamp(evaluation: Evaluation, arguments: Arguments) -> Vector:
    """Return the time of each sample; whatever was computed is of the moment of evaluation."""
    argument = unwrapped(arguments[0])
    if isinstance(argument, Selector):
        found = list(evaluation.latest(argument))
        return unique_vector((without_name(labels) for labels, _, _ in found), (at_ms / 1000 for _, at_ms, _ in found))
    vector = evaluation.vector(argument)
    return unique_vector(map(without_name, vector.labels), np.full(len(vector), evaluation.moment.at_ms / 1000))


def _absent(evaluation: Evaluation, arguments: Arguments) -> Vector:
    if len(evaluation.vector(arguments[0])):
        return EMPTY
    argument = unwrapped(arguments[0])
    labels = _labels_looked_for(argument) if isinstance(argument, Selector) else {}
    return make_vector([labels], [1.0])


def _labels_looked_for(selector: Selector) -> Labels:
    """Return the labels that a selector asks for by equality, and by no second matcher after that."""
    found: dict[str, str] = {}
    for label, operator, value in matchers_of(selector):
        found[label] = value if operator == "=" and label not in found else ""
    return {label: value for label, value in found.items() if value and label != NAME}


def _label_replace(evaluation: Evaluation, arguments: Arguments) -> Vector:
    target, template, source, pattern = (_text(argument) for argument in arguments[1:])
    check_pattern(pattern, "label_replace")
    if not target:
        raise ExecutionError("invalid destination label name in label_replace(): ")
    compiled = compile_pattern(pattern)
    vector = evaluation.vector(arguments[0])
    labels = []
    for one in vector.labels:
        match = compiled.fullmatch(one.get(source, ""))
        labels.append(one if match is None else with_label(one, target, expand(template, match)))
    return unique_vector(labels, vector.values)


def _label_join(evaluation: Evaluation, arguments: Arguments) -> Vector:
    target, separator, *sources = (_text(argument) for argument in arguments[1:])
    if "" in sources:
        raise ExecutionError("invalid source label name in label_join(): ")
    if not target:
        raise ExecutionError("invalid destination label name in label_join(): ")
    vector = evaluation.vector(arguments[0])
    joined = (separator.join(one.get(source, "") for source in sources) for one in vector.labels)
    labels = [with_label(one, target, value) for one, value in zip(vector.labels, joined, strict=True)]
    return unique_vector(labels, vector.values)


def _histogram_quantile(evaluation: Evaluation, arguments: Arguments) -> Vector:
    q = evaluation.scalar(arguments[0])
    warn_of_quantile(evaluation, q)
    labels, values, bad = bucket_quantiles(q, evaluation.vector(arguments[1]))
    for le in bad:
        evaluation.warn(f'PromQL warning: bucket label "le" is missing or has a malformed value of "{le}"')
    return unique_vector(labels, values)


FUNCTIONS: Final[Mapping[str, Function]] = {
    **{name: _over_range(name) for name in OVER_RANGE},
    "quantile_over_time": _quantile_over_time,
    "absent_over_time": _absent_over_time,
    "abs": _each(np.abs),
    "ceil": _each(np.ceil),
    "floor": _each(np.floor),
    "sqrt": _each(np.sqrt),
    "exp": _each(np.exp),
    "ln": _each(np.log),
    "log2": _each(np.log2),
    "log10": _each(np.log10),
    "sgn": _each(np.sign),
    "round": _round,
    "clamp": _clamp_both,
    "clamp_min": _clamp_min,
    "clamp_max": _clamp_max,
    "scalar": _scalar,
    "vector": _vector,
    "time": _time,
    "timestamp": _timestamp,
    "absent": _absent,
    "label_replace": _label_replace,
    "label_join": _label_join,
    "histogram_quantile": _histogram_quantile,
}
