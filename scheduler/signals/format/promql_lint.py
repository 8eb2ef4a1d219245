"""What is valid PromQL, yet seldom what a rule file means."""

from __future__ import annotations

from typing import Any, Final

import promql_parser as ast

from scheduler.model.rules import ByKind
from scheduler.signals.format.promql import ParsedQuery, nodes_of

_COMPARISONS: Final = ("==", "!=", "<", "<=", ">", ">=")


def lint_query(query: ParsedQuery, by: ByKind, *, is_reduced: bool) -> list[str]:
    """Return warnings in words; `is_reduced` where the signal says how several series become one."""
    warnings = _experimental(query)
    if by is ByKind.CLUSTER:
        return warnings + _several_series(query.root)
    if _filters(query.root):
        write = "Write `bool` after the comparison, or leave the limit to the rule"
        warnings.append(f"a comparison drops series, and a dropped series means a missing value. {write}")
    # Of cards there usually is one series each.
    return warnings if by is ByKind.GPU else warnings + _node_keyed(query, is_reduced=is_reduced)


def _node_keyed(query: ParsedQuery, *, is_reduced: bool) -> list[str]:
    nodes = nodes_of(query.root)
    if is_reduced or any(isinstance(node, ast.AggregateExpr) for node in nodes):
        return []
    names = [node.name or "" for node in nodes if isinstance(node, ast.VectorSelector)]
    # A recorded series has been aggregated by its rule; by convention only those have a colon.
    if not names or all(":" in name for name in names):
        return []
    return [
        "nothing is aggregated, and several series of one node are an error. "
        "Write `max by (instance) (…)` or `reduce: max`"
    ]


def _several_series(root: Any) -> list[str]:
    top = _unwrapped(root)
    if isinstance(top, ast.AggregateExpr) and top.modifier is not None and top.modifier.labels:
        return ["the aggregation keeps labels, and `by: cluster` means one series. Write `sum(…)`, or another `by`"]
    return []


def _experimental(query: ParsedQuery) -> list[str]:
    calls = [node.func.name for node in nodes_of(query.root) if isinstance(node, ast.Call) and node.func.experimental]
    write = "Start Prometheus with --enable-feature=promql-experimental-functions"
    return [f"the function {name} is experimental. {write}" for name in dict.fromkeys(calls)]


def _filters(root: Any) -> bool:
    top = _unwrapped(root)
    if not isinstance(top, ast.BinaryExpr):
        return False
    return str(top.op) in _COMPARISONS and not (top.modifier is not None and top.modifier.return_bool)


def _unwrapped(node: Any) -> Any:
    while isinstance(node, (ast.ParenExpr, ast.UnaryExpr)):
        node = node.expr
    return node
