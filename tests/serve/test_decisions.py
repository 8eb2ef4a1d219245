"""`GET /decisions`: what may be asked, and that nonsense is refused by name."""

from __future__ import annotations

import pytest

from scheduler.loop.pages.decisions import DecisionsQuery
from scheduler.serve.decisions import MAX_LIMIT
from scheduler.serve.http import PageServer
from tests.serve.source import Source
from tests.serve.test_http import request


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("", DecisionsQuery(None, 20)),
        ("?limit=3", DecisionsQuery(None, 3)),
        ("?after=0&limit=50", DecisionsQuery(0, 50)),
        ("?after=123456", DecisionsQuery(123456, 20)),
    ],
)
def test_the_newest_or_those_after_a_number(
    server: PageServer, source: Source, query: str, asked: DecisionsQuery
) -> None:
    answer = request(server, f"/decisions{query}")
    assert (answer.status, answer.text) == (200, '{"next":7,"decisions":[]}\n')
    assert answer.headers["Content-Type"] == "application/json"
    assert source.queries == [asked]


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("?after=x", "after: must be the number of a decision, got 'x'. Write after=0 to begin with the oldest"),
        ("?after=-1", "after: must be the number of a decision, got '-1'. Write after=0 to begin with the oldest"),
        (f"?after={'9' * 19}", "after: must be the number of a decision"),
        ("?limit=0", f"limit: must be from 1 to {MAX_LIMIT}, got '0'"),
        ("?limit=51", f"limit: must be from 1 to {MAX_LIMIT}, got '51'"),
        ("?limit=", f"limit: must be from 1 to {MAX_LIMIT}, got ''"),
        ("?pod=shop/web", "unknown parameter 'pod'. Use after and limit"),
    ],
)
def test_nonsense_is_refused(server: PageServer, source: Source, query: str, problem: str) -> None:
    answer = request(server, f"/decisions{query}")
    assert answer.status == 400
    assert problem in answer.text
    assert source.queries == []
