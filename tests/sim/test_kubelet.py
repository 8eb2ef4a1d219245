from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from scheduler.sim.apiserver.resources import NAMESPACES, PODS
from scheduler.sim.apiserver.store import ObjectStore
from scheduler.sim.kubelet import Kubelets, behaviour_of
from scheduler.sim.nodes import make_nodes
from scheduler.sim.statistics import Ledger
from scheduler.sim.workloads import NAMESPACE, Arrival, Behaviour
from scheduler.sim.world import SimWorld

JOB = Behaviour(2.0, 2.0**30)


def pod(name: str = "mine", namespace: str = "default", **requests: str) -> dict[str, Any]:
    container = {"name": "main", "image": "example.com/batch:1", "resources": {"requests": requests}}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"containers": [container]}}


@pytest.mark.parametrize(
    ("requests", "cores", "memory_bytes"),
    [({}, 0.1, 0.0), ({"cpu": "250m", "memory": "1Gi"}, 0.25, 2.0**30), ({"cpu": "1e0"}, 1.0, 0.0)],
)
def test_a_users_pod_uses_what_it_asks_for(requests: dict[str, str], cores: float, memory_bytes: float) -> None:
    assert behaviour_of(pod(**requests)) == Behaviour(cores, memory_bytes)


def test_a_pod_runs_where_it_was_bound_until_it_ends() -> None:
    asyncio.run(_pods_run_and_end())


async def _pods_run_and_end() -> None:
    clock = asyncio.get_running_loop().time
    uids = itertools.count()
    store = ObjectStore(now=clock, uid=lambda: f"uid-{next(uids)}")
    store.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    world, ledger = SimWorld(make_nodes(), seed=1), Ledger()
    plans = {"batch-1": Arrival(0.0, "batch-1", "batch", 500, 512, 0, JOB, life_s=0.2)}
    kubelets = Kubelets(store, world, ledger, clock, plans)
    phases: list[str] = []
    store.subscribe(
        PODS, lambda type_, pod: phases.append(f"{type_} {pod['metadata']['name']} {pod['status']['phase']}")
    )

    planned = store.create(PODS, pod("batch-1", NAMESPACE))
    ledger.created(planned["metadata"]["uid"], clock())
    store.bind(NAMESPACE, "batch-1", "node-a1")
    store.create(PODS, pod("mine", "default", cpu="800m"))
    store.bind("default", "mine", "node-a2")
    idle = {state.node.name: state.cpu for state in world.states(0.0)}
    deadline_s = clock() + 5.0
    while "MODIFIED batch-1 Succeeded" not in phases and clock() < deadline_s:
        await asyncio.sleep(0.02)

    assert [one for one in phases if " batch-1 " in one] == [
        "ADDED batch-1 Pending",
        "MODIFIED batch-1 Pending",
        "MODIFIED batch-1 Running",
        "MODIFIED batch-1 Succeeded",
    ]
    assert "MODIFIED mine Running" in phases
    busy = {state.node.name: state.cpu for state in world.states(0.0)}
    assert busy["node-a1"] == idle["node-a1"]
    assert busy["node-a2"] == pytest.approx(idle["node-a2"] + 0.1)
    assert ledger.n_bound == 1
    store.delete(PODS, "default", "mine")
    assert {state.node.name: state.cpu for state in world.states(0.0)} == idle
    kubelets.stop()
