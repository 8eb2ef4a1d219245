"""Which changes of Pods and nodes may make room for a Pod that was refused.

Source: kube-scheduler v1.37 podtopologyspread/plugin.go (behaviour).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler.framework.events import ClusterEvent, QueueingHint
from scheduler.model.objects import Node, Toleration
from scheduler.model.pods import PodInfo
from scheduler.plugins.pod_topology_spread.constraints import Constraint


def after_pod_change(pod: PodInfo, event: ClusterEvent, constraints: Sequence[Constraint]) -> QueueingHint:
    """Queue if a Pod of the same namespace came to match a constraint, went or ceased to, or is now tolerant itself."""
    old = event.old if isinstance(event.old, PodInfo) else None
    new = event.new if isinstance(event.new, PodInfo) else None
    if any(one is not None and pod.uid != one.uid and pod.namespace != one.namespace for one in (old, new)):
        return QueueingHint.SKIP
    if old is not None and new is not None:
        if pod.uid == new.uid and _tolerations(old) != _tolerations(new):
            if any(one.honors_taints for one in constraints):
                return QueueingHint.QUEUE
        return _queue_if(
            any(one.selector.matches(old.labels) != one.selector.matches(new.labels) for one in constraints)
        )
    return _queue_if(
        any(
            one.selector.matches(changed.labels) for changed in (old, new) if changed is not None for one in constraints
        )
    )


def after_node_change(event: ClusterEvent, constraints: Sequence[Constraint]) -> QueueingHint:
    """Queue if a node with all labels came or went, or changed one of them or its taints."""
    old = event.old if isinstance(event.old, Node) else None
    new = event.new if isinstance(event.new, Node) else None
    before, after = _labels(old), _labels(new)
    had = old is not None and _has_all(before, constraints)
    has = new is not None and _has_all(after, constraints)
    if old is None or new is None or had != has:
        return _queue_if(had or has)
    moved = any(before.get(one.topology_key) != after.get(one.topology_key) for one in constraints)
    return _queue_if(has and (moved or (old.spec.taints or []) != (new.spec.taints or [])))


def _tolerations(pod: PodInfo) -> list[Toleration]:
    return pod.pod.spec.tolerations or []


def _labels(node: Node | None) -> Mapping[str, str]:
    return (node.metadata.labels if node is not None else None) or {}


def _has_all(labels: Mapping[str, str], constraints: Sequence[Constraint]) -> bool:
    return all(one.topology_key in labels for one in constraints)


def _queue_if(helps: bool) -> QueueingHint:
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP
