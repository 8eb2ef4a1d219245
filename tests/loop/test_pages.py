"""What the deciding thread answers to pages: health by what it does, resources only where it decides."""

from __future__ import annotations

import re

import msgspec
import pytest

from scheduler.exposition import render
from scheduler.loop.listing import NO_PODS, SLICE_PODS, PodFigures
from scheduler.loop.pages import HEALTH, METRICS, MORE_METRICS, MORE_RESOURCES, RESOURCES, Pages
from tests.builders import make_node, make_pod
from tests.loop.harness import Harness


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
    checks = msgspec.json.decode(pages.answer(HEALTH, has_synced, is_deciding, is_standby))
    assert {name for name, ok, _ in checks if not ok} == failed
    assert all(bool(text) != ok for _, ok, text in checks)


def n_pods(slice_: bytes) -> int:
    return len(msgspec.msgpack.decode(slice_, type=list[PodFigures]))


def test_resources_come_in_slices_and_end(pages: Pages) -> None:
    counts = [n_pods(pages.answer(what, True, True)) for what in (RESOURCES, *[MORE_RESOURCES] * 3)]
    assert counts == [SLICE_PODS, 1, 0, 0]


def test_a_new_listing_begins_at_the_start(pages: Pages) -> None:
    counts = [n_pods(pages.answer(what, True, True)) for what in (RESOURCES, RESOURCES, MORE_RESOURCES)]
    assert counts == [SLICE_PODS, SLICE_PODS, 1]


def test_only_who_decides_shows_resources(pages: Pages) -> None:
    assert pages.answer(RESOURCES, True, False) == NO_PODS
    assert pages.answer(RESOURCES, True, True, is_standby=True) == NO_PODS


def test_a_listing_that_nobody_goes_on_with_is_let_go(harness: Harness, pages: Pages) -> None:
    pages.answer(RESOURCES, True, True)
    harness.now_s += 29
    assert n_pods(pages.answer(MORE_RESOURCES, True, True)) == 1
    pages.answer(RESOURCES, True, True)
    harness.now_s += 31
    pages.answer(HEALTH, True, True)
    assert pages.answer(MORE_RESOURCES, True, True) == NO_PODS


def test_the_metrics_page_comes_in_slices_that_are_the_whole(harness: Harness, pages: Pages) -> None:
    whole = pages.answer(METRICS, True, True)
    assert sorted(whole.splitlines()) == sorted(render(harness.metrics.registry).splitlines())
    assert pages.answer(MORE_METRICS, True, True) == b""

    harness.seconds_per_look = 0.0006
    slices = [pages.answer(METRICS, True, True)]
    while slices[-1]:
        slices.append(pages.answer(MORE_METRICS, True, True))

    assert len(slices) > 5
    names = [re.findall(rb"^# TYPE (\S+)", page, re.M) for page in (whole, b"".join(slices))]
    assert names[0] == names[1]
