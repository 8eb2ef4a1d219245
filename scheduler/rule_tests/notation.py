"""Input series as promtool writes them: `up{node="a"}` and `0+10x5 _ stale`."""

from __future__ import annotations

import re
from typing import Final

from scheduler.evaluator.store import STALE_NAN
from scheduler.evaluator.values import NAME, Labels
from scheduler.promql.nodes import UNMOVED, Selector
from scheduler.signals.format.promql import QueryFault, parse_tree

MAX_VALUES: Final = 100_000
"""Of one series."""

_FLOAT: Final = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[iI]nf|[nN]a[nN]"
_ITEM: Final = re.compile(
    rf"(?P<first>[+-]?(?:{_FLOAT})|_|stale)(?P<step>[+-](?:{_FLOAT}))?(?:x(?P<times>[0-9]{{1,9}}))?"
)
_SHOWN: Final = (
    "Write values as promtool takes them: `0.5`, `0+10x5`, `1x5`, `_`, `_x5` or `stale`, with spaces between"
)


class NotationError(ValueError):
    """Text that is no series or no values; `offset` is the place in it."""

    def __init__(self, message: str, offset: int = 0) -> None:
        self.offset = offset
        super().__init__(message)


def parse_series(text: str) -> Labels:
    """Return the labels of a series, its name among them.

    Raises
    ------
    NotationError
        With what is wrong and what to write.
    """
    parsed = parse_tree(text)
    if isinstance(parsed, QueryFault):
        raise NotationError(parsed.message, parsed.offset)
    root = parsed.root
    if not isinstance(root, Selector) or root.moved != UNMOVED or root.mode:
        raise NotationError(f'no series, got {text!r}. Write a name and labels, as `up{{node="a"}}`')
    labels = {NAME: root.name} if root.name else {}
    for matcher in root.matchers:
        if matcher.operator != "=":
            what = f"a series has its labels by `=`, got another match of {matcher.label!r}"
            raise NotationError(f'{what}. Write `{matcher.label}="…"`')
        labels[matcher.label] = matcher.value
    if not labels.get(NAME):
        raise NotationError(f"a series without a name, got {text!r}. Write it before the braces")
    return labels


def parse_values(text: str) -> list[float | None]:
    """Return one value an interval, from the start on; None: no sample, STALE_NAN: the series ends.

    `a+bxn` is a and n more values, each b above the one before; `axn` is a and n more like it; `_xn` is n times none.

    Raises
    ------
    NotationError
        With what is wrong and what to write.
    """
    values: list[float | None] = []
    for word in re.finditer(r"\S+", text):
        item = _ITEM.fullmatch(word.group())
        if item is None:
            raise NotationError(f"no value, got {word.group()!r}. {_SHOWN}", word.start())
        values += _expanded(item, word.start())
        if len(values) > MAX_VALUES:
            raise NotationError(f"more than {MAX_VALUES} values. Write a longer interval", word.start())
    if not values:
        raise NotationError(f"no values, got nothing. {_SHOWN}")
    return values


def _expanded(item: re.Match[str], offset: int) -> list[float | None]:
    first, step, times = item["first"], item["step"], item["times"]
    n = min(int(times), MAX_VALUES + 1) if times is not None else 0
    if first in ("_", "stale"):
        if step is not None or (first == "stale" and times is not None):
            raise NotationError(f"{first!r} stands alone, got {item.group()!r}. {_SHOWN}", offset)
        if first == "stale":
            return [STALE_NAN]
        return [None] * (n if times is not None else 1)
    if step is not None and times is None:
        raise NotationError(f"how many steps, got {item.group()!r}. Write `{item.group()}x5`", offset)
    value, by = float(first), float(step or 0.0)
    values: list[float | None] = [value]
    for _ in range(n):
        # Added up, not multiplied: the same rounding as promtool's.
        value += by
        values.append(value)
    return values
