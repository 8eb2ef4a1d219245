"""From tokens to a tree: operators by how tightly they bind, and what stands between them."""

from __future__ import annotations

from typing import Final

from scheduler.promql.cursor import Cursor
from scheduler.promql.errors import PromQLError
from scheduler.promql.functions import AGGREGATIONS, EXPERIMENTAL_AGGREGATIONS, FUNCTIONS
from scheduler.promql.lexer import END, METRIC, STRING, WORD, Token
from scheduler.promql.nodes import (
    Aggregation,
    Binary,
    Call,
    Feature,
    Matching,
    Node,
    Number,
    Paren,
    String,
    Type,
    Unary,
)
from scheduler.promql.selectors import MODIFIERS, read_modifier, read_selector

_POWER: Final = 6
_PRECEDENCE: Final = {
    "or": 1,
    **dict.fromkeys(("and", "unless"), 2),
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "</", ">/"), 3),
    **dict.fromkeys(("+", "-"), 4),
    **dict.fromkeys(("*", "/", "%", "atan2"), 5),
    "^": _POWER,
}
_TIME_FUNCTIONS: Final = frozenset({"start", "end", "step", "range", "max_of", "min_of"})
"""Words that are functions with a parenthesis behind, and metrics without."""
_NAMES: Final = frozenset(
    {WORD, METRIC, *AGGREGATIONS, *_TIME_FUNCTIONS, "and", "or", "unless", "by", "without", "offset"}
    | {"anchored", "smoothed"}
)
_LABELS: Final = (_NAMES - {"without"}) | {"atan2", "bool", "group_left", "group_right", "ignoring", "on"}
_FILL: Final = ("fill", "fill_left", "fill_right")


def read_expression(cursor: Cursor) -> Node:
    """Read all there is."""
    root = _expression(cursor, 0)
    if cursor.kind != END:
        cursor.refuse("", "an operator, or nothing,")
    return root


def _expression(cursor: Cursor, least: int) -> Node:
    """Read as much as is held together by operators that bind at least so tightly."""
    cursor.enter()
    left = _operand(cursor)
    while (precedence := _PRECEDENCE.get(cursor.kind, -1)) >= least:
        op = cursor.take()
        is_bool = cursor.accept("bool")
        matching = _matching(cursor)
        right = _expression(cursor, precedence if op.kind == "^" else precedence + 1)
        kind = Type.SCALAR if left.type is right.type is Type.SCALAR else Type.VECTOR
        left = Binary(op.kind, left, right, matching, is_bool, op.start, left.start, cursor.end, kind)
    cursor.leave()
    return left


def _operand(cursor: Cursor) -> Node:
    token = cursor.token
    if token.kind in ("+", "-"):
        cursor.take()
        # As tight as a product: the sign is of what a power gives.
        inner = _expression(cursor, _POWER)
        if isinstance(inner, Number):
            return Number(-inner.value if token.kind == "-" else inner.value, token.start, inner.end)
        return Unary(token.kind, inner, token.start, cursor.end, inner.type)
    node = _primary(cursor, token)
    while cursor.kind in MODIFIERS:
        node = read_modifier(cursor, node)
    return node


def _primary(cursor: Cursor, token: Token) -> Node:
    kind, behind = token.kind, cursor.kind_behind
    if kind == "(":
        cursor.take()
        inner = _expression(cursor, 0)
        cursor.expect(")", "")
        return Paren(inner, token.start, cursor.end, inner.type)
    if kind in AGGREGATIONS and behind in ("(", "by", "without"):
        return _aggregation(cursor)
    if behind == "(" and (kind == WORD or kind in _TIME_FUNCTIONS):
        return _call(cursor)
    if kind in _NAMES:
        return read_selector(cursor, cursor.take())
    if kind == "{":
        return read_selector(cursor, None)
    if kind in ("number", "duration"):
        return Number(cursor.number(), token.start, token.end)
    if kind == STRING:
        return String(cursor.string(), token.start, token.end)
    cursor.refuse("", "a metric, a number, a function or an aggregation")


