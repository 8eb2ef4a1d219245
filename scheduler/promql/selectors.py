"""Selectors and what may stand behind them: ranges, subqueries, `offset`, `@`, `anchored` and `smoothed`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from scheduler.promql.cursor import Cursor
from scheduler.promql.durations import read_offset, read_range
from scheduler.promql.errors import PromQLError
from scheduler.promql.lexer import STRING, WORD, Token
from scheduler.promql.literals import LONGEST_S
from scheduler.promql.nodes import METRIC_NAME, Feature, Matcher, Moved, Node, Range, Selector, Subquery
from scheduler.promql.regex import regex_fault

MODIFIERS: Final = frozenset({"[", "offset", "@", "anchored", "smoothed"})

_MATCH_OPERATORS: Final = frozenset({"=", "!=", "=~", "!~"})
_MATCHER: Final = 'a matcher as `label="value"`'


def read_selector(cursor: Cursor, name: Token | None) -> Selector:
    """Read the braces, which there need not be behind a name."""
    start = cursor.token.start if name is None else name.start
    matchers: list[Matcher] = []
    if name is None or cursor.kind == "{":
        cursor.expect("{", "a selector")
        while not cursor.accept("}"):
            matchers.append(_matcher(cursor))
            if cursor.token.text == "or":
                write = "Write `a{…} or a{…}`, or a regular expression"
                raise PromQLError("`or` inside braces is not known to Prometheus", write, cursor.token.start)
            if cursor.kind != "}" and not cursor.accept(","):
                cursor.refuse("a selector", "`,` or `}`")
    return Selector("" if name is None else name.text, tuple(matchers), start, cursor.end)


def _matcher(cursor: Cursor) -> Matcher:
    label = cursor.token
    if label.kind == STRING:
        text = cursor.string()
        if cursor.kind not in _MATCH_OPERATORS:
            return Matcher(METRIC_NAME, "=", text)
    elif label.kind == WORD:
        text = cursor.take().text
    else:
        cursor.refuse("a selector", _MATCHER)
    operator = cursor.kind
    if operator not in _MATCH_OPERATORS:
        cursor.refuse("a selector", "`=`, `!=`, `=~` or `!~`")
    cursor.take()
    value = cursor.token
    if value.kind != STRING:
        cursor.refuse("a selector, expected string", f'a string, as `{label.text}{operator}"value"`,')
    matcher = Matcher(text, operator, cursor.string())
    if operator in ("=~", "!~") and (fault := regex_fault(matcher.value)):
        raise PromQLError(f"regular expression {value.text}: {fault.problem}", fault.advice, value.start)
    return matcher


def read_modifier(cursor: Cursor, node: Node) -> Node:
    """Read one of MODIFIERS behind a node."""
    token = cursor.take()
    if token.kind == "[":
        return _ranged(cursor, node, token)
    if token.kind == "offset":
        return _offset(cursor, node, token)
    if token.kind == "@":
        return _pinned(cursor, node, token)
    return _extended(cursor, node, token)


def _ranged(cursor: Cursor, node: Node, bracket: Token) -> Node:
    span = read_range(cursor)
    if cursor.accept(":"):
        step = None if cursor.kind == "]" else read_range(cursor)
        cursor.expect("]", "a subquery")
        step_s, is_step_computed = (None, False) if step is None else step
        return Subquery(
            node,
            span.seconds,
            step_s,
            node.start,
            cursor.end,
            is_computed=span.is_computed,
            is_step_computed=is_step_computed,
        )
    cursor.expect("]", "a range")
    write = "Write `[5m:]` for a subquery, or the range right behind the selector"
    if not isinstance(node, Selector):
        raise PromQLError("a range is only allowed behind a selector", write, bracket.start)
    # One that is computed, or `@ start()`, a Prometheus lets pass.
    if (node.moved.offset_s and not node.moved.is_computed) or isinstance(node.moved.at, float):
        raise PromQLError("no `offset` or `@` is allowed before a range", "Write it behind the range", bracket.start)
    return Range(node, span.seconds, node.start, cursor.end, span.is_computed)


def _moved(node: Node, token: Token) -> Moved:
    if isinstance(node, Range):
        return node.selector.moved
    if isinstance(node, (Selector, Subquery)):
        return node.moved
    write = "Write it right behind a selector or its range"
    raise PromQLError(f"`{token.kind}` must follow a selector, a range or a subquery", write, token.start)


def _with(cursor: Cursor, node: Node, moved: Moved) -> Node:
    if isinstance(node, Range):
        return replace(node, selector=replace(node.selector, moved=moved), end=cursor.end)
    if isinstance(node, Subquery):
        return replace(node, moved=moved, end=cursor.end)
    return replace(node, moved=moved) if isinstance(node, Selector) else node


def _offset(cursor: Cursor, node: Node, token: Token) -> Node:
    span = read_offset(cursor)
    moved = _moved(node, token)
    if moved.offset_s or moved.is_computed:
        raise PromQLError("`offset` may not be set twice", "Write one", token.start)
    return _with(cursor, node, replace(moved, offset_s=_to_nanoseconds(span.seconds), is_computed=span.is_computed))


def _to_nanoseconds(seconds: float) -> float:
    """Return an offset as a Prometheus keeps it: what is less than half a nanosecond is none."""
    if math.isnan(seconds):
        return -LONGEST_S
    return 0.0 if abs(seconds) * 1e9 < 0.5 else seconds


def _pinned(cursor: Cursor, node: Node, token: Token) -> Node:
    at: float | str
    if cursor.kind in ("start", "end"):
        at = cursor.take().kind
        cursor.expect("(", "`@`")
        cursor.expect(")", "`@`")
    else:
        sign = cursor.take().kind if cursor.kind in ("+", "-") else ""
        if cursor.kind not in ("number", "duration"):
            cursor.refuse("`@`", "Unix seconds, `start()` or `end()`")
        number = cursor.number()
        at = -number if sign == "-" else number
        if not abs(at) < 2**63:
            raise PromQLError("the time behind `@` is out of bounds", "Write Unix seconds", token.start)
    moved = _moved(node, token)
    if moved.at is not None:
        raise PromQLError("`@` may not be set twice", "Write one", token.start)
    return _with(cursor, node, replace(moved, at=at))


def _extended(cursor: Cursor, node: Node, token: Token) -> Node:
    cursor.needs.add(Feature.RANGES)
    selector = node.selector if isinstance(node, Range) else node
    if not isinstance(selector, Selector):
        write = "Write it behind a selector or its range"
        raise PromQLError(f"`{token.kind}` is only allowed behind a selector", write, token.start)
    if selector.mode not in ("", token.kind):
        raise PromQLError("`anchored` and `smoothed` cannot be used together", "Write one of them", token.start)
    selector = replace(selector, mode=token.kind)
    return replace(node, selector=selector, end=cursor.end) if isinstance(node, Range) else selector
