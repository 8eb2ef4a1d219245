"""PreemptionDryRun: nodes tried together and one by one answer alike, and nothing is left behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from scheduler.decision.dry_run import PreemptionDryRun
from scheduler.decision.filter_phase import filter_phase
from scheduler.framework.observer import UNOBSERVED
from scheduler.framework.plugin import FilterPlugin, FreedBy
from scheduler.framework.profile import Enabled, Profile
from scheduler.framework.status import Code, Rejection
from scheduler.model.arrays import Rows
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.plugins import default_chain
from tests.builders import NO_SIGNALS, cluster_of, make_node, make_pod


class Crowded(FilterPlugin):
    """Refuses every node while more than `limit` Pods are placed anywhere."""

    limit = 100

    def filter(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        mask = np.full(len(snapshot.nodes.alive[rows]), int(snapshot.nodes.n_pods.sum()) > self.limit)
        return [Rejection(mask, Code.UNSCHEDULABLE, "too many Pods")]


class Local(Crowded):
    """The same said to concern its own node only, which allows all nodes to be tried at once."""

    freed_by = FreedBy.ITS_ROW


class Sociable(FilterPlugin):
    """Refuses nodes without Pods: such a plugin minds that Pods leave."""

    freed_by = FreedBy.ITS_ROW

    def filter(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        return [Rejection(snapshot.nodes.n_pods[rows] == 0, Code.UNSCHEDULABLE, "too lonely")]


class Faulty(FilterPlugin):
    """Cannot tell of the first row."""

    freed_by = FreedBy.NOTHING

    def filter(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        return [Rejection(np.arange(snapshot.nodes.n_rows)[rows] == 0, Code.ERROR, "broken")]


BROKEN = 'running "Faulty" filter plugin: broken'


class Unmoved(FilterPlugin):
    freed_by = FreedBy.NOTHING

    def filter(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        return [Rejection(np.ones(len(snapshot.nodes.alive[rows]), dtype=np.bool_), Code.UNSCHEDULABLE, "never")]


class Room(Crowded):
    """The same said to read only columns, which spares moving Pods."""

    freed_by = FreedBy.ROOM


class Strict(Crowded):
    limit = 2


NODES = [make_node(f"n{i}", cpu="2") for i in range(3)]
PODS = [make_pod(f"p{i}{k}", node=f"n{i}", cpu="1", priority=k) for i in range(3) for k in range(2)]


def dry_run_of(
    plugin: FilterPlugin, pod: PodInfo, nominated: Sequence[PodInfo] = (), also: Sequence[FilterPlugin] = ()
) -> tuple[Snapshot, PreemptionDryRun]:
    profile = Profile.build("vane", [*default_chain(), *map(Enabled, (plugin, *also))])
    snapshot = Snapshot(cluster_of(NODES, [*PODS, *nominated]), NO_SIGNALS, 0.0)
    run = filter_phase(pod, snapshot, profile, None, UNOBSERVED).run
    assert run is not None
    return snapshot, PreemptionDryRun(run)


def needed(snapshot: Snapshot, dry_run: PreemptionDryRun) -> tuple[dict[int, list[str]], dict[int, set[str]]]:
    found, refusals = dry_run.needed({row: list(snapshot.pods_on(row))[::-1] for row in range(3)})
    reasons = {row: {one.reason for one in refusals if one.mask[row]} for row in range(3)}
    return {row: [pod.name for pod in pods] for row, pods in found.items()}, reasons


def without_pods(snapshot: Snapshot) -> Snapshot:
    return snapshot.supposing(np.zeros_like(snapshot.nodes.requested), np.zeros_like(snapshot.nodes.n_pods))


@pytest.mark.parametrize("plugin", [Crowded(), Local(), Room()], ids=["one by one", "together", "columns"])
@pytest.mark.parametrize(
    ("cpu", "expected"),
    [("1", {0: ["p00"], 1: ["p10"], 2: ["p20"]}), ("2", {i: [f"p{i}1", f"p{i}0"] for i in range(3)}), ("3", {})],
)
def test_each_pod_comes_back_for_as_long_as_there_is_room(
    plugin: FilterPlugin, cpu: str, expected: dict[int, list[str]]
) -> None:
    snapshot, dry_run = dry_run_of(plugin, make_pod("target", cpu=cpu, priority=9))
    before = [list(snapshot.pods_on(row)) for row in range(3)]

    found, reasons = needed(snapshot, dry_run)

    assert found == expected
    assert all(bool(why) != (row in expected) for row, why in reasons.items())
    assert [list(snapshot.pods_on(row)) for row in range(3)] == before
    assert snapshot.nodes.n_pods.tolist() == [2, 2, 2]


def test_what_leaves_other_nodes_does_not_count_for_a_plugin_that_looks_everywhere() -> None:
    snapshot, dry_run = dry_run_of(Strict(), make_pod("target", cpu="1", priority=9))

    found, reasons = needed(snapshot, dry_run)

    assert found == {}
    assert reasons == {row: {"too many Pods"} for row in range(3)}


def test_a_pod_nominated_there_counts_for_its_node_only() -> None:
    rival = make_pod("rival", cpu="1", priority=9, nominated="n1")
    snapshot, dry_run = dry_run_of(Local(), make_pod("target", cpu="1", priority=9), [rival])

    found, _ = needed(snapshot, dry_run)

    assert found == {0: ["p00"], 1: ["p11", "p10"], 2: ["p20"]}


def test_what_cannot_be_freed_is_found_in_columns() -> None:
    snapshot, dry_run = dry_run_of(Crowded(), make_pod("target", cpu="2", priority=9))
    requested = snapshot.nodes.requested.copy()
    requested[snapshot.nodes.resources["cpu"], 0] = 0

    refusals = dry_run.hopeless(np.arange(3), snapshot.supposing(requested, snapshot.nodes.n_pods))

    assert [(one.plugin, one.reason, one.mask.tolist()) for one in refusals] == [
        ("NodeResourcesFit", "Insufficient cpu", [False, True, True])
    ]


def test_who_may_mind_that_pods_leave_is_asked_before_those_that_come_after_it() -> None:
    snapshot, dry_run = dry_run_of(Sociable(), make_pod("target", cpu="1", priority=9), also=[Unmoved()])

    _, reasons = needed(snapshot, dry_run)

    assert dry_run.hopeless(np.arange(3), without_pods(snapshot)) == []
    assert reasons == {row: {"too lonely"} for row in range(3)}


def test_a_node_with_a_fault_is_left_out_and_the_others_are_tried() -> None:
    snapshot, dry_run = dry_run_of(Faulty(), make_pod("target", cpu="1", priority=9))

    found, reasons = needed(snapshot, dry_run)
    (hopeless,) = dry_run.hopeless(np.arange(3), without_pods(snapshot))

    assert found == {1: ["p10"], 2: ["p20"]}
    assert reasons == {0: {BROKEN}, 1: set(), 2: set()}
    assert (hopeless.code, hopeless.reason, hopeless.mask.tolist()) == (Code.ERROR, BROKEN, [True, False, False])
