"""Which events bring a Pod back that InterPodAffinity refused."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.framework.events import Action, ClusterEvent, QueueingHint, Resource
from scheduler.model.objects import Node
from scheduler.model.pods import PodInfo
from scheduler.plugins.inter_pod_affinity.plugin import InterPodAffinity
from tests.builders import make_node, make_pod

WEB, DB = {"app": "web"}, {"app": "db"}


def term(key: str = "zone", **fields: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": WEB}, **fields}


def pod(kind: str, *terms: dict[str, Any], **fields: Any) -> PodInfo:
    return make_pod(
        spec={"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}, **fields
    )


def selecting(operator: str, *values: str) -> dict[str, Any]:
    return {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": operator, "values": list(values)}]}}


NEAR, AWAY = pod("podAffinity", term()), pod("podAntiAffinity", term())
TIER = term(labelSelector={"matchLabels": {"tier": "1"}})
NEAR_BOTH, AWAY_EITHER = pod("podAffinity", term(), TIER), pod("podAntiAffinity", term(), TIER)
BROKEN = pod("podAffinity", term(labelSelector={"matchExpressions": [{"key": "a", "operator": "Bogus"}]}))
BROKEN_AWAY = pod(
    "podAntiAffinity", term(labelSelector={"matchExpressions": [{"key": "a", "operator": "Bogus"}]}), node="n"
)
ON_N = make_pod("web", node="n", labels=WEB)
DB_ON_N = make_pod("db", node="n", labels=DB)
BOTH_ON_N = make_pod("both", node="n", labels={**WEB, "tier": "1"})
ELSEWHERE = make_pod("web", namespace="other", node="n", labels=WEB)
PENDING, NOMINATED = make_pod("web", labels=WEB), make_pod("web", labels=WEB, nominated="n")


def came(new: PodInfo) -> ClusterEvent:
    return ClusterEvent(Resource.ASSIGNED_POD, Action.ADD, "", None, new)


def went(old: PodInfo) -> ClusterEvent:
    return ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, "", old)


def relabelled(old: PodInfo, new: PodInfo) -> ClusterEvent:
    return ClusterEvent(Resource.ASSIGNED_POD, Action.UPDATE_POD_LABEL, "", old, new)


def node_event(old: Node | None, new: Node) -> ClusterEvent:
    action = Action.ADD if old is None else Action.UPDATE_NODE_LABEL
    return ClusterEvent(Resource.NODE, action, "", old, new)


IN_A, IN_B, NO_ZONE = make_node(labels={"zone": "a"}), make_node(labels={"zone": "b"}), make_node()


@pytest.mark.parametrize(
    ("asking", "event", "expected"),
    [
        pytest.param(NEAR, came(ON_N), True, id="affinity: a match came"),
        pytest.param(NEAR, came(NOMINATED), True, id="affinity: it was nominated"),
        pytest.param(NEAR, came(PENDING), False, id="affinity: it has no place"),
        pytest.param(NEAR, came(DB_ON_N), False, id="affinity: another Pod came"),
        pytest.param(NEAR, came(ELSEWHERE), False, id="affinity: in another namespace"),
        pytest.param(NEAR, went(ON_N), False, id="affinity: a match went"),
        pytest.param(NEAR_BOTH, came(ON_N), False, id="affinity: it matches one term of two"),
        pytest.param(NEAR_BOTH, came(BOTH_ON_N), True, id="affinity: it matches both"),
        pytest.param(NEAR, relabelled(DB_ON_N, ON_N), True, id="affinity: it matches now"),
        pytest.param(NEAR, relabelled(ON_N, ON_N), False, id="affinity: it always did"),
        pytest.param(NEAR, relabelled(ON_N, DB_ON_N), False, id="affinity: it did"),
        pytest.param(AWAY, went(ON_N), True, id="anti-affinity: a match went"),
        pytest.param(AWAY, went(DB_ON_N), False, id="anti-affinity: another Pod went"),
        pytest.param(AWAY, went(PENDING), False, id="anti-affinity: it had no place"),
        pytest.param(AWAY, came(ON_N), False, id="anti-affinity: a match came"),
        pytest.param(AWAY_EITHER, went(ON_N), True, id="anti-affinity: one term of two is enough"),
        pytest.param(AWAY, relabelled(ON_N, DB_ON_N), True, id="anti-affinity: it matches no more"),
        pytest.param(AWAY, relabelled(DB_ON_N, ON_N), False, id="anti-affinity: it matches now"),
        pytest.param(AWAY_EITHER, relabelled(BOTH_ON_N, ON_N), False, id="anti-affinity: it still matches one term"),
        pytest.param(
            make_pod(labels=WEB), went(pod("podAntiAffinity", term(), node="n")), True, id="theirs: who minded it went"
        ),
        pytest.param(
            make_pod(labels=DB), went(pod("podAntiAffinity", term(), node="n")), False, id="theirs: it was not minded"
        ),
        pytest.param(make_pod(labels=WEB), went(BROKEN_AWAY), True, id="theirs: they cannot be read"),
        pytest.param(BROKEN, came(DB_ON_N), True, id="a Pod whose terms cannot be read is tried again"),
        pytest.param(BROKEN, came(PENDING), False, id="but not for a Pod without a place"),
        pytest.param(BROKEN, node_event(None, NO_ZONE), True, id="it is tried again for any node"),
        pytest.param(
            pod("podAffinity", term(**selecting("In", "red"))),
            came(ON_N),
            False,
            id="trap: a namespace selector with In never sees a label",
        ),
        pytest.param(
            pod("podAffinity", term(**selecting("NotIn", "red"))),
            came(ELSEWHERE),
            True,
            id="trap: with NotIn it takes every namespace",
        ),
        pytest.param(
            pod("podAffinity", term(namespaceSelector={})), came(ELSEWHERE), True, id="the empty one takes all rightly"
        ),
        pytest.param(NEAR, node_event(None, IN_A), True, id="affinity: a node with the key came"),
        pytest.param(NEAR, node_event(None, NO_ZONE), False, id="affinity: one without"),
        pytest.param(NEAR, node_event(NO_ZONE, IN_A), True, id="affinity: a node got the key"),
        pytest.param(NEAR, node_event(IN_A, IN_B), True, id="affinity: it moved"),
        pytest.param(NEAR, node_event(IN_A, IN_A), False, id="affinity: it stayed"),
        pytest.param(NEAR, node_event(IN_A, NO_ZONE), False, id="affinity: it lost the key"),
        pytest.param(AWAY, node_event(None, NO_ZONE), True, id="anti-affinity: any node came"),
        pytest.param(AWAY, node_event(IN_A, NO_ZONE), True, id="anti-affinity: a node lost the key"),
        pytest.param(AWAY, node_event(IN_A, IN_B), True, id="anti-affinity: it moved"),
        pytest.param(AWAY, node_event(NO_ZONE, IN_A), False, id="anti-affinity: it got the key"),
        pytest.param(make_pod(), node_event(None, IN_A), False, id="no terms: a node came"),
        pytest.param(
            NEAR,
            ClusterEvent(Resource.TARGET_POD, Action.UPDATE_POD_LABEL, "", NEAR, NEAR),
            True,
            id="its own labels changed",
        ),
        pytest.param(
            NEAR,
            ClusterEvent(Resource.TARGET_POD, Action.UPDATE_POD_TOLERATION, "", NEAR, NEAR),
            False,
            id="its tolerations did",
        ),
        pytest.param(
            AWAY,
            ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT, "", IN_A, IN_B),
            False,
            id="a node's taints did",
        ),
    ],
)
def test_what_brings_a_pod_back(asking: PodInfo, event: ClusterEvent, expected: bool) -> None:
    found = [one.hint(asking, event) for one in InterPodAffinity().events() if one.covers(event)]

    assert (QueueingHint.QUEUE in found) is expected
