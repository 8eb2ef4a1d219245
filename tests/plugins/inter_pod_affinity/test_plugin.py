"""Which nodes InterPodAffinity refuses, why, and how it scores the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from scheduler.errors import InvalidObjectError
from scheduler.framework.intree_args import InterPodAffinityArgs
from scheduler.framework.status import SKIP, Code, ScoreTerm, Status
from scheduler.model.catalog import CatalogObject
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.plugins.inter_pod_affinity.plugin import (
    REASON_AFFINITY,
    REASON_ANTI_AFFINITY,
    REASON_EXISTING,
    InterPodAffinity,
)
from tests.builders import NO_SIGNALS, cluster_of, make_node, make_pod, object_of, pod_of
from tests.plugins.run import EVERYTHING, final_scores, raw_scores, refusals

NODES = [
    make_node("a", labels={"zone": "z1", "rack": "r1"}),
    make_node("b", labels={"zone": "z1"}),
    make_node("c", labels={"zone": "z2", "rack": "r2"}),
    make_node("d"),
]
HOST = "kubernetes.io/hostname"
WEB, DB = {"app": "web"}, {"app": "db"}
NAMESPACES = [
    object_of("Namespace", {"metadata": {"name": name, "labels": labels}})
    for name, labels in (("default", {"team": "red"}), ("other", {"team": "blue"}))
]

NOT_BLUE = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["blue"]}]}

Term = dict[str, Any]


def term(key: str, labels: Mapping[str, str] | None = None, **fields: Any) -> Term:
    return {"topologyKey": key, "labelSelector": {"matchLabels": dict(labels or {})}, **fields}


def affinity(
    near: Sequence[Term] = (),
    away: Sequence[Term] = (),
    likes: Sequence[tuple[int, Term]] = (),
    dislikes: Sequence[tuple[int, Term]] = (),
) -> dict[str, Any]:
    """Return a Pod's spec with these terms."""

    def both(required: Sequence[Term], preferred: Sequence[tuple[int, Term]]) -> dict[str, Any]:
        weighted = [{"weight": weight, "podAffinityTerm": one} for weight, one in preferred]
        return {
            "requiredDuringSchedulingIgnoredDuringExecution": list(required),
            "preferredDuringSchedulingIgnoredDuringExecution": weighted,
        }

    return {"affinity": {"podAffinity": both(near, likes), "podAntiAffinity": both(away, dislikes)}}


def world(*pods: PodInfo, objects: Sequence[CatalogObject] = NAMESPACES) -> Snapshot:
    return Snapshot(cluster_of(NODES, pods, [InterPodAffinity()], objects), NO_SIGNALS, 0.0)


def placed(node: str, labels: Mapping[str, str] = WEB, namespace: str = "default", **spec: Any) -> PodInfo:
    return make_pod(f"on-{node}", namespace=namespace, node=node, labels=labels, spec=spec)


def pod(labels: Mapping[str, str] | None = None, **terms: Any) -> PodInfo:
    return make_pod(labels=labels, spec=affinity(**terms))


NOT_NEAR = ("UnschedulableAndUnresolvable", REASON_AFFINITY)
TOO_NEAR = ("Unschedulable", REASON_ANTI_AFFINITY)
UNWELCOME = ("Unschedulable", REASON_EXISTING)


