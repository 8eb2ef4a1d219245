"""The rows within reach of volumes, kept while nodes change, against each found afresh."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from scheduler.model.selectors import SelectorTerm
from scheduler.model.snapshot import Snapshot
from scheduler.plugins.volumes.volume_binding.reachable_nodes import EVERYWHERE, NOWHERE, Reach, ReachableRows, matching
from tests.builders import NO_SIGNALS, cluster_of, make_node

HOST, ZONE, DISK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "disk"
ZONES = ("1", "2", "3")


def a_reach(random: Random, n_hosts: int) -> Reach:
    host = SelectorTerm(HOST, "In", (f"n{random.randrange(n_hosts)}",))
    zone = SelectorTerm(ZONE, "In", tuple(sorted(random.sample(ZONES, random.randint(1, 2)))))
    disk = random.choice(
        [
            SelectorTerm(DISK, "Exists", ()),
            SelectorTerm(DISK, "DoesNotExist", ()),
            SelectorTerm(DISK, "NotIn", ("ssd",)),
        ]
    )
    return random.choice(
        [EVERYWHERE, NOWHERE, ((),), ((host,),), ((host,),), ((zone,),), ((host, zone),), ((disk,),), ((disk, zone),),
         ((host,), (zone, disk)), ((disk,), (host,))]
    )  # fmt: skip


def some_labels(random: Random, name: str) -> dict[str, str]:
    labels = {HOST: name, ZONE: random.choice(ZONES), DISK: random.choice(["ssd", "hdd"])}
    return {key: value for key, value in labels.items() if random.random() < 0.8}


@pytest.mark.parametrize(("n_hosts", "n_steps", "seeds"), [(4, 40, range(50)), (300, 400, range(2))])
def test_rows_are_those_found_afresh_whatever_has_changed(n_hosts: int, n_steps: int, seeds: range) -> None:
    for seed in seeds:
        random = Random(seed)
        state, reaches = cluster_of([], plugins=[]), ReachableRows()
        held: list[tuple[int, Reach]] = []
        n_compared = 0
        for _ in range(n_steps):
            name = f"n{random.randrange(n_hosts)}"
            match random.choice(["acquire", "acquire", "release", "node", "node", "node", "lose"]):
                case "acquire":
                    reach = a_reach(random, n_hosts)
                    held.append((reaches.acquire(reach), reach))
                case "release" if held:
                    reaches.release(held.pop(random.randrange(len(held)))[0])
                case "node":
                    state.set_node(make_node(name, labels=some_labels(random, name)))
                case "lose":
                    state.remove_node(name)
            snapshot = Snapshot(state, NO_SIGNALS, 0.0)
            reaches.follow(snapshot.nodes, snapshot.generation)
            rows, lengths = reaches.expand(np.array([number for number, _ in held], dtype=np.int64))
            found = np.split(rows, np.cumsum(lengths)[:-1])
            for (_, reach), here in zip(held, found, strict=False):
                assert np.array_equal(np.sort(here), np.flatnonzero(matching(reach, snapshot.nodes))), reach
                n_compared += len(here)
        assert n_compared > 0
