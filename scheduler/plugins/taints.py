"""NodeUnschedulable and TaintToleration: nodes that keep Pods away unless they tolerate it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.framework.events import Action, ClusterEvent, EventInterest, QueueingHint, Resource
from scheduler.framework.plugin import FilterPlugin, FreedBy, ScorePlugin
from scheduler.framework.status import Code, Rejection, ScoreTerm
from scheduler.model.arrays import BoolArray, IntArray, Rows
from scheduler.model.objects import Node, Taint, Toleration
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.plugins.shared.eligible_nodes import REFUSING_EFFECTS, tolerates
from scheduler.plugins.shared.scores import scale_to_max

REASON_UNSCHEDULABLE = "node(s) were unschedulable"
REASON_TAINTED = "node(s) had untolerated taint(s)"

_CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_AVOIDING_EFFECT = "PreferNoSchedule"


def _tolerations(pod: PodInfo) -> list[Toleration]:
    return pod.pod.spec.tolerations or []


def _is_repelled(node: Node, pod: PodInfo) -> bool:
    taints = [taint for taint in node.spec.taints or [] if taint.effect in REFUSING_EFFECTS]
    return any(not tolerates(_tolerations(pod), taint) for taint in taints)


class NodeUnschedulable(FilterPlugin):
    """Refuses cordoned nodes to Pods that do not tolerate the taint which stands for cordoning.

    Source: kube-scheduler v1.37 nodeunschedulable/node_unschedulable.go (behaviour).
    """

    freed_by = FreedBy.NOTHING

    def filter(self, state: object, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        cordoned: BoolArray = snapshot.nodes.unschedulable[rows]
        if not cordoned.any() or tolerates(_tolerations(pod), _CORDONED):
            return ()
        return (Rejection(cordoned, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON_UNSCHEDULABLE),)

    def events(self) -> Sequence[EventInterest]:
        return (
            EventInterest(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, _node_opened),
            EventInterest(Resource.TARGET_POD, Action.UPDATE_POD_TOLERATION, _tolerates_cordoning_now),
        )


def _node_opened(_pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    was_open = isinstance(event.old, Node) and not event.old.spec.unschedulable
    is_open = isinstance(event.new, Node) and not event.new.spec.unschedulable
    return QueueingHint.QUEUE if is_open and not was_open else QueueingHint.SKIP


def _tolerates_cordoning_now(_pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    if isinstance(event.new, PodInfo) and tolerates(_tolerations(event.new), _CORDONED):
        return QueueingHint.QUEUE
    return QueueingHint.SKIP


class TaintToleration(FilterPlugin, ScorePlugin):
    """Refuses nodes with an untolerated NoSchedule or NoExecute taint, and avoids PreferNoSchedule ones.

    The cost grows with the number of distinct taints in the cluster, not with the number of nodes that
    carry them.

    Source: kube-scheduler v1.37 tainttoleration/taint_toleration.go (behaviour).
    """

    freed_by = FreedBy.NOTHING

    def filter(self, state: object, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        tolerations = _tolerations(pod)
        refused: BoolArray | None = None
        for taint, column in snapshot.nodes.taints():
            if taint.effect in REFUSING_EFFECTS and not tolerates(tolerations, taint):
                refused = column[rows] if refused is None else refused | column[rows]
        if refused is None or not refused.any():
            return ()
        return (Rejection(refused, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON_TAINTED),)

    def score(self, state: object, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[ScoreTerm]:
        """Return how many PreferNoSchedule taints of each node the Pod does not tolerate."""
        tolerations = [t for t in _tolerations(pod) if t.effect in ("", _AVOIDING_EFFECT)]
        counts = np.zeros(len(snapshot.nodes.alive[rows]), dtype=np.int64)
        for taint, column in snapshot.nodes.taints():
            if taint.effect == _AVOIDING_EFFECT and not tolerates(tolerations, taint):
                counts += column[rows]
        return (ScoreTerm(self.name, counts),)

    def normalize(self, term: ScoreTerm) -> IntArray:
        return scale_to_max(term.values.astype(np.int64, copy=False), reverse=True)

    def events(self) -> Sequence[EventInterest]:
        return (
            EventInterest(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, _node_became_tolerable),
            EventInterest(Resource.TARGET_POD, Action.UPDATE_POD_TOLERATION),
        )


def _node_became_tolerable(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    was_repelled = not isinstance(event.old, Node) or _is_repelled(event.old, pod)
    is_repelled = not isinstance(event.new, Node) or _is_repelled(event.new, pod)
    return QueueingHint.QUEUE if was_repelled and not is_repelled else QueueingHint.SKIP