@pytest.mark.parametrize(
    ("there", "asking", "passing"),
    [
        pytest.param([placed("a")], pod(near=[term("zone", WEB)]), "ab", id="the zone of a match"),
        pytest.param([placed("a")], pod(near=[term(HOST, WEB)]), "a", id="the node of a match"),
        pytest.param([placed("b")], pod(near=[term("rack", WEB)]), "", id="a match on a node without the key"),
        pytest.param([placed("a", DB)], pod(near=[term("zone", WEB)]), "", id="no match"),
        pytest.param([placed("a", namespace="other")], pod(near=[term("zone", WEB)]), "", id="another namespace"),
        pytest.param(
            [placed("a", namespace="other")],
            pod(near=[term("zone", WEB, namespaces=["other"])]),
            "ab",
            id="a namespace by name",
        ),
        pytest.param(
            [placed("a", namespace="other")],
            pod(near=[term("zone", WEB, namespaceSelector={"matchLabels": {"team": "blue"}})]),
            "ab",
            id="a namespace by label",
        ),
        pytest.param(
            [placed("a", namespace="unknown")],
            pod(near=[term("zone", WEB, namespaceSelector=NOT_BLUE)]),
            "",
            id="a namespace without an object is reached by no selector",
        ),
        pytest.param(
            [placed("a", namespace="unknown")],
            pod(near=[term("zone", WEB, namespaceSelector={})]),
            "ab",
            id="but by the empty one",
        ),
        pytest.param(
            [placed("a", {**WEB, **{"tier": "1"}}), placed("c")],
            pod(near=[term("zone", WEB), term("rack", {"tier": "1"})]),
            "a",
            id="one Pod must match all terms",
        ),
        pytest.param(
            [placed("a", {"tier": "1"}), placed("b")],
            pod(near=[term("zone", WEB), term("zone", {"tier": "1"})]),
            "",
            id="two Pods that match one each do not do",
        ),
        pytest.param([], pod(WEB, near=[term("zone", WEB)]), "abc", id="the first of a group goes to any zone"),
        pytest.param([placed("d")], pod(WEB, near=[term("zone", WEB)]), "abc", id="one on no zone is no match"),
        pytest.param([], pod(DB, near=[term("zone", WEB)]), "", id="the first must match its own terms"),
        pytest.param([placed("c")], pod(WEB, near=[term("zone", WEB)]), "c", id="the second follows"),
        pytest.param(
            [], pod(WEB, near=[term("zone", WEB, namespaces=["other"])]), "", id="the first must be in the namespace"
        ),
        pytest.param(
            [], pod(near=[{"topologyKey": "zone"}]), "", id="no label selector matches nobody, not even itself"
        ),
        pytest.param([], pod(near=[term("zone")]), "abc", id="an empty one matches everybody"),
    ],
)
def test_required_affinity(there: list[PodInfo], asking: PodInfo, passing: str) -> None:
    refused = refusals(InterPodAffinity(), asking, world(*there))

    assert set("abcd") - set(refused) == set(passing)
    assert all(found == {NOT_NEAR} for found in refused.values())


@pytest.mark.parametrize(
    ("there", "asking", "passing"),
    [
        pytest.param([placed("a")], pod(away=[term("zone", WEB)]), "cd", id="not in the zone of a match"),
        pytest.param([placed("d")], pod(away=[term("zone", WEB)]), "abcd", id="a node without the key takes any"),
        pytest.param(
            [placed("a"), placed("c", DB)],
            pod(away=[term(HOST, WEB), term("zone", DB)]),
            "bd",
            id="any term refuses",
        ),
        pytest.param([placed("a", namespace="other")], pod(away=[term("zone", WEB)]), "abcd", id="another namespace"),
        pytest.param([], pod(WEB, away=[term("zone", WEB)]), "abcd", id="it does not avoid itself"),
    ],
)
def test_required_anti_affinity(there: list[PodInfo], asking: PodInfo, passing: str) -> None:
    refused = refusals(InterPodAffinity(), asking, world(*there))

    assert set("abcd") - set(refused) == set(passing)
    assert all(found == {TOO_NEAR} for found in refused.values())


@pytest.mark.parametrize(
    ("there", "asking", "passing"),
    [
        pytest.param([placed("a", **affinity(away=[term("zone", WEB)]))], pod(WEB), "cd", id="it is not wanted there"),
        pytest.param([placed("a", **affinity(away=[term("zone", WEB)]))], pod(DB), "abcd", id="not meant"),
        pytest.param([placed("d", **affinity(away=[term("zone", WEB)]))], pod(WEB), "abcd", id="no domain"),
        pytest.param(
            [placed("a", namespace="other", **affinity(away=[term("zone", WEB)]))], pod(WEB), "abcd", id="their own"
        ),
        pytest.param(
            [placed("a", namespace="other", **affinity(away=[term("zone", WEB, namespaces=["default"])]))],
            pod(WEB),
            "cd",
            id="by name",
        ),
        pytest.param(
            [
                placed(
                    "a",
                    namespace="other",
                    **affinity(away=[term("zone", WEB, namespaceSelector={"matchLabels": {"team": "red"}})]),
                )
            ],
            pod(WEB),
            "cd",
            id="by the labels of its namespace",
        ),
    ],
)
def test_anti_affinity_of_placed_pods(there: list[PodInfo], asking: PodInfo, passing: str) -> None:
    refused = refusals(InterPodAffinity(), asking, world(*there))

    assert set("abcd") - set(refused) == set(passing)
    assert all(found == {UNWELCOME} for found in refused.values())


