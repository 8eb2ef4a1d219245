"""Which events bring back a Pod that PodTopologySpread refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from scheduler.errors import InvalidObjectError
from scheduler.framework.events import Action, ClusterEvent, QueueingHint, Resource
from scheduler.framework.intree_args import PodTopologySpreadArgs
from scheduler.model.objects import Node, TopologySpreadConstraint
from scheduler.model.pods import PodInfo
from scheduler.plugins.pod_topology_spread import PodTopologySpread
from tests.builders import make_node, make_pod

WEB, DB = {"app": "web"}, {"app": "db"}
LABEL, TOLERATION = Action.UPDATE_POD_LABEL, Action.UPDATE_POD_TOLERATION
NODE_LABEL, NODE_TAINT = Action.UPDATE_NODE_LABEL, Action.UPDATE_NODE_TAINT
TOLERANT: Mapping[str, Any] = {"tolerations": [{"operator": "Exists"}]}
TAINT = [{"key": "k", "effect": "NoSchedule"}]


def spreading(labels: Mapping[str, str] = WEB, spec: Mapping[str, Any] | None = None, **fields: Any) -> PodInfo:
    selector = {"matchLabels": WEB}
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    constraints = [
        {**constraint, **fields},
        {**constraint, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"},
    ]
    return make_pod("waiting", labels=labels, spec={"topologySpreadConstraints": constraints, **(spec or {})})


def other(labels: Mapping[str, str], namespace: str = "default") -> PodInfo:
    return make_pod("other", labels=labels, namespace=namespace, node="n")


def pod_event(action: Action, old: PodInfo | None, new: PodInfo | None) -> ClusterEvent:
    return ClusterEvent(Resource.ASSIGNED_POD, action, "", old, new)


def own(action: Action, old: PodInfo, new: PodInfo) -> ClusterEvent:
    return ClusterEvent(Resource.TARGET_POD, action, "", old, new)


def node_event(action: Action, old: Node | None, new: Node | None) -> ClusterEvent:
    return ClusterEvent(Resource.NODE, action, "", old, new)


def zoned(zone: str, **fields: Any) -> Node:
    return make_node(labels={"zone": zone}, **fields)


def wakes(plugin: PodTopologySpread, pod: PodInfo, event: ClusterEvent) -> bool:
    return any(one.covers(event) and one.hint(pod, event) is QueueingHint.QUEUE for one in plugin.events())


X, Y, NONE, TAINTED = zoned("x"), zoned("y"), make_node(), zoned("x", taints=TAINT)
KEYED: dict[str, Any] = {"matchLabelKeys": ["v"]}


@pytest.mark.parametrize(
    ("pod", "event", "expected"),
    [
        pytest.param(spreading(), pod_event(Action.ADD, None, other(WEB)), True, id="a Pod that matches came"),
        pytest.param(spreading(), pod_event(Action.ADD, None, other(DB)), False, id="one that does not"),
        pytest.param(spreading(), pod_event(Action.ADD, None, other(WEB, "b")), False, id="of another namespace"),
        pytest.param(spreading(), pod_event(Action.DELETE, other(WEB), None), True, id="one that matches went"),
        pytest.param(spreading(), pod_event(Action.DELETE, other(DB), None), False, id="one that does not went"),
        pytest.param(spreading(), pod_event(Action.DELETE, other(WEB, "b"), None), False, id="elsewhere"),
        pytest.param(spreading(), pod_event(LABEL, other(DB), other(WEB)), True, id="one matches now"),
        pytest.param(spreading(), pod_event(LABEL, other(WEB), other(DB)), True, id="one does no more"),
        pytest.param(
            spreading(), pod_event(LABEL, other(WEB), other({**WEB, "v": "1"})), False, id="and one still does"
        ),
        pytest.param(
            spreading(), pod_event(Action.UPDATE_POD_SCALE_DOWN, other(DB), other(WEB)), False, id="not asked"
        ),
        pytest.param(spreading(), own(LABEL, spreading(DB), spreading()), True, id="the Pod matches itself now"),
        pytest.param(spreading(), own(LABEL, spreading({**WEB, "v": "1"}), spreading()), False, id="or still does"),
        pytest.param(
            spreading({**WEB, "v": "2"}, **KEYED),
            own(LABEL, spreading({**WEB, "v": "1"}, **KEYED), spreading({**WEB, "v": "2"}, **KEYED)),
            True,
            id="a label that matchLabelKeys reads",
        ),
        pytest.param(
            spreading(nodeTaintsPolicy="Honor"),
            own(TOLERATION, spreading(), spreading(spec=TOLERANT)),
            True,
            id="it tolerates more, and taints count",
        ),
        pytest.param(
            spreading(), own(TOLERATION, spreading(), spreading(spec=TOLERANT)), False, id="and taints do not count"
        ),
        pytest.param(spreading(), node_event(Action.ADD, None, X), True, id="a node with the label came"),
        pytest.param(spreading(), node_event(Action.ADD, None, NONE), False, id="one without"),
        pytest.param(spreading(), node_event(Action.DELETE, X, None), True, id="a node with the label went"),
        pytest.param(spreading(), node_event(Action.DELETE, NONE, None), False, id="one without went"),
        pytest.param(spreading(), node_event(NODE_LABEL, NONE, X), True, id="a node got the label"),
        pytest.param(spreading(), node_event(NODE_LABEL, X, NONE), True, id="one lost it"),
        pytest.param(spreading(), node_event(NODE_LABEL, X, Y), True, id="one moved to another domain"),
        pytest.param(spreading(), node_event(NODE_LABEL, X, X), False, id="one changed something else"),
        pytest.param(spreading(), node_event(NODE_TAINT, TAINTED, X), True, id="a taint went"),
        pytest.param(spreading(), node_event(NODE_TAINT, make_node(taints=TAINT), NONE), False, id="of no domain"),
        pytest.param(spreading(), node_event(Action.UPDATE_NODE_ALLOCATABLE, NONE, X), False, id="a node grew"),
    ],
)
def test_what_brings_a_pod_back(pod: PodInfo, event: ClusterEvent, expected: bool) -> None:
    assert wakes(PodTopologySpread(), pod, event) is expected


def test_a_selector_that_cannot_be_read_raises_which_brings_the_pod_back() -> None:
    wrong = {"matchExpressions": [{"key": "app", "operator": "Near", "values": ["x"]}]}

    with pytest.raises(InvalidObjectError, match="Near"):
        wakes(PodTopologySpread(), spreading(labelSelector=wrong), pod_event(Action.ADD, None, other(WEB)))


def test_whom_a_configured_default_refused_any_pod_of_its_namespace_brings_back() -> None:
    hard = TopologySpreadConstraint(max_skew=1, topology_key="zone", when_unsatisfiable="DoNotSchedule")
    plugin = PodTopologySpread(PodTopologySpreadArgs(default_constraints=(hard,), defaulting_type="List"))

    assert wakes(plugin, make_pod(), pod_event(Action.ADD, None, other(DB)))
    assert not wakes(plugin, make_pod(), pod_event(Action.ADD, None, other(DB, "b")))
    assert not wakes(plugin, make_pod(), node_event(Action.ADD, None, NONE))
