"""What the arguments of kube-scheduler's plugins are checked for, with the way to each mistake.

Source: kube-scheduler v1.37 apis/config/validation/validation_pluginargs.go (behaviour).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from scheduler.errors import InvalidObjectError
from scheduler.model.labels import is_label_key
from scheduler.model.objects import NodeSelectorTerm
from scheduler.model.selectors import check_term, is_empty_term
from scheduler.strict_yaml.document import Location

Mistake = tuple[Location, str]
"""The way from the arguments to a value in them, and what was found and what to write instead."""

MAX_SHAPE_SCORE: Final = 10


def within(step: str | int, mistakes: Iterator[Mistake]) -> Iterator[Mistake]:
    """Yield mistakes one step further down."""
    for way, message in mistakes:
        yield (step, *way), message


def duplicates(items: Sequence[Hashable]) -> Iterator[int]:
    """Yield the numbers of the items that stand before as well."""
    seen: set[Hashable] = set()
    for i, item in enumerate(items):
        if item in seen:
            yield i
        seen.add(item)


def name_mistakes(at: Location, name: str) -> Iterator[Mistake]:
    if not is_label_key(name):
        yield at, f"must be a qualified name, got {name!r}. Write for example example.com/name"


def shape_mistakes(points: Sequence[tuple[int, int]]) -> Iterator[Mistake]:
    """Yield what is wrong with the points (per cent of use, score) of a `shape`."""
    if not points:
        yield ("shape",), "must have at least one point, got none. Write utilization and score"
    for i, ((before, _), (percent, _)) in enumerate(pairwise(points), start=1):
        if before >= percent:
            yield ("shape", i, "utilization"), f"must rise from point to point, got {percent} after {before}. Sort them"
            break
    for i, (percent, score) in enumerate(points):
        if not 0 <= percent <= 100:
            yield ("shape", i, "utilization"), f"must be from 0 to 100, got {percent}. Write a utilization in per cent"
        if not 0 <= score <= MAX_SHAPE_SCORE:
            yield ("shape", i, "score"), f"must be from 0 to {MAX_SHAPE_SCORE}, got {score}. Write for example 5"


def term_mistakes(at: Location, term: NodeSelectorTerm) -> Iterator[Mistake]:
    """Yield the first thing that keeps a term from being read; an empty one matches nothing, and may stand."""
    if is_empty_term(term):
        return
    try:
        check_term(term)
    except InvalidObjectError as error:
        yield at, str(error)
