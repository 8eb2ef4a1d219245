"""Nodes emptied all at once by sums, in random worlds: as if each had been tried alone, its Pods moved themselves."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest

from scheduler.decision.dry_run import PreemptionDryRun
from scheduler.decision.filter_phase import filter_phase
from scheduler.errors import PluginError
from scheduler.framework.observer import UNOBSERVED
from scheduler.framework.plugin import FilterPlugin, FreedBy
from scheduler.framework.profile import Enabled, Profile
from scheduler.framework.status import Rejection
from scheduler.framework.usage_by_priority import UsageByPriority
from scheduler.model.arrays import Rows
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.plugins import default_chain
from tests.worlds import World, each_seed, is_so, random_world

ALWAYS = ("PrioritySort", "DefaultBinder", "DefaultPreemption", "NodePorts", "PodTopologySpread", "InterPodAffinity")


class Everywhere(FilterPlugin):
    """Refuses nobody, but says that it looks at the Pods of all nodes: each node has to be tried alone."""

    def filter(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        return ()


class Here(Everywhere):
    """Says that it looks at the Pods of its node: they have to be moved, on all nodes at once."""

    freed_by = FreedBy.ITS_ROW


def nominee(random: Random, number: int) -> PodInfo:
    pod = random_world(random).pod.pod
    metadata = msgspec.structs.replace(pod.metadata, uid=f"nominee-{number}")
    spec = msgspec.structs.replace(pod.spec, priority=random.choice([5, 10]))
    return PodInfo(msgspec.structs.replace(pod, metadata=metadata, spec=spec))


def some_plugins(random: Random) -> list[Enabled]:
    """Return those that look at Pods, and now and then others: all together leave nearly no node in a random world."""
    return [one for one in default_chain() if one.plugin.name in ALWAYS or random.random() < 0.1]


def world_of(random: Random) -> tuple[World, Snapshot]:
    """Return a world in which some Pods are nominated."""
    world = random_world(random, min_nodes=1)
    state = world.state()
    for number in range(random.randint(0, 3)):
        pod, node = nominee(random, number), random.choice(world.nodes)
        state.nominated.setdefault(node.metadata.name, {})[pod.uid] = pod
    return world, world.snapshot(state)


def dry_run_of(world: World, snapshot: Snapshot, plugins: Sequence[Enabled]) -> PreemptionDryRun | None:
    """Return None where PreFilter refuses the Pod already, or cannot tell."""
    profile = Profile.build("vane", plugins)
    try:
        filtered = filter_phase(world.pod, snapshot, profile, None, UNOBSERVED)
    except PluginError:
        return None
    return None if filtered.diagnosis.prefilter is not None or filtered.run is None else PreemptionDryRun(filtered.run)


def told(dry_run: PreemptionDryRun, removable: dict[int, list[PodInfo]]) -> tuple[dict[int, list[str]], set[Any]] | str:
    """Return per row the UIDs of who has to go, and per row and reason who refuses the others; or the fault."""
    try:
        found, refusals = dry_run.needed(removable)
    except PluginError as error:
        return str(error)
    rows = [(one.plugin, one.code, one.reason, row) for one in refusals for row in np.flatnonzero(one.mask).tolist()]
    return {row: [pod.uid for pod in pods] for row, pods in found.items()}, set(rows)


@pytest.mark.parametrize("plugin", [Everywhere(), Here()], ids=["alone", "moved together"])
@each_seed(300)
def test_sums_free_the_nodes_that_moving_pods_frees(plugin: FilterPlugin, random: Random) -> None:
    world, snapshot = world_of(random)
    chosen = some_plugins(random)
    by_sums = dry_run_of(world, snapshot, chosen)
    by_moving = dry_run_of(world, snapshot, [*chosen, Enabled(plugin)])
    removable = {
        row: [one for one in snapshot.pods_on(row) if is_so(random)] for row in range(snapshot.nodes.n_rows) if row % 4
    }
    if by_sums is None or by_moving is None:
        return

    assert told(by_sums, removable) == told(by_moving, removable)


@each_seed(300)
def test_what_is_hopeless_stays_refused_whoever_leaves(random: Random) -> None:
    world, snapshot = world_of(random)
    dry_run = dry_run_of(world, snapshot, some_plugins(random))
    if dry_run is None:
        return
    nodes, priority = snapshot.nodes, world.pod.priority
    rows = np.flatnonzero(nodes.alive)
    emptied = snapshot.supposing(*snapshot.index(UsageByPriority).left_below(priority, nodes))
    removable = {row: [one for one in snapshot.pods_on(row) if one.priority < priority] for row in rows.tolist()}

    try:
        hopeless = dry_run.hopeless(rows, emptied)
    except PluginError:
        return
    answer = told(dry_run, removable)

    assert not isinstance(answer, str)
    needed, refused = answer
    for one in hopeless:
        for row in np.flatnonzero(one.mask).tolist():
            assert row not in needed
            assert (one.plugin, one.code, one.reason, row) in refused
