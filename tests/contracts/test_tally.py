"""A tally has to lead to what moving the Pods themselves leads to: preemption trusts it for many nodes at once."""

from __future__ import annotations

from random import Random

import msgspec
import numpy as np
import pytest

from scheduler.framework.plugin import FilterPlugin
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from tests.contracts.asking import ALL, FILTERS, state_of, verdicts
from tests.worlds import each_seed, random_world

TALLYING = [plugin for plugin in FILTERS if type(plugin).tally is not FilterPlugin.tally]
every_tally = pytest.mark.parametrize("plugin", TALLYING, ids=lambda plugin: plugin.name)


def of_uid(pod: PodInfo, uid: str) -> PodInfo:
    return PodInfo(msgspec.structs.replace(pod.pod, metadata=msgspec.structs.replace(pod.pod.metadata, uid=uid)))


def said_alone(
    plugin: FilterPlugin, pod: PodInfo, snapshot: Snapshot, row: int, leaving: list[PodInfo], coming: list[PodInfo]
) -> set[tuple[int, str]]:
    """Return what a plugin says of one row once Pods have left it and others have come, nothing else having changed."""
    _, state = state_of(plugin, pod, snapshot, ALL, scoring=False)
    with snapshot.trial() as trial:
        for one in leaving:
            trial.remove(one, row)
            state = plugin.remove_pod(state, one, row, snapshot)
        for one in coming:
            trial.place(one, row)
            state = plugin.add_pod(state, one, row, snapshot)
        return verdicts(plugin.filter(state, pod, snapshot, np.array([row])), 1)[0]


@every_tally
@each_seed(200)
def test_sums_tell_of_each_row_what_moving_its_pods_tells(plugin: FilterPlugin, random: Random) -> None:
    world = random_world(random, min_nodes=1)
    others = [of_uid(random_world(random).pod, f"other-{i}") for i in range(3)]
    snapshot, pod = world.snapshot(), world.pod
    n_rows = snapshot.nodes.n_rows
    skipped, state = state_of(plugin, pod, snapshot, ALL, scoring=False)
    placed = [[one for one in snapshot.pods_on(row) if random.random() < 0.6] for row in range(n_rows)]
    coming = [[one for one in others if random.random() < 0.3] for _ in range(n_rows)]
    everyone = [one for pods in (*placed, *coming) for one in pods]
    tally = None if skipped else plugin.tally(state, pod, snapshot, everyone)
    if tally is None:
        return
    signs = np.array([sign for lists, sign in ((placed, 1), (coming, -1)) for pods in lists for _ in pods])
    rows = np.array([row for lists in (placed, coming) for row, pods in enumerate(lists) for _ in pods], dtype=np.int64)
    gone = np.zeros((len(tally.each), n_rows), dtype=np.int64)
    np.add.at(gone.T, rows, (tally.each * signs.astype(np.int64)).T)

    found = verdicts(plugin.filter(tally.without(gone), pod, snapshot, ALL), n_rows)

    alone = [said_alone(plugin, pod, snapshot, row, placed[row], coming[row]) for row in range(n_rows)]
    assert found == alone


@every_tally
@each_seed(100)
def test_the_pods_of_lower_priority_are_summed(plugin: FilterPlugin, random: Random) -> None:
    world = random_world(random, min_nodes=1)
    snapshot, pod = world.snapshot(), world.pod
    skipped, state = state_of(plugin, pod, snapshot, ALL, scoring=False)
    everyone = [(one, row) for row in range(snapshot.nodes.n_rows) for one in snapshot.pods_on(row)]
    lower = [(one, row) for one, row in everyone if one.priority < pod.priority]
    tally = None if skipped else plugin.tally(state, pod, snapshot, [one for one, _ in lower])
    if tally is None:
        return

    expected = np.zeros((len(tally.each), snapshot.nodes.n_rows), dtype=np.int64)
    np.add.at(expected.T, np.array([row for _, row in lower], dtype=np.int64), tally.each.T)

    assert tally.below.tolist() == expected.tolist()


def test_the_plugins_that_look_at_pods_have_one() -> None:
    assert {plugin.name for plugin in TALLYING} >= {"NodePorts", "PodTopologySpread", "InterPodAffinity"}
