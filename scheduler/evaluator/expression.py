"""From text to a syntax tree that can be evaluated; what lies outside the subset is found before."""

from __future__ import annotations

import re
from typing import Any, Final

import promql_parser as ast

from scheduler.evaluator.aggregations import AGGREGATIONS
from scheduler.evaluator.functions import FUNCTIONS
from scheduler.evaluator.values import PromQLSyntaxError, UnsupportedPromQLError
from scheduler.signals.format.promql import QueryFault, nodes_of, parse_tree

# Each level takes three Python frames of the evaluator, of a thousand that there are.
MAX_DEPTH: Final = 150

# The parser's library ends the thread when asked for a time before 1970.
_NEGATIVE_AT: Final = re.compile(r"@\s*-")
_STRING: Final = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|`[^`]*`|#[^\n]*')


def parse(expr: str) -> Any:
    """Return the syntax tree.

    Raises
    ------
    PromQLSyntaxError
        Not PromQL, or of the wrong type.
    UnsupportedPromQLError
        With the first node that is outside the subset.
    """
    root = parse_tree(expr)
    if isinstance(root, QueryFault):
        raise PromQLSyntaxError(f"1:{root.offset + 1}: parse error: {root.message}")
    nodes = nodes_of(root)
    if any(isinstance(node, ast.VectorSelector) and node.matchers.or_matchers for node in nodes):
        raise PromQLSyntaxError("parse error: `or` inside braces is not PromQL. Write `a{…} or a{…}`")
    for node in nodes:
        _check_node(node)
    if _NEGATIVE_AT.search(_STRING.sub("", expr)):
        raise UnsupportedPromQLError("AtModifier", "a time before 1970")
    if isinstance(root, (ast.MatrixSelector, ast.SubqueryExpr, ast.StringLiteral)):
        raise UnsupportedPromQLError(type(root).__name__, "as the result of a query")
    _check_depth(root)
    return root


def _check_node(node: Any) -> None:
    if isinstance(node, ast.SubqueryExpr) and node.step is None:
        # A Prometheus takes its evaluation interval then, which is a setting of the server.
        raise UnsupportedPromQLError("SubqueryExpr", "without a step")
    if isinstance(node, ast.Call) and node.func.name not in FUNCTIONS:
        raise UnsupportedPromQLError(f"Call {node.func.name}")
    if isinstance(node, ast.AggregateExpr) and str(node.op) not in AGGREGATIONS:
        raise UnsupportedPromQLError(f"AggregateExpr {node.op}")
    if isinstance(node, ast.BinaryExpr) and node.modifier is not None:
        fill = node.modifier.fill_values
        if fill is not None and (fill.lhs is not None or fill.rhs is not None):
            raise UnsupportedPromQLError("BinaryExpr fill")


def _check_depth(root: Any) -> None:
    depth = deepest = 0

    def enter(_: Any) -> None:
        nonlocal depth, deepest
        depth += 1
        deepest = max(deepest, depth)

    def leave(_: Any) -> None:
        nonlocal depth
        depth -= 1

    ast.walk(root, enter, leave)
    if deepest > MAX_DEPTH:
        raise UnsupportedPromQLError(type(root).__name__, f"nested {deepest} levels deep, at most {MAX_DEPTH}")
