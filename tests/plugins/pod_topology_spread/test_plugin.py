"""PodTopologySpread against what kube-scheduler's sources say, case by case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from scheduler.errors import InvalidObjectError
from scheduler.framework.intree_args import PodTopologySpreadArgs
from scheduler.framework.status import SKIP, PreFilterResult
from scheduler.model.catalog import CatalogObject
from scheduler.model.objects import Node, TopologySpreadConstraint
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.plugins.pod_topology_spread import PodTopologySpread
from tests.builders import NO_SIGNALS, cluster_of, make_node, make_pod, object_of, pod_of
from tests.plugins.run import final_scores, raw_scores, refusals

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
MISSING = (
    "UnschedulableAndUnresolvable",
    "node(s) didn't match pod topology spread constraints (missing required label)",
)
SKEWED = ("Unschedulable", "node(s) didn't match pod topology spread constraints")
WEB = {"app": "web"}
WEB_SELECTOR = {"matchLabels": WEB}


def constraint(key: str = "zone", max_skew: int = 1, *, soft: bool = False, **fields: Any) -> dict[str, Any]:
    action = "ScheduleAnyway" if soft else "DoNotSchedule"
    selector = {"labelSelector": WEB_SELECTOR}
    return {"topologyKey": key, "maxSkew": max_skew, "whenUnsatisfiable": action, **selector, **fields}


def spreading(*constraints: dict[str, Any], labels: Mapping[str, str] | None = None, **spec: Any) -> PodInfo:
    return make_pod(
        labels=WEB if labels is None else labels, spec={"topologySpreadConstraints": list(constraints), **spec}
    )


def placed(where: str, **fields: Any) -> list[PodInfo]:
    """Return a Pod of the label app=web on each of the nodes, which have one letter each."""
    wanted = {"labels": WEB, **fields}
    return [make_pod(f"{node}{i}", uid=f"{fields}/{node}{i}", node=node, **wanted) for i, node in enumerate(where)]


def leaving(pod: PodInfo) -> PodInfo:
    metadata = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid, "labels": pod.labels}
    deleted = {**metadata, "deletionTimestamp": "2026-01-01T00:00:00Z"}
    return pod_of({"metadata": deleted, "spec": {"nodeName": pod.pod.spec.node_name}})


def world(
    nodes: Sequence[Node], pods: Sequence[PodInfo] = (), objects: Sequence[CatalogObject] = (), **fields: Any
) -> Snapshot:
    return Snapshot(cluster_of(nodes, pods, [PodTopologySpread(**fields)], objects), NO_SIGNALS, 0.0)


def zoned(name: str, zone: str, **fields: Any) -> Node:
    return make_node(name, labels={"zone": zone}, **fields)


def prefiltered(pod: PodInfo, snapshot: Snapshot) -> Any:
    result = PodTopologySpread().prefilter(pod, snapshot)
    assert isinstance(result, PreFilterResult)
    return result.state


TAINT = [{"key": "k", "value": "v", "effect": "NoSchedule"}]
SOFT_TAINT = [{"key": "k", "value": "v", "effect": "PreferNoSchedule"}]
# Zone x: a, b; zone y: c; d has none.
NODES = [zoned("a", "x"), zoned("b", "x"), zoned("c", "y"), make_node("d")]


@pytest.mark.parametrize(
    ("pod", "pods", "skewed"),
    [
        pytest.param(spreading(constraint()), [], "", id="an empty cluster"),
        pytest.param(spreading(constraint()), placed("a"), "ab", id="a whole domain is beyond"),
        pytest.param(spreading(constraint()), placed("ac"), "", id="level again"),
        pytest.param(spreading(constraint(max_skew=2)), placed("a"), "", id="maxSkew allows it"),
        pytest.param(spreading(constraint(), labels={}), placed("a"), "", id="a Pod that does not match itself"),
        pytest.param(spreading(constraint()), placed("a", namespace="other"), "", id="another namespace"),
        pytest.param(spreading(constraint()), placed("a", labels={"app": "db"}), "", id="others do not count"),
        pytest.param(spreading(constraint()), [leaving(one) for one in placed("a")], "", id="nor who is being deleted"),
        pytest.param(spreading(constraint(labelSelector=None)), placed("aa"), "", id="no selector counts nobody"),
        pytest.param(spreading(constraint(labelSelector={})), placed("aa"), "", id="nor does an empty one"),
        pytest.param(
            spreading(constraint(labelSelector={}, minDomains=9, maxSkew=0)),
            [],
            "abc",
            id="which the Pod itself matches",
        ),
        pytest.param(spreading(constraint(minDomains=3)), placed("ac"), "abc", id="too few domains: least is 0"),
        pytest.param(spreading(constraint(minDomains=2)), placed("ac"), "", id="enough domains"),
        pytest.param(
            spreading(constraint(matchLabelKeys=["v"]), labels={**WEB, "v": "2"}),
            placed("a", labels={**WEB, "v": "1"}),
            "",
            id="matchLabelKeys tells versions apart",
        ),
        pytest.param(spreading(constraint(matchLabelKeys=["v"])), placed("a"), "ab", id="a key that the Pod lacks"),
        pytest.param(
            spreading(constraint(labelSelector=None, matchLabelKeys=["app"])),
            placed("a"),
            "",
            id="keys add nothing to no selector",
        ),
        pytest.param(spreading(constraint(HOST), constraint(max_skew=2)), placed("ab"), "ab", id="of two the tighter"),
        pytest.param(
            spreading(constraint(), nodeSelector={"zone": "x"}), placed("aaa"), "", id="only required nodes count"
        ),
        pytest.param(
            spreading(constraint(nodeAffinityPolicy="Ignore"), nodeSelector={"zone": "x"}),
            placed("a"),
            "ab",
            id="unless affinity is ignored",
        ),
    ],
)
def test_who_would_be_one_too_many(pod: PodInfo, pods: list[PodInfo], skewed: str) -> None:
    found = refusals(PodTopologySpread(), pod, world(NODES, pods))

    assert found == {name: {SKEWED} for name in skewed} | {"d": {MISSING}}


@pytest.mark.parametrize(
    ("policy", "taints", "tolerations", "skewed"),
    [
        pytest.param("Ignore", TAINT, [], "a", id="taints are ignored"),
        pytest.param(None, TAINT, [], "a", id="by default, too"),
        pytest.param("Honor", TAINT, [], "", id="a tainted node does not count"),
        pytest.param("Honor", TAINT, [{"operator": "Exists"}], "a", id="unless it is tolerated"),
        pytest.param("Honor", SOFT_TAINT, [], "a", id="a taint that only asks"),
    ],
)
def test_taints_count_by_policy(
    policy: str | None, taints: Sequence[Mapping[str, str]], tolerations: list[Any], skewed: str
) -> None:
    nodes = [zoned("a", "x"), zoned("c", "y", taints=taints)]
    pod = spreading(constraint(nodeTaintsPolicy=policy), tolerations=tolerations)

    assert refusals(PodTopologySpread(), pod, world(nodes, placed("a"))) == {name: {SKEWED} for name in skewed}


def test_a_node_counts_for_nobody_unless_it_has_every_key() -> None:
    nodes = [make_node("a", labels={"zone": "x", "rack": "r"}), make_node("b", labels={"zone": "y"})]
    pod = spreading(constraint(), constraint("rack", 5))

    assert refusals(PodTopologySpread(), pod, world(nodes, placed("a"))) == {"b": {MISSING}}


def test_the_first_constraint_that_is_not_met_gives_the_reason() -> None:
    nodes = [make_node("a", labels={"zone": "x", "rack": "r"}), make_node("b", labels={"zone": "x"}), zoned("c", "y")]
    skewed_first = spreading(constraint(maxSkew=0), constraint("rack"))

    assert refusals(PodTopologySpread(), skewed_first, world(nodes)) == {name: {SKEWED} for name in "abc"}
    assert refusals(PodTopologySpread(), spreading(constraint("rack"), constraint(maxSkew=0)), world(nodes)) == {
        "a": {SKEWED},
        "b": {MISSING},
        "c": {MISSING},
    }


def test_a_key_that_no_node_has_refuses_all() -> None:
    found = refusals(PodTopologySpread(), spreading(constraint("nowhere")), world(NODES))

    assert found == {name: {MISSING} for name in "abcd"}


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(make_pod(), id="no constraint"),
        pytest.param(spreading(constraint(soft=True)), id="only soft ones"),
        pytest.param(make_pod(labels=WEB), id="the system's defaults are soft"),
    ],
)
def test_what_has_no_hard_constraint_skips_the_filter(pod: PodInfo) -> None:
    assert PodTopologySpread().prefilter(pod, world(NODES)) is SKIP


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(make_pod(labels=WEB), id="nothing selects it"),
        pytest.param(spreading(constraint()), id="only hard constraints, which switch the defaults off"),
    ],
)
def test_what_has_no_soft_constraint_skips_the_score(pod: PodInfo) -> None:
    assert PodTopologySpread().prescore(pod, world(NODES), slice(None)) is SKIP


def test_a_selector_that_cannot_be_read_fails_the_attempt() -> None:
    wrong = {"matchExpressions": [{"key": "app", "operator": "Near", "values": ["x"]}]}

    with pytest.raises(InvalidObjectError, match="Near"):
        PodTopologySpread().prefilter(spreading(constraint(labelSelector=wrong)), world(NODES))
    with pytest.raises(InvalidObjectError, match="Near"):
        PodTopologySpread().prescore(spreading(constraint(labelSelector=wrong, soft=True)), world(NODES), slice(None))


def test_a_pod_added_on_trial_counts_and_a_removed_one_does_not() -> None:
    plugin, pod = PodTopologySpread(), spreading(constraint())
    snapshot = world(NODES, placed("ac"))
    state = prefiltered(pod, snapshot)
    guest = make_pod("guest", labels=WEB)

    added = plugin.add_pod(state, guest, 2, snapshot)
    back = plugin.remove_pod(added, guest, 2, snapshot)

    def skewed(state: Any) -> list[bool]:
        found: list[bool] = plugin.filter(state, pod, snapshot, slice(None))[1].mask.tolist()
        return found

    assert skewed(added) == [False, False, True, False]
    assert skewed(back) == skewed(state) == [False, False, False, False]


@pytest.mark.parametrize(
    ("guest", "node"),
    [
        pytest.param(make_pod("g", labels=WEB, namespace="other"), 0, id="another namespace"),
        pytest.param(make_pod("g", labels={"app": "db"}), 0, id="no match"),
        pytest.param(make_pod("g", labels=WEB), 3, id="a node without the label"),
        pytest.param(make_pod("g", labels=WEB), 2, id="a node that does not count"),
    ],
)
def test_a_pod_on_trial_that_does_not_count_changes_nothing(guest: PodInfo, node: int) -> None:
    plugin, pod = PodTopologySpread(), spreading(constraint(), nodeSelector={"zone": "x"})
    snapshot = world(NODES, placed("a"))
    state = prefiltered(pod, snapshot)

    assert plugin.add_pod(state, guest, node, snapshot) == state


def test_on_trial_who_is_being_deleted_counts_and_an_empty_selector_matches() -> None:
    plugin, pod = PodTopologySpread(), spreading(constraint(labelSelector={}))
    snapshot = world(NODES)
    state = prefiltered(pod, snapshot)

    added = plugin.add_pod(state, leaving(make_pod("g")), 0, snapshot)

    assert plugin.filter(added, pod, snapshot, np.array([0, 2]))[1].mask.tolist() == [True, False]


def test_scores_grow_with_what_the_other_domains_have_less() -> None:
    pod = spreading(constraint(soft=True))
    snapshot = world(NODES, placed("aabc"))

    # ln(2 + 2) per Pod in the domain: 3 and 1; d is ignored.
    assert raw_scores(PodTopologySpread(), pod, snapshot) == {"PodTopologySpread": [4, 4, 1, 0]}
    assert final_scores(PodTopologySpread(), pod, snapshot) == {"PodTopologySpread": [25, 25, 100, 0]}


def test_max_skew_damps_what_a_pod_more_costs() -> None:
    pod = spreading(constraint(soft=True, max_skew=4))

    assert raw_scores(PodTopologySpread(), pod, world(NODES, placed("aabc"))) == {"PodTopologySpread": [7, 7, 4, 0]}


def test_without_any_pod_all_nodes_are_alike_but_those_without_a_label() -> None:
    assert final_scores(PodTopologySpread(), spreading(constraint(soft=True)), world(NODES)) == {
        "PodTopologySpread": [100, 100, 100, 0]
    }


def test_a_host_counts_its_own_pods_whatever_the_policies_say() -> None:
    pod = spreading(constraint(HOST, soft=True), nodeSelector={"zone": "y"})

    # ln(4 + 2) for each Pod.
    assert raw_scores(PodTopologySpread(), pod, world(NODES, placed("aac"))) == {"PodTopologySpread": [4, 0, 2, 0]}


def test_domains_are_those_of_feasible_nodes_but_all_nodes_in_them_count() -> None:
    snapshot, plugin, pod = world(NODES, placed("bbb")), PodTopologySpread(), spreading(constraint(soft=True))
    rows = np.array([0], dtype=np.int64)

    state: Any = plugin.prescore(pod, snapshot, rows)
    terms = plugin.score(state, pod, snapshot, rows)

    # One domain: ln(1 + 2) for each of b's Pods.
    assert [term.values.tolist() for term in terms] == [[3]]


SERVICE = object_of("Service", {"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": WEB}})


def owned(kind: str, version: str, **labels: str) -> PodInfo:
    owner = {"apiVersion": version, "kind": kind, "name": "o", "uid": "u", "controller": True}
    fields = {"name": "p", "namespace": "default", "uid": "p", "labels": labels, "ownerReferences": [owner]}
    return pod_of({"metadata": fields})


def owner_of(kind: str, selector: object) -> CatalogObject:
    return object_of(kind, {"metadata": {"name": "o", "namespace": "default"}, "spec": {"selector": selector}})


def defaulting(pod: PodInfo, *objects: CatalogObject) -> Mapping[str, list[float]]:
    nodes = [make_node("a", labels={ZONE: "x"}), make_node("b", labels={ZONE: "y"}), make_node("c")]
    return raw_scores(PodTopologySpread(), pod, world(nodes, placed("a"), objects))


# On a: 1 · ln 5 + 2 for the host, 1 · ln 5 + 4 for the zone ("x", "y" and none). c has a host only.
BY_DEFAULT = {"PodTopologySpread": [9, 6, 2]}
# The same, but no Pod matches.
BY_NOTHING = {"PodTopologySpread": [6, 6, 2]}


@pytest.mark.parametrize(
    ("pod", "objects", "expected"),
    [
        pytest.param(make_pod(labels=WEB), [SERVICE], BY_DEFAULT, id="a service selects it"),
        pytest.param(make_pod(labels={"app": "db"}), [SERVICE], {}, id="another service"),
        pytest.param(make_pod(labels=WEB, namespace="other"), [SERVICE], {}, id="a service of another namespace"),
        pytest.param(make_pod(labels=WEB), [owner_of("Service", None)], {}, id="a service without a selector"),
        pytest.param(make_pod(labels=WEB), [owner_of("Service", {})], {}, id="an empty selector adds nothing"),
        pytest.param(
            make_pod(labels={**WEB, "v": "1"}),
            [SERVICE, owner_of("Service", {"v": "1"})],
            BY_NOTHING,
            id="all services",
        ),
        pytest.param(
            owned("ReplicaSet", "apps/v1", **WEB), [owner_of("ReplicaSet", WEB_SELECTOR)], BY_DEFAULT, id="a ReplicaSet"
        ),
        pytest.param(
            owned("StatefulSet", "apps/v1", **WEB),
            [owner_of("StatefulSet", WEB_SELECTOR)],
            BY_DEFAULT,
            id="StatefulSet",
        ),
        pytest.param(
            owned("ReplicationController", "v1", **WEB),
            [owner_of("ReplicationController", WEB)],
            BY_DEFAULT,
            id="a ReplicationController",
        ),
        pytest.param(
            owned("ReplicaSet", "extensions/v1", **WEB),
            [owner_of("ReplicaSet", WEB_SELECTOR)],
            {},
            id="another version",
        ),
        pytest.param(owned("ReplicaSet", "apps/v1", **WEB), [], {}, id="an owner that is not there"),
        pytest.param(
            owned("ReplicaSet", "apps/v1", **WEB),
            [SERVICE, owner_of("ReplicaSet", {"matchExpressions": [{"key": "v", "operator": "Exists"}]})],
            BY_NOTHING,
            id="a service and its owner",
        ),
        pytest.param(
            owned("ReplicaSet", "apps/v1", **WEB),
            [SERVICE, owner_of("ReplicaSet", {"matchExpressions": [{"key": "v", "operator": "Near"}]})],
            BY_DEFAULT,
            id="an owner whose selector cannot be read adds nothing",
        ),
        pytest.param(
            owned("ReplicaSet", "apps/v1", **WEB),
            [SERVICE, owner_of("ReplicaSet", None)],
            BY_DEFAULT,
            id="nor one without",
        ),
    ],
)
def test_defaults_spread_what_services_and_owners_select(
    pod: PodInfo, objects: list[CatalogObject], expected: Mapping[str, list[int]]
) -> None:
    assert defaulting(pod, *objects) == expected


def test_a_service_that_goes_takes_the_defaults_along() -> None:
    state = cluster_of(NODES, placed("a"), [PodTopologySpread()], [SERVICE])
    pod = make_pod(labels=WEB)

    assert raw_scores(PodTopologySpread(), pod, Snapshot(state, NO_SIGNALS, 0.0)) != {}
    state.remove_object(type(SERVICE), "default", "s")
    assert raw_scores(PodTopologySpread(), pod, Snapshot(state, NO_SIGNALS, 0.0)) == {}


def test_defaults_of_the_configuration_stand_in_for_the_systems() -> None:
    hard = TopologySpreadConstraint(max_skew=1, topology_key="zone", when_unsatisfiable="DoNotSchedule")
    plugin = PodTopologySpread(PodTopologySpreadArgs(default_constraints=(hard,), defaulting_type="List"))
    snapshot = world(NODES, placed("a"), [SERVICE])
    pod = make_pod(labels=WEB)

    assert refusals(plugin, pod, snapshot) == {"a": {SKEWED}, "b": {SKEWED}, "d": {MISSING}}
    assert plugin.prescore(pod, snapshot, slice(None)) is SKIP


def test_a_configured_default_ignores_nodes_without_its_label() -> None:
    soft = TopologySpreadConstraint(max_skew=1, topology_key="zone", when_unsatisfiable="ScheduleAnyway")
    plugin = PodTopologySpread(PodTopologySpreadArgs(default_constraints=(soft,), defaulting_type="List"))

    found = final_scores(plugin, make_pod(labels=WEB), world(NODES, placed("c"), [SERVICE]))

    assert found == {"PodTopologySpread": [100, 100, 0, 0]}