def test_a_namespace_without_an_object_has_no_labels() -> None:
    not_red = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["red"]}]}
    minds = placed("a", namespace="other", **affinity(away=[term("zone", WEB, namespaceSelector=not_red)]))

    assert refusals(InterPodAffinity(), pod(WEB), world(minds)) == {}
    assert set(refusals(InterPodAffinity(), pod(WEB), world(minds, objects=()))) == {"a", "b"}


def test_only_the_first_reason_is_told() -> None:
    there = [placed("a", **affinity(away=[term("zone", DB)])), placed("c"), placed("d", DB)]
    asking = pod(DB, near=[term(HOST, WEB)], away=[term("rack", WEB)])

    assert refusals(InterPodAffinity(), asking, world(*there)) == {
        "a": {TOO_NEAR},
        "b": {NOT_NEAR},
        "c": {TOO_NEAR},
        "d": {NOT_NEAR},
    }
    elsewhere = pod(DB, near=[term("zone", WEB)], away=[term("rack", WEB)])
    assert refusals(InterPodAffinity(), elsewhere, world(*there))["b"] == {UNWELCOME}


def test_a_pod_that_is_going_counts_as_long_as_it_is_there() -> None:
    metadata = {"name": "x", "namespace": "default", "uid": "x", "labels": WEB}
    going = {**metadata, "deletionTimestamp": "2026-01-01T00:00:00Z"}
    there = pod_of({"metadata": going, "spec": {"nodeName": "a", "containers": []}})

    assert set(refusals(InterPodAffinity(), pod(away=[term("zone", WEB)]), world(there))) == {"a", "b"}


def test_a_pod_that_nothing_is_said_about_is_skipped() -> None:
    plugin, snapshot = InterPodAffinity(), world(placed("d", **affinity(away=[term("rack", WEB)])))

    assert plugin.prefilter(pod(WEB, likes=[(1, term("zone", WEB))]), snapshot) is SKIP
    assert plugin.prescore(pod(WEB), snapshot, EVERYTHING) is SKIP
    assert plugin.prescore(pod(DB, likes=[(1, term("rack", WEB))]), snapshot, EVERYTHING) is SKIP


def test_terms_that_cannot_be_read_refuse_the_pod() -> None:
    broken = {"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Bogus"}]}}
    asking = pod(near=[broken], likes=[(1, broken)])

    result = InterPodAffinity().prefilter(asking, world())

    told = '"Bogus" is not a valid label selector operator'
    text = f"parsing pod: [requiredAffinityTerms: {told}, preferredAffinityTerms: {told}]"
    assert result == Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (text,))
    with pytest.raises(InvalidObjectError, match="failed to parse pod"):
        InterPodAffinity().prescore(asking, world(), EVERYTHING)


def test_such_terms_of_a_placed_pod_are_passed_over_list_by_list() -> None:
    broken = {"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Bogus"}]}}
    there = placed("a", **affinity(near=[broken], away=[term("zone", WEB)]))

    assert set(refusals(InterPodAffinity(), pod(WEB), world(there))) == {"a", "b"}


@pytest.mark.parametrize(
    ("there", "asking", "raw", "final"),
    [
        pytest.param(
            [placed("a"), placed("c"), make_pod("more", node="b", labels=WEB)],
            pod(likes=[(3, term("zone", WEB))]),
            [6, 6, 3, 0],
            [100, 100, 50, 0],
            id="weight times Pods in the domain",
        ),
        pytest.param(
            [placed("a"), placed("c")],
            pod(likes=[(1, term("zone", WEB))], dislikes=[(7, term(HOST, WEB))]),
            [-6, 1, -6, 0],
            [0, 100, 0, 85],
            id="anti-affinity takes away; cut, not rounded",
        ),
        pytest.param(
            [placed("a", **affinity(near=[term("zone", WEB)]))],
            pod(WEB),
            [1, 1, 0, 0],
            [100, 100, 0, 0],
            id="required affinity of placed Pods",
        ),
        pytest.param(
            [placed("a", **affinity(likes=[(5, term("zone", WEB))], dislikes=[(2, term(HOST, WEB))]))],
            pod(WEB),
            [3, 5, 0, 0],
            [60, 100, 0, 0],
            id="preferred terms of placed Pods",
        ),
        pytest.param(
            [placed("a", **affinity(likes=[(5, term("zone", WEB))], dislikes=[(5, term("zone", WEB))]))],
            pod(WEB),
            [0, 0, 0, 0],
            [0, 0, 0, 0],
            id="what cancels out is scored all the same",
        ),
    ],
)
def test_scores(there: list[PodInfo], asking: PodInfo, raw: list[int], final: list[int]) -> None:
    snapshot = world(*there)

    assert raw_scores(InterPodAffinity(), asking, snapshot) == {"InterPodAffinity": raw}
    assert final_scores(InterPodAffinity(), asking, snapshot) == {"InterPodAffinity": final}