def _arguments(cursor: Cursor) -> tuple[Node, ...]:
    cursor.expect("(", "")
    if cursor.accept(")"):
        return ()
    found = [_expression(cursor, 0)]
    while cursor.kind == ",":
        comma = cursor.take()
        if cursor.kind in (")", ","):
            raise PromQLError("trailing comma in the arguments", "Remove it", comma.start)
        found.append(_expression(cursor, 0))
    cursor.expect(")", "the arguments")
    return tuple(found)


def _call(cursor: Cursor) -> Call:
    name = cursor.take()
    args = _arguments(cursor)
    function = FUNCTIONS.get(name.text)
    if function is None:
        write = "Write a function that Prometheus knows, or `dialect: metricsql` in a file for VictoriaMetrics"
        raise PromQLError(f"unknown function {name.text!r}", write, name.start)
    if function.is_experimental:
        cursor.needs.add(Feature.FUNCTIONS)
    return Call(function, args, name.start, cursor.end, function.returns)


def _aggregation(cursor: Cursor) -> Aggregation:
    op = cursor.take()
    modifier = _grouping(cursor)
    args = _arguments(cursor)
    is_without, grouping = modifier or _grouping(cursor) or (False, ())
    if not args:
        raise PromQLError(f"nothing is aggregated by {op.text}", f"Write `{op.text}(…)`", op.start)
    if op.kind in EXPERIMENTAL_AGGREGATIONS:
        cursor.needs.add(Feature.FUNCTIONS)
    wanted = 1 if AGGREGATIONS[op.kind] is None else 2
    if len(args) != wanted:
        problem = f"wrong number of arguments of {op.text}, expected {wanted}, got {len(args)}"
        raise PromQLError(problem, f"Write `{op.text}({', '.join(['…'] * wanted)})`", op.start)
    param = args[0] if wanted == 2 else None
    return Aggregation(op.kind, param, args[-1], grouping, is_without, op.start, cursor.end)


def _grouping(cursor: Cursor) -> tuple[bool, tuple[str, ...]] | None:
    if cursor.kind not in ("by", "without"):
        return None
    is_without = cursor.take().kind == "without"
    return is_without, _labels(cursor)


def _labels(cursor: Cursor) -> tuple[str, ...]:
    cursor.expect("(", "labels")
    found: list[str] = []
    while not cursor.accept(")"):
        label = cursor.token
        if label.kind in _LABELS:
            found.append(cursor.take().text)
        elif label.kind == STRING:
            found.append(cursor.string())
            if not found[-1] or _is_broken(found[-1]):
                raise PromQLError(f"no name of a label, got {label.text}", "Write one, as `instance`", label.start)
        else:
            cursor.refuse("labels", "the name of a label")
        if cursor.kind != ")" and not cursor.accept(","):
            cursor.refuse("labels", "`,` or `)`")
    return tuple(found)


def _is_broken(name: str) -> bool:
    """Whether it holds bytes that are no UTF-8."""
    return any("\ud800" <= char <= "\udfff" for char in name)


def _matching(cursor: Cursor) -> Matching:
    is_written, is_on = cursor.kind in ("on", "ignoring"), cursor.kind == "on"
    labels: tuple[str, ...] = ()
    included: tuple[str, ...] = ()
    many = ""
    if is_written:
        cursor.take()
        labels = _labels(cursor)
        if cursor.kind in ("group_left", "group_right"):
            many = cursor.take().kind.removeprefix("group_")
            included = _labels(cursor) if cursor.kind == "(" else ()
    has_fill = cursor.kind in _FILL
    if has_fill:
        _fill(cursor)
    return Matching(is_written, is_on, labels, many, included, has_fill)


def _fill(cursor: Cursor) -> None:
    """Read values for series without a partner: for both sides, or for each once."""
    cursor.needs.add(Feature.FILL)
    first = _fill_value(cursor)
    if first != "fill" and cursor.kind in _FILL[1:] and cursor.kind != first:
        _fill_value(cursor)


def _fill_value(cursor: Cursor) -> str:
    side = cursor.take().kind
    cursor.expect("(", side)
    if cursor.kind in ("+", "-"):
        cursor.take()
    cursor.number()
    cursor.expect(")", side)
    return side
