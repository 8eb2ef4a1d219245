"""Terms and constraints that are too many to keep counts of are added up: to the same decisions, bit by bit."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from scheduler.model.pods import PodInfo
from scheduler.plugins.inter_pod_affinity.plugin import InterPodAffinity
from scheduler.plugins.pod_topology_spread.plugin import PodTopologySpread
from tests.builders import default_profile
from tests.contracts.asking import by_name, decided, run_filter, run_score, verdicts
from tests.worlds import World, each_seed, random_world

PROFILE = default_profile()
PLUGINS = (InterPodAffinity(), PodTopologySpread())


def counting(pod: PodInfo, *, as_few: bool) -> PodInfo:
    """Return the Pod as it is when its terms and constraints are few, or as when they are many."""
    found = PodInfo(pod.pod)
    vars(found)["affinity_terms"] = replace(found.affinity_terms, are_few=as_few)
    vars(found)["spreads_by_few"] = as_few
    return found


def asks(world: World) -> bool:
    terms = world.pod.affinity_terms
    return bool(terms.required or terms.required_anti or terms.preferred) and not terms.faults


def test_the_worlds_have_terms_and_constraints() -> None:
    worlds = [random_world(Random(seed), min_nodes=1) for seed in range(200)]
    assert sum(map(asks, worlds)) > 50
    assert sum(bool(world.pod.pod.spec.topology_spread_constraints) for world in worlds) > 50


@each_seed(150)
def test_what_is_kept_and_what_is_added_up_decide_alike(random: Random) -> None:
    world = random_world(random, min_nodes=1)
    snapshot = world.snapshot()
    few, many = (counting(world.pod, as_few=as_few) for as_few in (True, False))

    assert decided(many, snapshot, PROFILE) == decided(few, snapshot, PROFILE)
    for plugin in PLUGINS:
        n = snapshot.nodes.n_rows
        refused = [verdicts(run_filter(plugin, pod, snapshot), n) for pod in (few, many)]
        assert refused[0] == refused[1]
        scored = [by_name(run_score(plugin, pod, snapshot)) for pod in (few, many)]
        assert scored[0] == scored[1]
