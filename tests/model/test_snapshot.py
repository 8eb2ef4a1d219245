"""NodeTable, trials, detached copies: the columns always equal what the objects say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.errors import StaleSnapshotError
from scheduler.model.nodes import NodeTable
from scheduler.model.objects import Taint
from scheduler.model.snapshot import Snapshot
from scheduler.model.structs import Requirement
from scheduler.model.views import NodeView
from scheduler.plugins.node_ports import HostPorts
from tests.builders import NO_SIGNALS, cluster_of, make_node, make_pod, snapshot_of


def test_a_row_is_stable_while_its_node_exists_and_given_away_afterwards() -> None:
    table = NodeTable()
    a, b = table.set_node(make_node("a")), table.set_node(make_node("b"))
    table.remove_node("a")
    assert table.row_of("a") is None
    assert table.alive[:2].tolist() == [False, True]

    c = table.set_node(make_node("c"))

    assert (c, table.row_of("b")) == (a, b)
    assert table.n_rows == 2


def test_a_node_with_pods_leaves_a_tombstone_that_its_return_takes_up_again() -> None:
    state = cluster_of([make_node("a"), make_node("b")], [make_pod(node="a", cpu="1")])
    state.remove_node("a")
    assert state.nodes.row_of("a") == 0

    state.set_node(make_node("a"))

    assert state.nodes.requested[state.nodes.resources["cpu"], 0] == 1_000
    assert state.nodes.alive[0]


def test_a_thousand_nodes_that_come_and_go_leave_nothing_behind() -> None:
    table = NodeTable()
    for i in range(1_000):
        taint = {"key": f"k{i}", "value": "", "effect": "NoSchedule"}
        table.set_node(make_node(f"n{i}", labels={"serial": str(i)}, taints=[taint], images={f"i{i}": 1}))
        table.remove_node(f"n{i}")

    assert (table.n_rows, table.n_alive, table.taints) == (1, 0, {})
    assert table.images.find("i999") is None
    assert len(table.labels.values("serial")) < 1_000


def test_growing_keeps_every_column() -> None:
    table = NodeTable()
    for i in range(200):
        table.set_node(make_node(f"n{i}", cpu=str(i + 1), labels={"serial": str(i)}, unschedulable=i % 2 == 0))
    view = NodeView(table)

    assert view.allocatable[view.resources["cpu"]].tolist() == [1000 * (i + 1) for i in range(200)]
    assert view.unschedulable.tolist() == [i % 2 == 0 for i in range(200)]
    assert np.flatnonzero(view.label_matches(Requirement(key="serial", operator="Gt", values=["197"]))).tolist() == [
        198,
        199,
    ]


def test_an_edit_of_a_node_replaces_all_it_said() -> None:
    table = NodeTable()
    old_taint = {"key": "old", "value": "", "effect": "NoSchedule"}
    table.set_node(make_node("a", labels={"disk": "ssd"}, taints=[old_taint], extended={"example.com/gpu": 4}))

    table.set_node(make_node("a", labels={"rack": "r1"}))

    view = NodeView(table)
    assert view.label_matches(Requirement(key="disk", operator="Exists")).tolist() == [False]
    assert view.label_matches(Requirement(key="rack", operator="In", values=["r1"])).tolist() == [True]
    assert Taint(key="old", effect="NoSchedule") not in dict(view.taints())
    assert "example.com/gpu" not in view.resources


def test_views_cannot_be_written() -> None:
    nodes = snapshot_of([make_node("a")]).nodes

    with pytest.raises(ValueError, match="read-only"):
        nodes.requested[0, 0] = 1


def test_a_snapshot_is_refused_after_the_next_change() -> None:
    state = cluster_of([make_node("a")])
    snapshot = Snapshot(state, NO_SIGNALS, 0.0)
    state.place(make_pod(node="a"), 0)

    with pytest.raises(StaleSnapshotError):
        _ = snapshot.nodes


def test_a_detached_copy_lives_on() -> None:
    state = cluster_of([make_node("a", cpu="4")])
    copy = Snapshot(state, NO_SIGNALS, 0.0).detach()
    state.place(make_pod(node="a", cpu="1"), 0)
    state.remove_node("a")

    assert copy.nodes.n_alive == 1
    assert copy.nodes.n_pods.tolist() == [0]


STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.integers(0, 3)), max_size=12)


@given(steps=STEPS)
def test_a_trial_shows_its_changes_and_undoes_them_exactly(steps: list[tuple[bool, int, int]]) -> None:
    nodes = [make_node(name) for name in "abcd"]
    port = [{"containerPort": 80, "hostPort": 8080}]
    here = [make_pod(f"p{i}", node="abcd"[i % 4], cpu="1", ports=port if i % 2 else ()) for i in range(6)]
    state = cluster_of(nodes, here)
    snapshot = Snapshot(state, NO_SIGNALS, 0.0)
    before = _picture(snapshot)

    with snapshot.trial() as trial:
        placed = {pod.uid: row for row in range(4) for pod in snapshot.pods_on(row)}
        for is_removal, i, row in steps:
            pod = here[i]
            if is_removal and pod.uid in placed:
                trial.remove(pod, placed.pop(pod.uid))
            elif not is_removal and pod.uid not in placed:
                trial.place(pod, row)
                placed[pod.uid] = row
        counts = [list(placed.values()).count(row) for row in range(4)]
        assert snapshot.nodes.n_pods.tolist() == counts

    assert _picture(snapshot) == before


def _picture(snapshot: Snapshot) -> tuple[object, ...]:
    nodes = snapshot.nodes
    pods = [sorted(pod.uid for pod in snapshot.pods_on(row)) for row in range(nodes.n_rows)]
    taken = sorted(snapshot.index(HostPorts).conflicting_rows("TCP", "0.0.0.0", 8080).tolist())
    return nodes.requested.tolist(), nodes.nonzero_requested.tolist(), nodes.n_pods.tolist(), pods, taken


def test_what_is_worked_out_once_holds_until_something_changes() -> None:
    state = cluster_of([make_node("a")])
    snapshot = Snapshot(state, NO_SIGNALS, 0.0)
    calls: list[int] = []

    def n_pods() -> int:
        calls.append(1)
        return int(snapshot.nodes.n_pods[0])

    assert [snapshot.once("n", n_pods) for _ in range(3)] == [0, 0, 0]
    with snapshot.trial() as trial:
        trial.place(make_pod("guest"), 0)
        assert [snapshot.once("n", n_pods) for _ in range(2)] == [1, 1]
    assert snapshot.once("n", n_pods) == 0
    assert len(calls) == 3
    state.place(make_pod("new"), 0)
    with pytest.raises(StaleSnapshotError):
        snapshot.once("n", n_pods)


def test_a_snapshot_knows_its_moment_by_the_clock_of_pods() -> None:
    state = cluster_of([make_node("a")])
    state.unix_ahead_s = 1_700_000_000.0

    assert Snapshot(state, NO_SIGNALS, 5.0).unix_s == 1_700_000_005.0
