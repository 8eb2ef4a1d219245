"""The syntax tree. `start` and `end` are places in the text, in characters; `type` is that of the result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias

METRIC_NAME: Final = "__name__"


class Type(StrEnum):
    SCALAR = "scalar"
    VECTOR = "vector"
    MATRIX = "matrix"
    STRING = "string"


class Feature(StrEnum):
    """What a Prometheus reads only with `--enable-feature`."""

    FUNCTIONS = "promql-experimental-functions"
    DURATIONS = "promql-duration-expr"
    RANGES = "promql-extended-range-selectors"
    FILL = "promql-binop-fill-modifiers"


@dataclass(frozen=True, slots=True)
class Function:
    """What Prometheus knows of a function.

    variadic
        How many arguments there may be besides all but the last of `arguments`; negative: any number; 0: just these.
    """

    name: str
    arguments: tuple[Type, ...]
    returns: Type
    variadic: int = 0
    is_experimental: bool = False


@dataclass(frozen=True, slots=True)
class Matcher:
    """`operator` is one of `=`, `!=`, `=~` and `!~`."""

    label: str
    operator: str
    value: str


@dataclass(frozen=True, slots=True)
class Moved:
    """When something is read: seconds before the time of evaluation, and that time where `@` fixes it.

    offset_s
        One that is computed counts as in an instant query, where `step()` and `range()` are 0.
    at
        Unix seconds, or "start" or "end".
    """

    offset_s: float = 0.0
    at: float | str | None = None
    is_computed: bool = False


UNMOVED: Final = Moved()


@dataclass(frozen=True, slots=True, eq=False)
class Number:
    value: float
    start: int
    end: int
    type: Type = Type.SCALAR


@dataclass(frozen=True, slots=True, eq=False)
class String:
    value: str
    start: int
    end: int
    type: Type = Type.STRING


@dataclass(frozen=True, slots=True, eq=False)
class Selector:
    """`name` is what stands before the braces; a name within them is a matcher of METRIC_NAME.

    `end` is that of the name and the braces, before `offset` and `@`.
    """

    name: str
    matchers: tuple[Matcher, ...]
    start: int
    end: int
    moved: Moved = UNMOVED
    mode: str = ""
    """`anchored` or `smoothed`, empty for neither."""
    type: Type = Type.VECTOR


@dataclass(frozen=True, slots=True, eq=False)
class Range:
    """`is_computed` as in Moved."""

    selector: Selector
    range_s: float
    start: int
    end: int
    is_computed: bool = False
    type: Type = Type.MATRIX


@dataclass(frozen=True, slots=True, eq=False)
class Subquery:
    """`step_s` is None where the server's own interval is taken."""

    expr: Node
    range_s: float
    step_s: float | None
    start: int
    end: int
    moved: Moved = UNMOVED
    is_computed: bool = False
    is_step_computed: bool = False
    type: Type = Type.MATRIX


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    function: Function
    args: tuple[Node, ...]
    start: int
    end: int
    type: Type


@dataclass(frozen=True, slots=True, eq=False)
class Aggregation:
    """Grouped by nothing unless written."""

    op: str
    param: Node | None
    expr: Node
    grouping: tuple[str, ...]
    is_without: bool
    start: int
    end: int
    type: Type = Type.VECTOR


@dataclass(frozen=True, slots=True)
class Matching:
    """Which series of the two sides belong together.

    is_written
        Whether `on` or `ignoring` is; without, all labels count.
    is_on
        `labels` are the ones that count, else those that don't.
    many
        `left` or `right` where `group_left` or `group_right` says that this side has several; empty without.
    """

    is_written: bool = False
    is_on: bool = False
    labels: tuple[str, ...] = ()
    many: str = ""
    included: tuple[str, ...] = ()
    has_fill: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Binary:
    op: str
    lhs: Node
    rhs: Node
    matching: Matching
    is_bool: bool
    op_start: int
    start: int
    end: int
    type: Type


@dataclass(frozen=True, slots=True, eq=False)
class Unary:
    op: str
    expr: Node
    start: int
    end: int
    type: Type


@dataclass(frozen=True, slots=True, eq=False)
class Paren:
    expr: Node
    start: int
    end: int
    type: Type


Node: TypeAlias = Number | String | Selector | Range | Subquery | Call | Aggregation | Binary | Unary | Paren


@dataclass(frozen=True, slots=True, eq=False)
class Parsed:
    root: Node
    needs: frozenset[Feature] = field(default_factory=frozenset)


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case Range(selector=selector):
            return (selector,)
        case Call(args=args):
            return args
        case Aggregation(param=param, expr=expr):
            return (expr,) if param is None else (param, expr)
        case Binary(lhs=lhs, rhs=rhs):
            return (lhs, rhs)
        case Subquery(expr=expr) | Unary(expr=expr) | Paren(expr=expr):
            return (expr,)
        case _:
            return ()


def nodes_of(root: Node) -> list[Node]:
    """Return every node of the tree, the selector inside a range included; each before its children."""
    found: list[Node] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        found.append(node)
        waiting.extend(reversed(children(node)))
    return found


def innermost_first(root: Node) -> Iterator[Node]:
    """Yield every node after its children, from left to right."""
    waiting = [(root, False)]
    while waiting:
        node, is_ready = waiting.pop()
        if is_ready:
            yield node
            continue
        waiting.append((node, True))
        waiting.extend((child, False) for child in reversed(children(node)))


def unwrapped(node: Node) -> Node:
    """Return the node without parentheses around it."""
    while isinstance(node, Paren):
        node = node.expr
    return node
