"""The page /decisions: what was decided last and why, as JSON; `?after=NUMBER` goes on where one has stopped."""

from __future__ import annotations

from typing import Final, NamedTuple

from aiohttp import web

PATH: Final = "/decisions"
MAX_LIMIT: Final = 50
"""As many take the deciding thread a millisecond or two."""

_DEFAULT_LIMIT: Final = 20


class DecisionsQuery(NamedTuple):
    """The oldest decisions after a number, at most `limit`; without one the newest."""

    after: int | None
    limit: int


def read_query(request: web.Request) -> DecisionsQuery | str:
    """Return the query, or what is wrong with it."""
    unknown = sorted(request.query.keys() - {"after", "limit"})
    if unknown:
        return f"unknown parameter {unknown[0]!r}. Use after and limit"
    after, limit = request.query.get("after"), request.query.get("limit", str(_DEFAULT_LIMIT))
    if after is not None and not _is_number(after):
        return f"after: must be the number of a decision, got {after!r}. Write after=0 to begin with the oldest"
    if not _is_number(limit) or not 1 <= int(limit) <= MAX_LIMIT:
        return f"limit: must be from 1 to {MAX_LIMIT}, got {limit!r}"
    return DecisionsQuery(None if after is None else int(after), int(limit))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18
