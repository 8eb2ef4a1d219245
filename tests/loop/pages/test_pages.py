"""What the deciding thread answers to pages: health by what it does, resources only where it decides."""

from __future__ import annotations

import msgspec
import pytest

from scheduler.loop.pages.metrics import MetricsQuery
from scheduler.loop.pages.pages import HealthQuery, Pages
from scheduler.loop.pages.query import LoopStage
from scheduler.loop.pages.resources import SLICE_PODS, PodFigures, ResourcesQuery
from tests.builders import make_node, make_pod
from tests.loop.harness import Harness

DECIDING = LoopStage(has_synced=True, is_deciding=True)


@pytest.fixture
def harness() -> Harness:
    harness = Harness()
    harness.list_nodes(make_node("a", cpu="64"))
    harness.list_pods()
    for i in range(SLICE_PODS + 1):
        harness.see(make_pod(f"p{i}", node="a", cpu="1m"))
    return harness


@pytest.fixture
def pages(harness: Harness) -> Pages:
    return harness.parts.pages


@pytest.mark.parametrize(
    ("has_synced", "is_deciding", "is_standby", "failed"),
    [
        (False, False, False, {"caches-synced", "deciding"}),
        (True, False, False, {"deciding"}),
        (True, True, False, set()),
        (True, False, True, set()),
        (False, False, True, {"caches-synced"}),
    ],
)
def test_a_standby_with_its_lists_is_ready(
    pages: Pages, has_synced: bool, is_deciding: bool, is_standby: bool, failed: set[str]
) -> None:
    stage = LoopStage(has_synced, is_deciding, is_standby)
    checks = msgspec.json.decode(pages.answer(HealthQuery("readyz"), stage))
    assert checks == msgspec.json.decode(pages.answer(HealthQuery("healthz"), stage))
    assert {name for name, ok, _ in checks if not ok} == failed
    assert all(bool(text) != ok for _, ok, text in checks)


def test_who_answers_lives(pages: Pages) -> None:
    answer = pages.answer(HealthQuery("livez"), LoopStage(has_synced=False, is_deciding=False))
    assert msgspec.json.decode(answer) == [["deciding-thread", True, ""]]


def n_pods(slice_: bytes) -> int:
    return len(msgspec.msgpack.decode(slice_, type=list[PodFigures])) if slice_ else 0


def first(pages: Pages) -> bytes:
    return pages.answer(ResourcesQuery(), DECIDING)


def more(pages: Pages) -> bytes:
    return pages.answer(ResourcesQuery(), DECIDING, goes_on=True)


def test_resources_come_in_slices_and_end(pages: Pages) -> None:
    counts = [n_pods(ask(pages)) for ask in (first, more, more, more)]
    assert counts == [SLICE_PODS, 1, 0, 0]


def test_a_new_listing_begins_at_the_start(pages: Pages) -> None:
    counts = [n_pods(ask(pages)) for ask in (first, first, more)]
    assert counts == [SLICE_PODS, SLICE_PODS, 1]


def test_only_who_decides_shows_resources(pages: Pages) -> None:
    assert pages.answer(ResourcesQuery(), LoopStage(has_synced=True, is_deciding=False)) == b""
    assert pages.answer(ResourcesQuery(), LoopStage(has_synced=True, is_deciding=True, is_standby=True)) == b""


def test_a_listing_that_nobody_goes_on_with_is_let_go(harness: Harness, pages: Pages) -> None:
    first(pages)
    harness.now_s += 29
    assert n_pods(more(pages)) == 1
    first(pages)
    harness.now_s += 31
    pages.answer(HealthQuery("livez"), DECIDING)
    assert more(pages) == b""


def test_listings_of_two_kinds_do_not_disturb_each_other(harness: Harness, pages: Pages) -> None:
    harness.seconds_per_look = 0.0006
    assert n_pods(first(pages)) == SLICE_PODS
    metrics = pages.answer(MetricsQuery(), DECIDING)
    assert n_pods(more(pages)) == 1
    following = pages.answer(MetricsQuery(), DECIDING, goes_on=True)
    assert metrics
    assert following
    assert metrics != following
