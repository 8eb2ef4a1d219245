"""The page /decisions: what was decided last and why, as JSON; `?after=NUMBER` goes on where one has stopped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

from scheduler.loop.pages.decisions import DecisionsQuery
from scheduler.serve.answered_page import OwnFigures, PageRefused, RoutedPage

MAX_LIMIT: Final = 50
"""As many take the deciding thread a millisecond or two."""

_DEFAULT_LIMIT: Final = 20


class DecisionsPage(RoutedPage[DecisionsQuery, bytes]):
    """The answer as it is."""

    path = "/decisions"
    _answer = b""

    @classmethod
    def read(cls, parameters: Mapping[str, str]) -> Self:
        unknown = sorted(parameters.keys() - {"after", "limit"})
        if unknown:
            raise PageRefused(f"unknown parameter {unknown[0]!r}. Use after and limit")
        after, limit = parameters.get("after"), parameters.get("limit", str(_DEFAULT_LIMIT))
        if after is not None and not _is_number(after):
            found = f"got {after!r}. Write after=0 to begin with the oldest"
            raise PageRefused(f"after: must be the number of a decision, {found}")
        if not _is_number(limit) or not 1 <= int(limit) <= MAX_LIMIT:
            raise PageRefused(f"limit: must be from 1 to {MAX_LIMIT}, got {limit!r}")
        return cls(DecisionsQuery(None if after is None else int(after), int(limit)))

    def add(self, slice_: bytes) -> None:
        self._answer = slice_

    def body(self, own: OwnFigures) -> bytes:
        return self._answer + b"\n"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18
