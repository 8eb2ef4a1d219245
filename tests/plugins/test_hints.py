"""Which events bring a refused Pod back, per plugin."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.framework.events import Action, ClusterEvent, QueueingHint, Resource
from scheduler.framework.plugin import Plugin
from scheduler.model.objects import Node
from scheduler.model.pods import PodInfo
from scheduler.plugins.node_affinity import NodeAffinity
from scheduler.plugins.node_declared_features import NodeDeclaredFeatures
from scheduler.plugins.node_name import NodeName
from scheduler.plugins.node_ports import NodePorts
from scheduler.plugins.node_resources_fit import NodeResourcesFit
from scheduler.plugins.queue_order import SchedulingGates
from scheduler.plugins.signals import SignalFilter
from scheduler.plugins.taints import NodeUnschedulable, TaintToleration
from tests.builders import make_node, make_pod

TAINT = [{"key": "k", "value": "v", "effect": "NoSchedule"}]
TOLERANT: dict[str, Any] = {"tolerations": [{"key": "k", "operator": "Exists"}]}
TOLERATES_CORDON: dict[str, Any] = {"tolerations": [{"operator": "Exists"}]}
PORT: dict[str, Any] = {"ports": [{"hostPort": 80}]}


def wakes(plugin: Plugin, pod: PodInfo, event: ClusterEvent) -> bool:
    """Return whether any registered interest queues the Pod."""
    return any(one.covers(event) and one.hint(pod, event) is QueueingHint.QUEUE for one in plugin.events())


def node_event(action: Action, old: Node | None, new: Node | None) -> ClusterEvent:
    return ClusterEvent(Resource.NODE, action, "", old, new)


def added(node: Node) -> ClusterEvent:
    return node_event(Action.ADD, None, node)


def deleted(pod: PodInfo) -> ClusterEvent:
    return ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, "", pod)


def own(action: Action, new: PodInfo) -> ClusterEvent:
    return ClusterEvent(Resource.TARGET_POD, action, "", make_pod(), new)


GATED = make_pod(spec={"schedulingGates": [{"name": "g"}]})
ZONED = make_pod(spec={"nodeSelector": {"zone": "a"}})
HOSTED = make_pod(spec={"hostNetwork": True, "hostUsers": False})
IN_ZONE, NO_ZONE = make_node(labels={"zone": "a"}), make_node()
FEATURES = Action.UPDATE_NODE_DECLARED_FEATURE
GATES = Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
LABEL, TAINTS, ALLOCATABLE = Action.UPDATE_NODE_LABEL, Action.UPDATE_NODE_TAINT, Action.UPDATE_NODE_ALLOCATABLE


@pytest.mark.parametrize(
    ("plugin", "pod", "event", "expected"),
    [
        pytest.param(SchedulingGates(), GATED, own(GATES, make_pod()), True, id="gates: the last one is gone"),
        pytest.param(SchedulingGates(), GATED, own(GATES, GATED), False, id="gates: one is left"),
        pytest.param(NodeName(), make_pod(), added(make_node()), True, id="name: a node came"),
        pytest.param(NodeUnschedulable(), make_pod(), added(make_node()), True, id="cordon: an open node came"),
        pytest.param(
            NodeUnschedulable(), make_pod(), added(make_node(unschedulable=True)), False, id="cordon: a cordoned one"
        ),
        pytest.param(
            NodeUnschedulable(),
            make_pod(),
            node_event(TAINTS, make_node(unschedulable=True), make_node()),
            True,
            id="cordon: a node was opened",
        ),
        pytest.param(
            NodeUnschedulable(),
            make_pod(),
            own(Action.UPDATE_POD_TOLERATION, make_pod(spec=TOLERATES_CORDON)),
            True,
            id="cordon: the Pod tolerates it now",
        ),
        pytest.param(
            NodeUnschedulable(),
            make_pod(),
            own(Action.UPDATE_POD_TOLERATION, make_pod(spec=TOLERANT)),
            False,
            id="cordon: the Pod tolerates something else now",
        ),
        pytest.param(TaintToleration(), make_pod(), added(make_node(taints=TAINT)), False, id="taint: a tainted node"),
        pytest.param(
            TaintToleration(),
            make_pod(spec=TOLERANT),
            added(make_node(taints=TAINT)),
            True,
            id="taint: a tolerated one",
        ),
        pytest.param(
            TaintToleration(),
            make_pod(),
            node_event(TAINTS, make_node(taints=TAINT), make_node()),
            True,
            id="taint: it was taken away",
        ),
        pytest.param(
            TaintToleration(),
            make_pod(),
            node_event(TAINTS, make_node(), make_node()),
            False,
            id="taint: the node was fine before",
        ),
        pytest.param(
            TaintToleration(), make_pod(), own(Action.UPDATE_POD_TOLERATION, make_pod()), True, id="taint: tolerations"
        ),
        pytest.param(NodeAffinity(), ZONED, added(IN_ZONE), True, id="affinity: a matching node came"),
        pytest.param(NodeAffinity(), ZONED, added(NO_ZONE), False, id="affinity: another node came"),
        pytest.param(NodeAffinity(), ZONED, node_event(LABEL, NO_ZONE, IN_ZONE), True, id="affinity: it matches now"),
        pytest.param(NodeAffinity(), ZONED, node_event(LABEL, IN_ZONE, IN_ZONE), False, id="affinity: it always did"),
        pytest.param(
            NodePorts(), make_pod(**PORT), deleted(make_pod(node="n", **PORT)), True, id="ports: a holder went"
        ),
        pytest.param(
            NodePorts(), make_pod(**PORT), deleted(make_pod(node="n")), False, id="ports: a Pod without the port went"
        ),
        pytest.param(
            NodePorts(), make_pod(**PORT), deleted(make_pod(**PORT)), False, id="ports: a Pod that held no node went"
        ),
        pytest.param(NodePorts(), make_pod(**PORT), added(make_node()), True, id="ports: a node came"),
        pytest.param(NodeResourcesFit(), make_pod(), deleted(make_pod(node="n")), True, id="fit: a placed Pod went"),
        pytest.param(
            NodeResourcesFit(), make_pod(), deleted(make_pod(nominated="n")), True, id="fit: a nominated Pod went"
        ),
        pytest.param(NodeResourcesFit(), make_pod(), deleted(make_pod()), False, id="fit: a pending Pod went"),
        pytest.param(NodeResourcesFit(), make_pod(cpu="2"), added(make_node(cpu="2")), True, id="fit: room came"),
        pytest.param(
            NodeResourcesFit(), make_pod(cpu="3"), added(make_node(cpu="2")), False, id="fit: too small a node"
        ),
        pytest.param(
            NodeResourcesFit(),
            make_pod(cpu="2"),
            node_event(ALLOCATABLE, make_node(cpu="2"), make_node(cpu="3")),
            True,
            id="fit: the node grew",
        ),
        pytest.param(
            NodeResourcesFit(),
            make_pod(cpu="2"),
            node_event(ALLOCATABLE, make_node(cpu="3", memory="1Gi"), make_node(cpu="3", memory="2Gi")),
            False,
            id="fit: it grew by what is not asked for",
        ),
        pytest.param(
            NodeResourcesFit(),
            make_pod(),
            node_event(ALLOCATABLE, make_node(pods=1), make_node(pods=2)),
            True,
            id="fit: it takes more Pods",
        ),
        pytest.param(
            NodeResourcesFit(),
            make_pod(cpu="1"),
            ClusterEvent(
                Resource.ASSIGNED_POD,
                Action.UPDATE_POD_SCALE_DOWN,
                "",
                make_pod(node="n", cpu="2"),
                make_pod(node="n", cpu="1"),
            ),
            True,
            id="fit: a placed Pod shrank",
        ),
        pytest.param(
            NodeResourcesFit(),
            make_pod(memory="1Gi"),
            ClusterEvent(
                Resource.ASSIGNED_POD,
                Action.UPDATE_POD_SCALE_DOWN,
                "",
                make_pod(node="n", cpu="2"),
                make_pod(node="n", cpu="1"),
            ),
            False,
            id="fit: it shrank by what is not asked for",
        ),
        pytest.param(
            NodeResourcesFit(),
            make_pod(cpu="2"),
            own(Action.UPDATE_POD_SCALE_DOWN, make_pod(cpu="1")),
            True,
            id="fit: the Pod itself shrank",
        ),
        pytest.param(
            NodeDeclaredFeatures(), HOSTED, added(make_node()), True, id="features: a node came, whatever it has"
        ),
        pytest.param(
            NodeDeclaredFeatures(),
            HOSTED,
            node_event(FEATURES, make_node(features=["a"]), make_node(features=["b"])),
            True,
            id="features: a node declares others",
        ),
        pytest.param(
            NodeDeclaredFeatures(),
            HOSTED,
            node_event(FEATURES, make_node(features=["a"]), make_node(features=["a"])),
            False,
            id="features: a node declares the same",
        ),
        pytest.param(
            NodeDeclaredFeatures(),
            HOSTED,
            node_event(LABEL, make_node(), make_node(features=["a"])),
            False,
            id="features: a node's labels changed",
        ),
        pytest.param(
            NodeDeclaredFeatures(), HOSTED, own(Action.UPDATE_OTHER, HOSTED), True, id="features: the Pod needs others"
        ),
        pytest.param(
            NodeDeclaredFeatures(),
            HOSTED,
            own(Action.UPDATE_POD_LABEL, make_pod(labels={"a": "b"})),
            False,
            id="features: the Pod needs the same",
        ),
        pytest.param(
            NodeDeclaredFeatures(), HOSTED, deleted(make_pod(node="n")), False, id="features: a placed Pod went"
        ),
        pytest.param(
            SignalFilter(),
            make_pod(),
            ClusterEvent(Resource.SIGNALS, Action.REFRESHED, "", rules=frozenset({"r"})),
            True,
            id="signals: new samples",
        ),
        pytest.param(
            SignalFilter(),
            make_pod(),
            ClusterEvent(Resource.RULES, Action.REFRESHED, "", rules=frozenset({"r"})),
            True,
            id="signals: new rules",
        ),
        pytest.param(
            SignalFilter(),
            make_pod(),
            ClusterEvent(Resource.SIGNALS, Action.REFRESHED, ""),
            False,
            id="signals: new samples that change no verdict",
        ),
        pytest.param(SignalFilter(), make_pod(), added(make_node()), True, id="signals: a node came"),
        pytest.param(SignalFilter(), make_pod(), deleted(make_pod(node="n")), False, id="signals: a Pod went"),
    ],
)
def test_what_brings_a_pod_back(plugin: Plugin, pod: PodInfo, event: ClusterEvent, expected: bool) -> None:
    assert wakes(plugin, pod, event) is expected
