"""DefaultPreemption: a table of cases, and a plain loop over nodes and Pods to compare with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.decision.decide import decide
from scheduler.decision.decision import Decision
from scheduler.framework.events import Action, ClusterEvent, QueueingHint, Resource
from scheduler.framework.intree_args import DefaultPreemptionArgs
from scheduler.framework.profile import Enabled, Profile
from scheduler.framework.status import Code, Status
from scheduler.framework.usage_by_priority import UsageByPriority
from scheduler.model.objects import Node
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.model.state import ClusterState
from scheduler.plugins import default_chain
from scheduler.plugins.default_preemption.plugin import REASON_UNDER_WAY, DefaultPreemption
from tests.builders import NO_SIGNALS, cluster_of, default_profile, make_node, make_pod, object_of

HEAD = "preemption: "
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"


def budget(name: str, app: str, allowed: int, disrupted: Sequence[str] = (), namespace: str = "default") -> Any:
    return object_of(
        "PodDisruptionBudget",
        {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"selector": {"matchLabels": {"app": app}}},
            "status": {
                "disruptionsAllowed": allowed,
                "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
            },
        },
    )


def on(node: str, name: str, priority: int, cpu: str = "1", start: str = "", **more: Any) -> PodInfo:
    status = {"startTime": f"2026-01-01T{start}:00Z"} if start else {}
    return make_pod(name, node=node, priority=priority, cpu=cpu, status=status, **more)


def target(cpu: str = "2", priority: int = 10, **more: Any) -> PodInfo:
    return make_pod("target", cpu=cpu, priority=priority, **more)


def leaving(pod: PodInfo, reason: str = "PreemptionByScheduler") -> PodInfo:
    """Return the Pod as it is while it is being deleted."""
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason}
    fields = msgspec.to_builtins(pod.pod)
    fields["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    fields.setdefault("status", {})["conditions"] = [condition]
    return PodInfo(msgspec.convert(fields, type(pod.pod)))


def decided(
    nodes: Sequence[Node], pods: Sequence[PodInfo], pod: PodInfo, objects: Sequence[Any] = (), profile: Any = None
) -> Decision:
    snapshot = Snapshot(cluster_of(nodes, pods, objects=objects), NO_SIGNALS, 0.0)
    return decide(pod, snapshot, profile or default_profile())


def outcome(decision: Decision) -> tuple[str | None, list[str]]:
    return decision.nomination, [victim.name for victim in decision.victims]


TWO = (make_node("a", cpu="2"), make_node("b", cpu="2"))
WEB, GUARD = {"app": "web"}, budget("g", "web", 0)


@pytest.mark.parametrize(
    ("pods", "objects", "expected"),
    [
        pytest.param([on("a", "x", 3, "2"), on("b", "y", 2, "2")], [], ("b", ["y"]), id="the lower top priority"),
        pytest.param([on("a", "x", 2, "2"), on("b", "y", 2), on("b", "z", 1)], [], ("a", ["x"]), id="the smaller sum"),
        pytest.param(
            [on("a", "x", 2, "2", "10:00"), on("b", "y", 2, "2", "11:00")], [], ("b", ["y"]), id="what started later"
        ),
        pytest.param(
            [on("a", "x", 2, "2", "10:00"), on("b", "y", 2, "2")], [], ("b", ["y"]), id="what has not started is latest"
        ),
        pytest.param(
            [on("a", "x", 1, "2", labels=WEB), on("b", "y", 9, "2")],
            [GUARD],
            ("b", ["y"]),
            id="a budget counts more than priority",
        ),
        pytest.param(
            [on("a", "x", 1, "2", labels=WEB), on("b", "y", 9, "2")],
            [budget("g", "web", 1)],
            ("a", ["x"]),
            id="a budget with room protects nobody",
        ),
        pytest.param(
            [on("a", "x", 1, "2", labels=WEB), on("b", "y", 9, "2")],
            [budget("g", "web", 0, disrupted=["x"])],
            ("a", ["x"]),
            id="who is disrupted already costs nothing",
        ),
        pytest.param(
            [on("a", "x", 1, "2", labels=WEB), on("b", "y", 9, "2")],
            [budget("g", "web", 0, namespace="other")],
            ("a", ["x"]),
            id="a budget of another namespace",
        ),
        pytest.param(
            [on("a", "x", 2, labels=WEB), on("a", "w", 3), on("b", "y", 10, "2")],
            [GUARD],
            ("a", ["w", "x"]),
            id="the most important victim first",
        ),
    ],
)
def test_where_the_least_is_lost(
    pods: Sequence[PodInfo], objects: Sequence[Any], expected: tuple[str, list[str]]
) -> None:
    assert outcome(decided(TWO, pods, target(), objects)) == expected


@pytest.mark.parametrize(
    ("cpu", "pods", "objects", "victims"),
    [
        pytest.param("1", [on("a", "x", 1), on("a", "y", 5)], [], ["x"], id="the less important"),
        pytest.param(
            "1", [on("a", "x", 1, start="10:00"), on("a", "y", 1, start="09:00")], [], ["x"], id="the younger"
        ),
        pytest.param("1", [on("a", "x", 1), on("a", "y", 1)], [], ["y"], id="the later one"),
        pytest.param("1", [on("a", "x", 1, labels=WEB), on("a", "y", 5)], [GUARD], ["y"], id="who breaks no budget"),
        pytest.param("2", [on("a", "x", 10), on("a", "y", 1)], [], None, id="an equal one stays: too much"),
        pytest.param("1", [leaving(on("a", "x", 1, "2"))], [], ["x"], id="one on its way out counts as well"),
        pytest.param(
            "2",
            [on("a", "x", 1), on("a", "y", 1, labels=WEB)],
            [GUARD],
            ["x", "y"],
            id="those not started, as they stand",
        ),
        pytest.param(
            "2",
            [on("a", "x", 1, start="09:00"), on("a", "y", 1, start="09:00", labels=WEB)],
            [GUARD],
            ["y", "x"],
            id="started together, as tried",
        ),
    ],
)
def test_who_has_to_go(cpu: str, pods: Sequence[PodInfo], objects: Sequence[Any], victims: list[str] | None) -> None:
    expected = ("", []) if victims is None else ("a", victims)
    assert outcome(decided([make_node("a", cpu="2")], pods, target(cpu), objects)) == expected


FULL = [on("a", "x", 1, "2"), on("b", "y", 1, "2")]


@pytest.mark.parametrize(
    ("pods", "pod", "nomination", "said"),
    [
        pytest.param(
            FULL, target(spec={"preemptionPolicy": "Never"}), None,
            "not eligible due to preemptionPolicy=Never.", id="never",
        ),
        pytest.param(
            [leaving(FULL[0]), FULL[1]], target(nominated="a"), None,
            "not eligible due to a terminating pod on the nominated node.", id="its victim is on its way out",
        ),
        pytest.param(FULL, target("3"), "", f"0/2 nodes are available: 2 {NOT_HELPFUL}.", id="too large for any node"),
        pytest.param(
            [on("a", "x", 10, "2"), FULL[1]], target("2", priority=1), "",
            f"0/2 nodes are available: 2 {NO_VICTIMS}.", id="nobody is lower",
        ),
        pytest.param(
            [on("a", "x", 10, "1"), on("a", "w", 1, "1"), on("b", "y", 10, "2")], target("2"), "",
            f"0/2 nodes are available: 1 Insufficient cpu, 1 {NO_VICTIMS}.", id="the reasons of those tried",
        ),
    ],
)  # fmt: skip
def test_what_is_said_where_there_is_no_way(
    pods: Sequence[PodInfo], pod: PodInfo, nomination: str | None, said: str
) -> None:
    decision = decided(TWO, pods, pod)

    assert outcome(decision) == (nomination, [])
    assert decision.diagnosis.postfilter == HEAD + said


@pytest.mark.parametrize(
    "pods",
    [
        pytest.param([leaving(FULL[0], "DeletionByTaintManager"), on("b", "y", 9, "2")], id="another reason to go"),
        pytest.param([leaving(on("a", "x", 10, "2")), on("b", "y", 9, "2")], id="not a lower one"),
    ],
)
def test_what_leaves_for_other_reasons_does_not_stop_it(pods: Sequence[PodInfo]) -> None:
    assert decided(TWO, pods, target(nominated="a")).nomination in ("a", "b")


def test_success_is_told_too() -> None:
    decision = decided(TWO, [on("a", "x", 1), on("a", "z", 1), on("b", "y", 10, "2")], target())

    assert decision.diagnosis.message() == (
        "0/2 nodes are available: 2 Insufficient cpu. "
        "preemption: found a potential placement for pod on node a, preempting 2 victims"
    )
    assert decision.preempted_by == "DefaultPreemption"


def test_a_prefilter_that_refuses_for_good_leaves_nothing_to_preempt() -> None:
    names = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in ("a",)]
    names[0]["matchFields"].append({"key": "metadata.name", "operator": "In", "values": ["b"]})
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": names}}}

    decision = decided(TWO, FULL, target(spec={"affinity": affinity}))

    assert decision.diagnosis.message().endswith(". not found")
    assert decision.nomination is None


def test_a_promised_node_stays_promised_to_its_equals() -> None:
    rival = make_pod("rival", cpu="2", priority=10, nominated="a")
    decision = decided([TWO[0]], [on("a", "x", 1, "2"), rival], target())

    assert outcome(decision) == ("", [])
    lower = make_pod("rival", cpu="2", priority=9, nominated="a")
    assert outcome(decided([TWO[0]], [on("a", "x", 1, "2"), lower], target())) == ("a", ["x"])


def test_a_shared_host_port_is_free_once_the_victim_that_holds_it_too_has_gone() -> None:
    ports = [{"hostPort": 80}]
    pods = [on("a", "stays", 10, "100m", ports=ports), on("a", "goes", 1, "100m", ports=ports)]

    assert outcome(decided([TWO[0]], pods, target("100m", ports=ports))) == ("a", ["goes"])


@pytest.mark.parametrize(("n", "share", "least", "n_found"), [(300, 1, 7, 7), (1, 50, 0, 0)])
def test_enough_candidates_end_the_search(n: int, share: int, least: int, n_found: int) -> None:
    nodes, pods = [make_node(f"n{i}", cpu="1") for i in range(n)], [on(f"n{i}", f"p{i}", 1) for i in range(n)]
    snapshot = Snapshot(cluster_of(nodes, pods), NO_SIGNALS, 0.0)
    args = DefaultPreemptionArgs(min_candidate_nodes_percentage=share, min_candidate_nodes_absolute=least)
    found: list[int] = []

    class Watching(DefaultPreemption):
        def search(self, *given: Any) -> Any:
            search = super().search(*given)
            found.append(len(search.candidates))
            return search

    chain = [one for one in default_chain() if one.plugin.name != "DefaultPreemption"]
    decision = decide(target("1"), snapshot, Profile.build("vane", [*chain, Enabled(Watching(args))]))

    assert found == [n_found]
    assert len(decision.victims) == min(n_found, 1)


def test_a_pod_whose_victims_are_being_told_is_kept_out_of_the_queue() -> None:
    plugin, pod = DefaultPreemption(), target()
    assert plugin.pre_enqueue(pod) is None

    plugin.preempting(pod, True)
    refusal = plugin.pre_enqueue(pod)
    assert refusal == Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (REASON_UNDER_WAY,))

    plugin.preempting(pod, False)
    assert plugin.pre_enqueue(pod) is None


def test_only_deleted_pods_are_of_interest_and_never_by_its_own_word() -> None:
    (interest,) = DefaultPreemption().events()
    event = ClusterEvent.of(Resource.ASSIGNED_POD, Action.DELETE, FULL[0])

    assert interest.covers(event)
    assert not interest.covers(ClusterEvent.of(Resource.NODE, Action.ADD))
    assert interest.hint(target(), event) is QueueingHint.SKIP


# -- the plain loop -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plain:
    """A node as a loop sees it: cpu in millicores, Pods in order, of `limit` at most."""

    name: str
    cpu: int
    limit: int
    pods: tuple[PodInfo, ...]


def cpu_of(pod: PodInfo) -> int:
    return pod.requests.get("cpu", 0)


def fits(node: Plain, pods: Sequence[PodInfo], pod: PodInfo) -> bool:
    return len(pods) < node.limit and sum(map(cpu_of, pods)) + cpu_of(pod) <= node.cpu


def importance(pod: PodInfo) -> tuple[int, str]:
    return -pod.priority, pod.pod.status.start_time or "9"


def plain_victims(node: Plain, pod: PodInfo, budgets: Mapping[str, int]) -> tuple[list[PodInfo], int] | None:
    """Return who has to leave one node and how many budgets that breaks, None where it does not help."""
    lower = sorted((one for one in node.pods if one.priority < pod.priority), key=importance)
    staying = [one for one in node.pods if one.priority >= pod.priority]
    if not lower or not fits(node, staying, pod):
        return None
    left, breaking = dict(budgets), []
    for one in lower:
        app = one.labels.get("app", "")
        if app in left:
            left[app] -= 1
            if left[app] < 0:
                breaking.append(one)
    victims = []
    for one in breaking + [other for other in lower if other not in breaking]:
        if fits(node, [*staying, one], pod):
            staying.append(one)
        else:
            victims.append(one)
    places = {one.uid: 0 if one.pod.status.start_time else place for place, one in enumerate(lower)}
    victims.sort(key=lambda one: (importance(one), places[one.uid]))
    return victims, sum(one in breaking for one in victims)


def plain_loss(victims: Sequence[PodInfo], violations: int) -> tuple[Any, ...]:
    top = max(victim.priority for victim in victims)
    started = [victim.pod.status.start_time or "9" for victim in victims if victim.priority == top]
    latest = -math.inf if min(started) == "9" else -float(min(started)[11:13])
    return violations, top, sum(victim.priority + 2**31 for victim in victims), len(victims), latest


@st.composite
def plain_nodes(draw: st.DrawFn) -> list[Plain]:
    nodes = []
    for i in range(draw(st.integers(1, 5))):
        pods = [
            on(
                f"n{i}",
                f"p{i}-{k}",
                draw(st.sampled_from([-5, 0, 1, 2, 10])),
                f"{draw(st.sampled_from([0, 500, 1000]))}m",
                draw(st.sampled_from(["", "08:00", "09:00", "10:00"])),
                labels={"app": draw(st.sampled_from(["web", "db", "none"]))},
            )
            for k in range(draw(st.integers(0, 5)))
        ]
        nodes.append(Plain(f"n{i}", draw(st.sampled_from([1000, 2000, 3000])), draw(st.integers(1, 6)), tuple(pods)))
    return nodes


def frozen(state: ClusterState) -> tuple[Any, ...]:
    usage = next(index for index in state.indexes if isinstance(index, UsageByPriority))
    left = usage.left_below(2, Snapshot(state, NO_SIGNALS, 0.0).nodes)
    pods = {row: list(here) for row, here in state.pods.items()}
    return pods, state.nodes.requested.tolist(), state.nodes.n_pods.tolist(), [part.tolist() for part in left]


@settings(max_examples=300, deadline=None)
@given(
    nodes=plain_nodes(), cpu=st.sampled_from([500, 1000, 2000]), allowed=st.tuples(st.integers(0, 2), st.integers(0, 2))
)
def test_the_plain_loop_finds_the_same(nodes: list[Plain], cpu: int, allowed: tuple[int, int]) -> None:
    budgets = dict(zip(("web", "db"), allowed, strict=True))
    pod = target(f"{cpu}m", priority=2)
    state = cluster_of(
        [make_node(node.name, cpu=f"{node.cpu}m", pods=node.limit) for node in nodes],
        [one for node in nodes for one in node.pods],
        objects=[budget(app, app, left) for app, left in budgets.items()],
    )
    before = frozen(state)

    decision = decide(pod, Snapshot(state, NO_SIGNALS, 0.0), default_profile())

    assert frozen(state) == before
    if any(fits(node, node.pods, pod) for node in nodes):
        assert decision.is_scheduled
        return
    candidates = {
        node.name: found
        for node in nodes
        if cpu <= node.cpu and (found := plain_victims(node, pod, budgets)) is not None
    }
    if not candidates:
        assert outcome(decision) == ("", [])
        return
    least = min(plain_loss(*found) for found in candidates.values())
    best = {name for name, found in candidates.items() if plain_loss(*found) == least}
    assert decision.nomination in best
    assert [one.name for one in decision.victims] == [one.name for one in candidates[decision.nomination][0]]
