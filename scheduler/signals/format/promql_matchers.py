"""PromQL with further matchers in each selector: what a server with `matchers` is asked in place of an expression.

Written at the places that the syntax tree has of its selectors, never where a text looks like one, and then parsed
again: what would not be the same tree with these matchers is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from scheduler.promql.nodes import Call, Matcher, Node, Selector, nodes_of
from scheduler.signals.format.promql import (
    ParsedQuery,
    QueryFault,
    parse_query,
    parse_tree,
    quote,
    quote_label,
    render_selector,
)

Matchers = tuple[tuple[str, str], ...]
"""Label names and the values that they must have; a name stands once."""

NO_MATCHERS: Final[Mapping[str, Matchers]] = MappingProxyType({})
"""Those of servers, by name, where none has any."""


def narrowed(expr: str, matchers: Matchers) -> str:
    """Return `expr` with the matchers in each of its selectors, beside those that it has: all of them must hold.

    A selector that asks for another value of the same label then finds nothing. The same matcher is not added twice.
    Without matchers, or without a selector, the text stays as it is.

    Raises
    ------
    ValueError
        Nobody can say what the expression selects; the message says why, and what to write.
    """
    if not matchers:
        return expr
    query = parse_query(expr)
    if not isinstance(query, ParsedQuery) or query.root is None:
        raise ValueError(f"not PromQL, so {_shown(matchers)} cannot be added to its selectors. Write it as PromQL")
    nodes = nodes_of(query.root)
    if any(isinstance(node, Call) and node.function.name == "info" for node in nodes):
        write = "Write a join, as `a * on (instance, job) group_left (x) target_info`"
        raise ValueError(f"info() also reads series that no matcher narrows to {_shown(matchers)}. {write}")
    text = expr
    for selector in sorted(_selectors(query.root), key=lambda one: one.start, reverse=True):
        text = text[: selector.start] + _with(selector, matchers) + text[selector.end :]
    if not _is_narrowed(query.root, text, matchers):
        raise ValueError(f"{_shown(matchers)} cannot be added to its selectors. Write a simpler expression")
    return text


def selector_text(matchers: Matchers) -> str:
    """Return matchers as they stand within braces, as `cluster="prod"`."""
    return ", ".join(f"{quote_label(name)}={quote(value)}" for name, value in matchers)


def _shown(matchers: Matchers) -> str:
    return f"{{{selector_text(matchers)}}}"


def _selectors(root: Node) -> list[Selector]:
    """Return each selector of a tree once, by its place."""
    return list({node.start: node for node in nodes_of(root) if isinstance(node, Selector)}.values())


def _missing(selector: Selector, matchers: Matchers) -> Matchers:
    """Return those that the selector does not have already."""
    has = {(one.label, one.value) for one in selector.matchers if one.operator == "="}
    return tuple(one for one in matchers if one not in has)


def _with(selector: Selector, matchers: Matchers) -> str:
    added, text = selector_text(_missing(selector, matchers)), render_selector(selector)
    if not added:
        return text
    return f"{text[:-1]}, {added}}}" if text.endswith("}") else f"{text}{{{added}}}"


def _is_narrowed(root: Node, text: str, matchers: Matchers) -> bool:
    """Return whether the text is the tree with the matchers in each selector, and else the same."""
    parsed = parse_tree(text)
    if isinstance(parsed, QueryFault):
        return False
    if [type(node) for node in nodes_of(root)] != [type(node) for node in nodes_of(parsed.root)]:
        return False
    pairs = zip(_selectors(root), _selectors(parsed.root), strict=True)
    return all(_parts(after) == _parts(before, _missing(before, matchers)) for before, after in pairs)


def _parts(selector: Selector, added: Matchers = ()) -> tuple[object, ...]:
    """Return what a selector says, with matchers added."""
    matchers = (*selector.matchers, *(Matcher(label, "=", value) for label, value in added))
    return selector.name, matchers, selector.moved, selector.mode