def test_shares_are_cut_as_floating_point_has_them() -> None:
    raw = np.array([0, 29, 57, 58, 100], dtype=np.int64)

    # 29 / 100 and 57 / 100 times 100 lie just below the whole number.
    assert InterPodAffinity().normalize(ScoreTerm("", raw)).tolist() == [int(100.0 * (n / 100.0)) for n in raw.tolist()]
    assert InterPodAffinity().normalize(ScoreTerm("", raw)).tolist()[1:3] == [28, 56]
    assert InterPodAffinity().normalize(ScoreTerm("", raw[:0])).tolist() == []


@pytest.mark.parametrize(
    ("args", "raw"),
    [
        pytest.param({}, [6, 6, 0, 0], id="defaults"),
        pytest.param({"hard_pod_affinity_weight": 10}, [15, 15, 0, 0], id="another weight"),
        pytest.param({"hard_pod_affinity_weight": 0}, [5, 5, 0, 0], id="no weight"),
        pytest.param({"ignore_preferred_terms_of_existing_pods": True}, None, id="placed Pods ignored"),
    ],
)
def test_arguments(args: dict[str, Any], raw: list[int] | None) -> None:
    there = placed("a", **affinity(near=[term("zone", WEB)], likes=[(5, term("zone", WEB))]))
    plugin = InterPodAffinity(InterPodAffinityArgs(**args))

    assert raw_scores(plugin, pod(WEB), world(there)).get(plugin.name) == raw


def test_required_affinity_without_weight_is_no_entry() -> None:
    there = placed("a", **affinity(near=[term("zone", WEB)]))
    plugin = InterPodAffinity(InterPodAffinityArgs(hard_pod_affinity_weight=0))

    assert plugin.prescore(pod(WEB), world(there), EVERYTHING) is SKIP


def test_pods_with_wishes_are_scored_by_all_even_where_placed_ones_are_ignored() -> None:
    there = placed("a", **affinity(likes=[(5, term("zone", WEB))]))
    plugin = InterPodAffinity(InterPodAffinityArgs(ignore_preferred_terms_of_existing_pods=True))

    assert raw_scores(plugin, pod(WEB, likes=[(1, term(HOST, WEB))]), world(there)) == {plugin.name: [6, 5, 0, 0]}


def test_a_namespace_that_comes_or_changes_counts_at_once() -> None:
    state = cluster_of(NODES, [placed("a", namespace="new")], [InterPodAffinity()])
    asking = pod(near=[term("zone", WEB, namespaceSelector={"matchLabels": {"team": "red"}})])

    def passing() -> set[str]:
        return set("abcd") - set(refusals(InterPodAffinity(), asking, Snapshot(state, NO_SIGNALS, 0.0)))

    assert passing() == set()
    state.set_object(object_of("Namespace", {"metadata": {"name": "new", "labels": {"team": "red"}}}))
    assert passing() == set("ab")
    state.set_object(object_of("Namespace", {"metadata": {"name": "new", "labels": {"team": "blue"}}}))
    assert passing() == set()


def test_a_node_that_changes_its_zone_takes_its_pods_along() -> None:
    state = cluster_of(NODES, [placed("a")], [InterPodAffinity()])
    asking = pod(near=[term("zone", WEB)])

    state.set_node(make_node("a", labels={"zone": "z2"}))

    refused = refusals(InterPodAffinity(), asking, Snapshot(state, NO_SIGNALS, 0.0))
    assert set("abcd") - set(refused) == set("ac")


def test_pods_on_a_node_that_is_gone_count_nowhere() -> None:
    state = cluster_of(NODES, [placed("a"), placed("nowhere")], [InterPodAffinity()])

    state.remove_node("a")

    refused = refusals(InterPodAffinity(), pod(near=[term("zone", WEB)]), Snapshot(state, NO_SIGNALS, 0.0))
    assert set(refused) == {"b", "c", "d"}
