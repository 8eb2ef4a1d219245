"""What stands between `[` and `]` and behind `offset`: a duration, or one that is computed."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from scheduler.promql.cursor import Cursor
from scheduler.promql.errors import PromQLError
from scheduler.promql.literals import LONGEST_S
from scheduler.promql.nodes import Feature

_SUM, _PRODUCT, _POWER = 1, 2, 3
_PRECEDENCE: Final = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "%": _PRODUCT, "^": _POWER}
_EXPECTED: Final = "a number, a duration, `step()` or `range()`"


class Span(NamedTuple):
    """Seconds, and whether they are computed; `step()` and `range()` are 0, as in an instant query."""

    seconds: float
    is_computed: bool = False


def read_range(cursor: Cursor) -> Span:
    """Read a duration that has to be above 0."""
    start = cursor.token.start
    span = _expression(cursor, 0)
    if not span.is_computed and span.seconds <= 0:
        raise PromQLError("the duration must be greater than 0", "Write one as `[5m]`", start)
    return span


def read_offset(cursor: Cursor) -> Span:
    """Read what stands behind `offset`; arithmetic belongs to it in parentheses only."""
    start, sign = cursor.token.start, cursor.kind
    if sign in ("+", "-") and cursor.kind_behind not in ("+", "-"):
        cursor.take()
        if cursor.accept("("):
            span = _expression(cursor, 0)
            cursor.expect(")", "an offset")
        else:
            span = _operand(cursor)
        return _signed(span, sign, start)
    if sign not in ("+", "-", "("):
        return _operand(cursor)
    return _more(cursor, _operand(cursor), 0)


def _expression(cursor: Cursor, least: int) -> Span:
    cursor.enter()
    span = _more(cursor, _operand(cursor), least)
    cursor.leave()
    return span


def _more(cursor: Cursor, left: Span, least: int) -> Span:
    """Read the operators that bind at least so tightly, and what stands to their right."""
    while (precedence := _PRECEDENCE.get(cursor.kind, -1)) >= least:
        cursor.needs.add(Feature.DURATIONS)
        sign = cursor.take()
        right = _expression(cursor, precedence if sign.kind == "^" else precedence + 1)
        if sign.kind in "/%" and not right.is_computed and right.seconds == 0:
            raise PromQLError("division by zero in a duration", "Divide by another number", sign.start)
        left = Span(_COMPUTE[sign.kind](left.seconds, right.seconds), is_computed=True)
    return left


def _operand(cursor: Cursor) -> Span:
    token = cursor.token
    if token.kind in ("+", "-"):
        cursor.take()
        return _signed(_expression(cursor, _POWER), token.kind, token.start)
    if token.kind in ("step", "range"):
        cursor.needs.add(Feature.DURATIONS)
        cursor.take()
        cursor.expect("(", "a duration")
        cursor.expect(")", "a duration")
        return Span(0.0, is_computed=True)
    if token.kind in ("max_of", "min_of"):
        return _chosen(cursor)
    if token.kind == "(":
        cursor.needs.add(Feature.DURATIONS)
        cursor.take()
        span = _expression(cursor, 0)
        cursor.expect(")", "a duration")
        return span
    if token.kind not in ("number", "duration"):
        cursor.refuse("a duration", _EXPECTED)
    return _checked(Span(cursor.number()), token.start)


def _chosen(cursor: Cursor) -> Span:
    cursor.needs.add(Feature.DURATIONS)
    choose = max if cursor.take().kind == "max_of" else min
    cursor.expect("(", "a duration")
    one = _expression(cursor, 0)
    cursor.expect(",", "a duration")
    other = _expression(cursor, 0)
    cursor.expect(")", "a duration")
    return Span(choose(one.seconds, other.seconds), is_computed=True)


def _signed(span: Span, sign: str, start: int) -> Span:
    signed = span._replace(seconds=-span.seconds) if sign == "-" else span
    return signed if signed.is_computed else _checked(signed, start)


def _checked(span: Span, start: int) -> Span:
    if abs(span.seconds) > LONGEST_S:
        raise PromQLError("a range or offset of more than 292 years", "Write a shorter one", start)
    return span


def _defined(compute: Callable[[float, float], float]) -> Callable[[float, float], float]:
    def function(left: float, right: float) -> float:
        try:
            return compute(left, right)
        except OverflowError:
            return math.inf
        except (ValueError, ZeroDivisionError):
            return math.nan

    return function


_COMPUTE: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _defined(operator.truediv),
    "%": _defined(math.fmod),
    "^": _defined(math.pow),
}
