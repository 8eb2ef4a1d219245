"""What is kept from one decision to the next changes no decision."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.errors import UnsupportedPodError
from scheduler.framework.decide import decide
from scheduler.framework.decision import Decision
from scheduler.model.memo import Memo
from scheduler.model.objects import Node
from scheduler.model.pods import PodInfo
from scheduler.model.row_memo import RowMemo
from scheduler.model.snapshot import Snapshot
from scheduler.model.state import ClusterState
from tests.builders import NO_SIGNALS, cluster_of, default_profile, make_node, make_pod
from tests.contracts.test_every_plugin import STORAGE, TAINTS, pods_to_place

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


@st.composite
def steps(draw: st.DrawFn) -> Step:
    name = f"n{draw(st.integers(0, N_NODES))}"
    shape = make_node(
        name,
        cpu=draw(st.sampled_from(["0", "250m", "2", "64"])),
        memory=draw(st.sampled_from(["0", "1Gi", "80Ti"])),
        pods=draw(st.sampled_from([1, 10])),
        taints=draw(st.lists(st.sampled_from(TAINTS), max_size=1)),
        extended={"nvidia.com/gpu": 4} if draw(st.booleans()) else None,
    )
    change = draw(st.sampled_from(["place", "place", "place", "displace", "set", "remove"]))
    return Step(name, draw(pods_to_place("placed")), change, shape, draw(st.integers(0, 2)))


def plain_pods(name: str) -> st.SearchStrategy[PodInfo]:
    """Pods that ask for little, so that scores decide."""
    amounts = st.tuples(st.sampled_from(["10m", "300m", "1"]), st.sampled_from(["64Mi", "1Gi"]))
    return amounts.map(lambda asked: make_pod(name, cpu=asked[0], memory=asked[1]))


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


def told(decision: Decision) -> dict[str, Any]:
    """Return all that a decision says, comparable."""
    diagnosis = decision.diagnosis
    return {
        "node": (decision.row, decision.node_name, decision.seed, decision.nominated),
        "feasible": decision.feasible.tolist(),
        "total": decision.total.tolist(),
        "best": decision.best.tolist(),
        "refusals": [(one.plugin, one.code, one.reason, one.mask.tolist()) for one in diagnosis.refusals],
        "message": diagnosis.message(),
        "terms": {
            (term.plugin, term.name): (term.weight, term.values.tolist(), term.contribution.tolist())
            for term in decision.terms
        },
    }


def decided(pod: PodInfo, state: ClusterState) -> dict[str, Any] | str:
    try:
        return told(decide(pod, Snapshot(state, NO_SIGNALS, 0.0), PROFILE))
    except UnsupportedPodError as error:
        return str(error)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    asking=st.tuples(pods_to_place("a"), plain_pods("b"), plain_pods("c")),
    walk=st.lists(steps(), min_size=1, max_size=30),
)
def test_decisions_are_those_of_a_full_computation(asking: tuple[PodInfo, ...], walk: list[Step]) -> None:
    state = cluster_of((make_node(f"n{i}", cpu="2", memory="4Gi") for i in range(N_NODES)), objects=STORAGE)
    for number, step in enumerate(walk):
        carry_out(step, number, state)
        pod = asking[step.asked]
        assert decided(pod, state) == decided(pod, replace(state, memo=Memo(), row_memo=RowMemo()))


def test_a_trial_leaves_no_trace_in_what_is_kept() -> None:
    state = cluster_of((make_node(f"n{i}", cpu="2", memory="4Gi") for i in range(N_NODES)), objects=STORAGE)
    pod, other = (make_pod(name, cpu="500m", memory="1Gi") for name in "ab")
    before = decided(pod, state)
    snapshot = Snapshot(state, NO_SIGNALS, 0.0)
    with snapshot.trial() as trial:
        trial.place(other, 3)
        assert told(decide(pod, snapshot, PROFILE)) != before
    assert decided(pod, state) == before
