"""From text to a syntax tree that can be evaluated; what lies outside the subset is found before."""

from __future__ import annotations

from typing import Final

from scheduler.evaluator.aggregations import AGGREGATIONS
from scheduler.evaluator.functions import FUNCTIONS
from scheduler.evaluator.values import PromQLSyntaxError, UnsupportedPromQLError
from scheduler.promql.errors import PromQLError, TooLargeError
from scheduler.promql.nodes import (
    Aggregation,
    Binary,
    Call,
    Node,
    Number,
    Paren,
    Parsed,
    Range,
    Selector,
    String,
    Subquery,
    Type,
    Unary,
    children,
    nodes_of,
)
from scheduler.promql.parse import parse as parse_promql

# Each level takes three Python frames of the evaluator, of a thousand that there are.
MAX_DEPTH: Final = 150

_OPERATORS: Final = frozenset(
    {"+", "-", "*", "/", "%", "^", "atan2", "==", "!=", "<", "<=", ">", ">=", "and", "or", "unless"}
)
_KINDS: Final[dict[type, str]] = {
    Number: "NumberLiteral",
    String: "StringLiteral",
    Selector: "VectorSelector",
    Range: "MatrixSelector",
    Subquery: "SubqueryExpr",
    Call: "Call",
    Aggregation: "AggregateExpr",
    Binary: "BinaryExpr",
    Unary: "UnaryExpr",
    Paren: "ParenExpr",
}


def kind_of(node: Node) -> str:
    """Return what Prometheus calls such a node."""
    return _KINDS[type(node)]


def parse(expr: str) -> Node:
    """Return the syntax tree.

    Raises
    ------
    PromQLSyntaxError
        Not PromQL, or of the wrong type.
    UnsupportedPromQLError
        With the first node that is outside the subset.
    """
    try:
        parsed = parse_promql(expr)
    except TooLargeError as error:
        raise UnsupportedPromQLError("Expr", error.problem) from error
    except PromQLError as error:
        message = f"1:{error.offset + 1}: parse error: {error.problem}. {error.advice}"
        raise PromQLSyntaxError(message) from error
    root = parsed.root
    for node in nodes_of(root):
        _check_node(node)
    _check_features(parsed)
    if root.type in (Type.MATRIX, Type.STRING):
        raise UnsupportedPromQLError(kind_of(_result(root)), "as the result of a query")
    _check_depth(root)
    return root


def _check_node(node: Node) -> None:
    if isinstance(node, Subquery) and node.step_s is None:
        # A Prometheus takes its evaluation interval then, which is a setting of the server.
        raise UnsupportedPromQLError("SubqueryExpr", "without a step")
    if isinstance(node, Call) and node.function.name not in FUNCTIONS:
        raise UnsupportedPromQLError(f"Call {node.function.name}")
    if isinstance(node, Aggregation) and node.op not in AGGREGATIONS:
        raise UnsupportedPromQLError(f"AggregateExpr {node.op}")
    if isinstance(node, Binary):
        if node.matching.has_fill:
            raise UnsupportedPromQLError("BinaryExpr fill")
        if node.op not in _OPERATORS:
            raise UnsupportedPromQLError(f"BinaryExpr {node.op}")


def _check_features(parsed: Parsed) -> None:
    if parsed.needs:
        raise UnsupportedPromQLError("Expr", f"needs {', '.join(sorted(parsed.needs))}")


def _result(root: Node) -> Node:
    """Return what a range or a string comes from."""
    while isinstance(root, Paren):
        root = root.expr
    return root


def _check_depth(root: Node) -> None:
    deepest, level = 0, [root]
    while level:
        deepest += 1
        level = [child for node in level for child in children(node)]
    if deepest > MAX_DEPTH:
        raise UnsupportedPromQLError(kind_of(root), f"nested {deepest} levels deep, at most {MAX_DEPTH}")
