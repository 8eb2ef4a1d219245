"""Which pages there are."""

from __future__ import annotations

from typing import get_args

from scheduler.loop.pages.query import AnswerQuery, ListingQuery
from scheduler.serve.pages import PAGES, AnyQuery


def test_the_wire_reads_every_query() -> None:
    queries = {*AnswerQuery.__subclasses__(), *ListingQuery.__subclasses__()}
    # Tests have some of their own.
    ours = {query for query in queries if query.__module__.startswith("scheduler.")}
    assert ours == set(get_args(AnyQuery))


def test_every_page_has_a_path_of_its_own() -> None:
    assert len({page.path for page in PAGES}) == len(PAGES)
