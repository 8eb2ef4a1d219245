"""What a Filter plugin says of the Pods it depends on (`freed_by`) has to be so: preemption trusts it."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from scheduler.framework.plugin import FilterPlugin, FreedBy
from scheduler.model.arrays import BoolArray
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from tests.contracts.asking import ALL, FILTERS, state_of
from tests.worlds import each_seed, is_so, random_world

NARROW = [plugin for plugin in FILTERS if plugin.freed_by is not FreedBy.ANY_ROW]


def refused(plugin: FilterPlugin, state: object, pod: PodInfo, snapshot: Snapshot) -> BoolArray:
    mask = np.zeros(snapshot.nodes.n_rows, dtype=np.bool_)
    for rejection in plugin.filter(state, pod, snapshot, ALL):
        mask |= rejection.mask
    return mask


@pytest.mark.parametrize("plugin", NARROW, ids=lambda plugin: plugin.name)
@each_seed(100)
def test_pods_that_leave_free_no_more_than_a_plugin_says(plugin: FilterPlugin, random: Random) -> None:
    world = random_world(random, min_nodes=1)
    snapshot, pod = world.snapshot(), world.pod
    skipped, state = state_of(plugin, pod, snapshot, ALL, scoring=False)
    if skipped:
        return
    before = refused(plugin, state, pod, snapshot)
    gone = np.zeros(snapshot.nodes.n_rows, dtype=np.bool_)
    with snapshot.trial() as trial:
        here = [(one, row) for row in range(snapshot.nodes.n_rows) for one in snapshot.pods_on(row)]
        for one, row in here:
            if is_so(random):
                trial.remove(one, row)
                state = plugin.remove_pod(state, one, row, snapshot)
                gone[row] = True
        after = refused(plugin, state, pod, snapshot)
        requested, n_pods = snapshot.nodes.requested.copy(), snapshot.nodes.n_pods.copy()

    assert not (after & ~before).any()
    assert (after == before)[~gone].all()
    if plugin.freed_by is FreedBy.NOTHING:
        assert (after == before).all()
    if plugin.freed_by is FreedBy.ROOM:
        _, untouched = state_of(plugin, pod, snapshot, ALL, scoring=False)
        assert (refused(plugin, untouched, pod, snapshot.supposing(requested, n_pods)) == after).all()
