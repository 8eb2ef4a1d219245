"""The way in: an expression, or why it is none."""

from __future__ import annotations

from typing import Final

from scheduler.promql.checks import check
from scheduler.promql.cursor import Cursor
from scheduler.promql.errors import TooLargeError
from scheduler.promql.grammar import read_expression
from scheduler.promql.nodes import Parsed

MAX_LENGTH: Final = 16_384


def parse(text: str) -> Parsed:
    """Return the tree of an expression of any type, and which features of Prometheus it needs.

    Raises
    ------
    PromQLError
        Where Prometheus refuses it, whatever its features.
    TooLargeError
        Where it is larger than what is read here.
    """
    if len(text) > MAX_LENGTH:
        problem = f"longer than {MAX_LENGTH} characters, got {len(text)}"
        raise TooLargeError(problem, "Record a part of it with a recording rule", 0)
    cursor = Cursor(text)
    root = read_expression(cursor)
    check(root)
    return Parsed(root, frozenset(cursor.needs))
