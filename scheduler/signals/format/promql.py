"""PromQL as a rule file may use it: what an expression gives, how far it looks back and what it reads.

Nothing here asks a Prometheus; `scheduler.promql` reads as one does.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

from scheduler.promql.cursor import MAX_OPERATORS
from scheduler.promql.errors import PromQLError, TooLargeError
from scheduler.promql.nodes import METRIC_NAME, Call, Feature, Node, Parsed, Range, Selector, Subquery, Type, nodes_of
from scheduler.promql.parse import MAX_LENGTH, parse

__all__ = [
    "MAX_LENGTH",
    "MAX_OPERATORS",
    "OF_TWO_SAMPLES",
    "ParsedQuery",
    "QueryFault",
    "parse_query",
    "parse_tree",
    "rate_ranges",
    "reaches",
    "selectors",
]

OF_TWO_SAMPLES: Final = frozenset(
    {"rate", "irate", "increase", "delta", "idelta", "deriv", "predict_linear", "changes", "resets"}
)
"""Functions that compare samples of a range, and give nothing where there are fewer than two."""

_METRIC_NAME: Final = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")
_LABEL_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """An expression that parses and gives one number per series, or one number.

    `window_s` is its widest range selector or subquery, 0 without one; `selectors` are what it reads, as PromQL
    without offset, each once; `root` is the tree; `needs` is what a Prometheus must have switched on. One of another
    language, which nobody here can read, has no tree and none of these.
    """

    expr: str
    is_scalar: bool = False
    window_s: float = 0.0
    selectors: tuple[str, ...] = ()
    root: Node | None = None
    needs: frozenset[Feature] = frozenset()


@dataclass(frozen=True, slots=True)
class QueryFault:
    """Why an expression is refused; `offset` is the place in it.

    `reason` is the problem alone; `is_unread` where another dialect may well know what PromQL does not.
    """

    message: str
    offset: int = 0
    reason: str = ""
    is_unread: bool = False


def parse_query(expr: str) -> ParsedQuery | QueryFault:
    """Parse and type-check `expr`; whatever it holds, no exception."""
    parsed = parse_tree(expr)
    return parsed if isinstance(parsed, QueryFault) else _typed(expr, parsed)


def parse_tree(expr: str) -> Parsed | QueryFault:
    """Return the syntax tree of `expr`, of whatever type, or a QueryFault; whatever it holds, no exception."""
    try:
        return parse(expr)
    except TooLargeError as error:
        return QueryFault(f"{error.problem}. {error.advice}", error.offset)
    except PromQLError as error:
        if error.problem == "no expression":
            return QueryFault("no PromQL, got nothing. Write an expression, or drop the signal")
        return QueryFault(f"PromQL: {error.problem}. {error.advice}", error.offset, error.problem, is_unread=True)


def selectors(expr: str) -> list[str]:
    """Return the vector selectors that `expr` reads, as PromQL without offset; none where it does not parse."""
    query = parse_query(expr)
    return list(query.selectors) if isinstance(query, ParsedQuery) else []


def reaches(expr: str) -> dict[str, float]:
    """Return seconds by selector, as PromQL without offset: how old a sample may be that a range of `expr` still sees.

    0 where only the newest sample is read; nothing at all where `expr` does not parse. Within a subquery its range
    counts on top; with several subqueries all of them, which is more than any selector is read.
    """
    query = parse_query(expr)
    if not isinstance(query, ParsedQuery) or query.root is None:
        return {}
    nodes = nodes_of(query.root)
    outer_s = sum(_length_s(node) for node in nodes if isinstance(node, Subquery))
    found: dict[str, float] = {}
    for node in nodes:
        if isinstance(node, Selector):
            found.setdefault(render_selector(node), outer_s)
        elif isinstance(node, Range):
            selector = render_selector(node.selector)
            found[selector] = max(found.get(selector, 0.0), outer_s + _length_s(node))
    return found


def rate_ranges(expr: str) -> list[float]:
    """Return the ranges in seconds over which `expr` compares samples, and so needs two or more; none if unparsable."""
    query = parse_query(expr)
    if not isinstance(query, ParsedQuery) or query.root is None:
        return []
    calls = [node for node in nodes_of(query.root) if isinstance(node, Call) and node.function.name in OF_TWO_SAMPLES]
    return [_length_s(argument) for call in calls for argument in call.args if isinstance(argument, Range)]


def _typed(expr: str, parsed: Parsed) -> ParsedQuery | QueryFault:
    root = parsed.root
    if root.type is Type.MATRIX:
        write = "Put a function around it, as `rate(…)` or `max_over_time(…)`"
        return QueryFault(f"the result must be one number per series, got a range of samples. {write}", root.start)
    if root.type is Type.STRING:
        write = "Write an expression that gives numbers"
        return QueryFault(f"the result must be one number per series, got a string. {write}", root.start)
    nodes = nodes_of(root)
    return ParsedQuery(
        expr=expr,
        is_scalar=root.type is Type.SCALAR,
        window_s=max((_length_s(node) for node in nodes if isinstance(node, (Range, Subquery))), default=0.0),
        selectors=tuple(dict.fromkeys(render_selector(node) for node in nodes if isinstance(node, Selector))),
        root=root,
        needs=parsed.needs,
    )


def _length_s(node: Range | Subquery) -> float:
    """Return the seconds of a range; 0 of one that is computed to none, which a Prometheus refuses to evaluate."""
    return node.range_s if math.isfinite(node.range_s) and node.range_s > 0 else 0.0


def render_selector(selector: Selector) -> str:
    """Write a selector so that it parses again."""
    matchers = [
        f"{quote_label(matcher.label)}{matcher.operator}{quote(matcher.value)}" for matcher in selector.matchers
    ]
    name = selector.name
    if name and not _METRIC_NAME.fullmatch(name):
        matchers.insert(0, f"{METRIC_NAME}={quote(name)}")
        name = ""
    return name + (f"{{{', '.join(matchers)}}}" if matchers else "")


def quote_label(name: str) -> str:
    """Write the name of a label as PromQL takes it: quoted where it is more than letters, digits and `_`."""
    return name if _LABEL_NAME.fullmatch(name) else quote(name)


def quote(value: str) -> str:
    """Write a string in double quotes, as PromQL takes it; what can stand in none is escaped."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\ufffd", "\\ufffd")
    return '"' + re.sub("[\udc80-\udcff]", lambda byte: f"\\x{ord(byte.group()) - 0xDC00:02x}", escaped) + '"'
