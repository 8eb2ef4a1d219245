"""How far back an expression reads each of its selectors."""

from __future__ import annotations

from datetime import timedelta

import promql_parser as ast

from scheduler.signals.format.promql import Query, nodes_of, parse_query, render_selector


def reaches(expr: str) -> dict[str, float]:
    """Return seconds by selector, as PromQL without offset: how old a sample may be that a range of `expr` still sees.

    0 where only the newest sample is read; nothing at all where `expr` does not parse. Within a subquery its range
    counts on top; with several subqueries all of them, which is more than any selector is read.
    """
    query = parse_query(expr)
    if not isinstance(query, Query) or query.root is None:
        return {}
    nodes = nodes_of(query.root)
    outer_s = sum(_seconds(node.range) for node in nodes if isinstance(node, ast.SubqueryExpr))
    found: dict[str, float] = {}
    for node in nodes:
        if isinstance(node, ast.VectorSelector):
            found.setdefault(render_selector(node), outer_s)
        elif isinstance(node, ast.MatrixSelector):
            selector = render_selector(node.vector_selector)
            found[selector] = max(found.get(selector, 0.0), outer_s + _seconds(node.range))
    return found


def _seconds(span: timedelta | None) -> float:
    return 0.0 if span is None else span.total_seconds()
