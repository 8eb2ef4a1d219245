"""What is kept from one decision to the next changes no decision."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any

import msgspec

from scheduler.decision.decide import decide
from scheduler.model.memo import Memo
from scheduler.model.objects import Node
from scheduler.model.pods import PodInfo
from scheduler.model.row_memo import RowMemo
from scheduler.model.snapshot import Snapshot
from scheduler.model.state import ClusterState
from tests.builders import NO_SIGNALS, cluster_of, default_profile, make_node, make_pod
from tests.contracts.asking import decided, told
from tests.worlds import STORAGE, TAINTS, each_seed, is_so, random_pod, some_of

N_NODES = 8
PROFILE = default_profile()


@dataclass(frozen=True)
class Step:
    """One change: a Pod placed on a node or all of a node's taken away, or the node set or removed; then a decision."""

    node: str
    pod: PodInfo
    change: str
    shape: Node
    asked: int


def random_step(random: Random) -> Step:
    name = f"n{random.randint(0, N_NODES)}"
    shape = make_node(
        name,
        cpu=random.choice(["0", "250m", "2", "64"]),
        memory=random.choice(["0", "1Gi", "80Ti"]),
        pods=random.choice([1, 10]),
        taints=some_of(random, TAINTS, 1),
        extended={"nvidia.com/gpu": 4} if is_so(random) else None,
    )
    change = random.choice(["place", "place", "place", "displace", "set", "remove"])
    return Step(name, random_pod(random, "placed"), change, shape, random.randint(0, 2))


def plain_pod(random: Random, name: str) -> PodInfo:
    """Return a Pod that asks for little, so that scores decide."""
    return make_pod(name, cpu=random.choice(["10m", "300m", "1"]), memory=random.choice(["64Mi", "1Gi"]))


def carry_out(step: Step, number: int, state: ClusterState) -> None:
    row = state.nodes.row_of(step.node)
    match step.change:
        case "set":
            state.set_node(step.shape)
        case "remove":
            state.remove_node(step.node)
        case "place" if row is not None:
            state.place(with_uid(step.pod, f"placed-{number}"), row)
        case "displace" if row is not None:
            for pod in list(state.pods_on(row)):
                state.displace(pod, row)


def with_uid(pod: PodInfo, uid: str) -> PodInfo:
    metadata = msgspec.structs.replace(pod.pod.metadata, uid=uid)
    return PodInfo(msgspec.structs.replace(pod.pod, metadata=metadata))


def asked(pod: PodInfo, state: ClusterState) -> dict[str, Any] | str:
    return decided(pod, Snapshot(state, NO_SIGNALS, 0.0), PROFILE)


@each_seed(150)
def test_decisions_are_those_of_a_full_computation(random: Random) -> None:
    asking = random_pod(random, "a"), plain_pod(random, "b"), plain_pod(random, "c")
    walk = [random_step(random) for _ in range(random.randint(1, 30))]
    state = cluster_of((make_node(f"n{i}", cpu="2", memory="4Gi") for i in range(N_NODES)), objects=STORAGE)
    for number, step in enumerate(walk):
        carry_out(step, number, state)
        pod = asking[step.asked]
        assert asked(pod, state) == asked(pod, replace(state, memo=Memo(), row_memo=RowMemo()))


def test_a_trial_leaves_no_trace_in_what_is_kept() -> None:
    state = cluster_of((make_node(f"n{i}", cpu="2", memory="4Gi") for i in range(N_NODES)), objects=STORAGE)
    pod, other = (make_pod(name, cpu="500m", memory="1Gi") for name in "ab")
    before = asked(pod, state)
    snapshot = Snapshot(state, NO_SIGNALS, 0.0)
    with snapshot.trial() as trial:
        trial.place(other, 3)
        assert told(decide(pod, snapshot, PROFILE)) != before
    assert asked(pod, state) == before
