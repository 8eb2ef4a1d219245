"""What the deciding thread tells of its decisions."""

from __future__ import annotations

import msgspec
import pytest

from scheduler.loop.pages.decisions import DecisionsQuery
from scheduler.loop.record_ring import RecordRing
from tests.builders import make_node, make_pod
from tests.loop.harness import Harness


@pytest.fixture
def harness() -> Harness:
    harness = Harness()
    harness.list_nodes(make_node("a", cpu="64"))
    harness.list_pods()
    return harness


def decisions(harness: Harness, after: int | None, limit: int) -> tuple[int, list[int], list[str]]:
    """Return what to go on with, the numbers and the Pods' names."""
    page = msgspec.json.decode(harness.page(DecisionsQuery(after, limit)))
    found = page["decisions"]
    return page["next"], [one["number"] for one in found], [one["pod"] for one in found]


def test_decisions_are_read_in_order_and_gone_on_with(harness: Harness) -> None:
    assert decisions(harness, None, 5) == (0, [], [])
    for i in range(4):
        harness.see(make_pod(f"new-{i}"))
    harness.run()

    assert decisions(harness, None, 2) == (4, [3, 4], ["default/new-2", "default/new-3"])
    assert decisions(harness, 0, 3) == (3, [1, 2, 3], ["default/new-0", "default/new-1", "default/new-2"])
    assert decisions(harness, 3, 3) == (4, [4], ["default/new-3"])
    assert decisions(harness, 4, 3) == (4, [], [])
    assert decisions(harness, 99, 3) == (4, [], [])  # from before a restart


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
    (said,) = msgspec.json.decode(harness.page(DecisionsQuery(None, 1)))["decisions"]
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
