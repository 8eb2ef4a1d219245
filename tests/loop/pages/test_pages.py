"""What the deciding thread answers to pages: health by what it does, resources only where it decides."""

from __future__ import annotations

import re

import msgspec
import pytest

from scheduler.exposition import render
from scheduler.loop.pages.pages import HEALTH, METRICS, MORE_METRICS, MORE_RESOURCES, RESOURCES, Pages
from scheduler.loop.pages.pod_listing import NO_PODS, SLICE_PODS, PodFigures
from scheduler.loop.record_ring import RecordRing
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


def decisions(pages: Pages, after: int | None, limit: int) -> tuple[int, list[int], list[str]]:
    """Return what to go on with, the numbers and the Pods' names."""
    page = msgspec.json.decode(pages.decisions(after, limit))
    found = page["decisions"]
    return page["next"], [one["number"] for one in found], [one["pod"] for one in found]


def test_decisions_are_read_in_order_and_gone_on_with(harness: Harness, pages: Pages) -> None:
    assert decisions(pages, None, 5) == (0, [], [])
    for i in range(4):
        harness.see(make_pod(f"new-{i}"))
    harness.run()

    assert decisions(pages, None, 2) == (4, [3, 4], ["default/new-2", "default/new-3"])
    assert decisions(pages, 0, 3) == (3, [1, 2, 3], ["default/new-0", "default/new-1", "default/new-2"])
    assert decisions(pages, 3, 3) == (4, [4], ["default/new-3"])
    assert decisions(pages, 4, 3) == (4, [], [])
    assert decisions(pages, 99, 3) == (4, [], [])  # from before a restart


def test_numbers_go_on_when_the_ring_is_full(harness: Harness) -> None:
    ring = RecordRing(capacity=2)
    harness.see(make_pod("new"))
    harness.run()
    for _ in range(5):
        ring.add(next(iter(harness.world.records)))
    assert [number for number, _ in ring.after(0, 10)] == [4, 5]
    assert [number for number, _ in ring.after(4, 10)] == [5]


def test_a_decision_says_why() -> None:
    harness = Harness()
    harness.list_nodes(make_node("a", cpu="4"), make_node("b", cpu="64"), make_node("full", cpu="1m"))
    harness.list_pods()
    harness.see(make_pod("new", cpu="2"))
    harness.run()
    (said,) = msgspec.json.decode(harness.parts.pages.decisions(None, 1))["decisions"]
    assert (said["pod"], said["node"], said["n_nodes"], said["n_feasible"]) == ("default/new", "b", 3, 2)
    assert said["refusals"][0] | {"code": ""} == {
        "plugin": "NodeResourcesFit",
        "rule": "",
        "code": "",
        "reason": "Insufficient cpu",
        "n_nodes": 1,
    }
    assert said["best_nodes"] == ["b", "a"]
    assert said["total"] == [sum(term["contribution"][i] for term in said["terms"]) for i in range(2)]
    assert said["margin"] == said["total"][0] - said["total"][1] > 0
