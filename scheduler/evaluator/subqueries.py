"""Subqueries: what an expression gives at the steps of a range, as if those were samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Final

import numpy as np
import promql_parser as ast

from scheduler.evaluator.selectors import Moment, Window, reference_ms
from scheduler.evaluator.values import LabelKey, Labels, Vector, label_key

_MILLISECOND: Final = timedelta(milliseconds=1)


def subquery_windows(
    node: ast.SubqueryExpr, moment: Moment, evaluated_at: Callable[[Moment], Vector]
) -> Iterator[Window]:
    """Yield the results of each series within the range; steps lie at whole multiples of the step since 1970.

    `evaluated_at` gives the inner expression at a moment.
    """
    end_ms = reference_ms(node, moment)
    step_ms, start_ms = _milliseconds(node.step), end_ms - _milliseconds(node.range)
    found: dict[LabelKey, tuple[Labels, list[int], list[float]]] = {}
    for at_ms in range((start_ms // step_ms + 1) * step_ms, end_ms + 1, step_ms):
        vector = evaluated_at(replace(moment, at_ms=at_ms))
        for labels, value in zip(vector.labels, vector.values.tolist(), strict=True):
            _, times, values = found.setdefault(label_key(labels), (labels, [], []))
            times.append(at_ms)
            values.append(value)
    for labels, times, values in found.values():
        yield Window(labels, np.array(times, dtype=np.int64), np.array(values), start_ms, end_ms)


def _milliseconds(span: timedelta | None) -> int:
    # `expression.parse` has refused a subquery without a step.
    return 0 if span is None else span // _MILLISECOND
