"""NodeResourcesFit: nodes with room for what the Pod requests, scored by how full they would be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.framework.events import Action, ClusterEvent, EventInterest, QueueingHint, Resource
from scheduler.framework.intree_args import NodeResourcesFitArgs
from scheduler.framework.plugin import FilterPlugin, FreedBy, PreFilterPlugin, ScorePlugin
from scheduler.framework.status import Code, PreFilterResult, Rejection, ScoreTerm
from scheduler.model.arrays import IntArray, Rows
from scheduler.model.objects import Node
from scheduler.model.pods import PodInfo
from scheduler.model.requests import (
    CPU,
    MEMORY,
    NONZERO_RESOURCES,
    PODS,
    Amounts,
    container_requests,
    is_extended,
    resource_amounts,
)
from scheduler.model.snapshot import Snapshot
from scheduler.model.views import NodeView
from scheduler.plugins.shared.resource_strategies import Strategy, fills, mean_score, weights_of
from scheduler.plugins.shared.scores import shape_scores

REASON_PODS = "Too many pods"

_MOST_NAMED = 1_000
"""A Pod may name tens of thousands of resources that no node has; so many say why it is refused."""


class NodeResourcesFit(PreFilterPlugin, FilterPlugin, ScorePlugin):
    """Refuses nodes without room, naming every resource that is short.

    The code says whether removing Pods could help: not where a request is beyond what the whole node offers.

    Source: kube-scheduler v1.37 noderesources/fit.go (behaviour).
    """

    freed_by = FreedBy.ROOM

    Args = NodeResourcesFitArgs

    def __init__(self, args: NodeResourcesFitArgs | None = None) -> None:
        args = args or NodeResourcesFitArgs()
        scoring, ratio = args.scoring_strategy, args.scoring_strategy.requested_to_capacity_ratio
        self._ignored_resources = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        self._strategy = Strategy(scoring.type)
        self._weights = weights_of(scoring.resources)
        self._shape_table = shape_scores([(point.utilization, point.score) for point in ratio.shape] if ratio else [])
        self._scores_only_defaults = all(name in NONZERO_RESOURCES for name, _ in self._weights)

    def prefilter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Return the amounts that the filter must find room for as the state."""
        return PreFilterResult(self._wanted(pod))

    def filter(self, state: Amounts, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        nodes = snapshot.nodes
        rejections: list[Rejection] = []
        pods = nodes.resources[PODS]
        crowded = nodes.n_pods[rows] >= nodes.allocatable[pods][rows]
        if crowded.any():
            rejections.append(Rejection(crowded, Code.UNSCHEDULABLE, REASON_PODS))
        for name, amount in state.items():
            if name in nodes.resources:
                rejections += _refuse_short(nodes, rows, name, amount)
        return rejections + _refuse_unknown(nodes, rows, [name for name in state if name not in nodes.resources])

    def score(self, state: Amounts, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[ScoreTerm]:
        """Return the configured strategy's score; containers that ask for nothing count with defaults."""
        nodes, amounts = snapshot.nodes, self._scored(pod)

        def scores(rows: Rows) -> IntArray:
            parts = list(fills(nodes, rows, self._weights, amounts, nonzero=True))
            return mean_score(self._strategy, parts, self._shape_table, len(nodes.alive[rows]))

        column = snapshot.by_row((self, tuple(amounts.items())), scores)
        return (ScoreTerm(self.name, column, is_column=True),)

    def events(self) -> Sequence[EventInterest]:
        return (
            EventInterest(Resource.ASSIGNED_POD, Action.DELETE, _placed_pod_left),
            EventInterest(Resource.ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN, self._placed_pod_shrank),
            EventInterest(Resource.TARGET_POD, Action.UPDATE_POD_SCALE_DOWN),
            EventInterest(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE, self._node_grew),
        )

    def _wanted(self, pod: PodInfo) -> Amounts:
        return {name: amount for name, amount in pod.requests.items() if amount > 0 and not self._is_ignored(name)}

    def _wants(self, pod: PodInfo, name: str) -> bool:
        return pod.requests.get(name, 0) > 0 and not self._is_ignored(name)

    def _is_ignored(self, name: str) -> bool:
        """Return whether the filter leaves this resource to others, by its name or by what stands before its slash."""
        if not self._ignored_resources and not self._ignored_groups:
            return False
        group = name.partition("/")[0]
        return is_extended(name) and (name in self._ignored_resources or group in self._ignored_groups)

    def _scored(self, pod: PodInfo) -> Amounts:
        cpu_milli, memory_bytes = pod.scored_requests
        others = {} if self._scores_only_defaults else container_requests(pod.pod)
        return others | {CPU: cpu_milli, MEMORY: memory_bytes}

    def _placed_pod_shrank(self, pod: PodInfo, event: ClusterEvent) -> QueueingHint:
        if not isinstance(event.old, PodInfo) or not isinstance(event.new, PodInfo):
            return QueueingHint.QUEUE
        if event.old.usage.problem or event.new.usage.problem:
            return QueueingHint.QUEUE
        before, after = event.old.requests, event.new.requests
        shrank = (name for name, amount in before.items() if after.get(name, 0) < amount)
        return QueueingHint.QUEUE if any(self._wants(pod, name) for name in shrank) else QueueingHint.SKIP

    def _node_grew(self, pod: PodInfo, event: ClusterEvent) -> QueueingHint:
        if not isinstance(event.new, Node):
            return QueueingHint.SKIP
        after = resource_amounts(event.new.status.allocatable)
        # Ended by the first that is short: a Pod may name tens of thousands, and each node asks.
        wanted = ((name, amount) for name, amount in pod.requests.items() if self._wants(pod, name))
        if any(amount > after.get(name, 0) for name, amount in wanted) or after.get(PODS, 0) < 1:
            return QueueingHint.SKIP
        if not isinstance(event.old, Node):
            return QueueingHint.QUEUE
        before = resource_amounts(event.old.status.allocatable)
        grown = [name for name, amount in after.items() if amount > before.get(name, 0)]
        grew = any(name == PODS or self._wants(pod, name) for name in grown)
        return QueueingHint.QUEUE if grew else QueueingHint.SKIP


def _refuse_short(nodes: NodeView, rows: Rows, name: str, amount: int) -> list[Rejection]:
    """Return up to two refusals for one resource, with disjoint masks: those that eviction may cure, and not."""
    reason = f"Insufficient {name}"
    index = nodes.resources[name]
    allocatable = nodes.allocatable[index][rows]
    short = allocatable - nodes.requested[index][rows] < amount
    if not short.any():
        return []
    hopeless = allocatable < amount
    rejections = [
        Rejection(short & hopeless, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reason),
        Rejection(short & ~hopeless, Code.UNSCHEDULABLE, reason),
    ]
    return [rejection for rejection in rejections if rejection.mask.any()]


def _refuse_unknown(nodes: NodeView, rows: Rows, names: Sequence[str]) -> list[Rejection]:
    """Return refusals of all rows for resources that no node advertises; they share one mask."""
    everywhere = np.ones(len(nodes.alive[rows]), dtype=np.bool_)
    code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    return [Rejection(everywhere, code, f"Insufficient {name}") for name in names[:_MOST_NAMED]]


def _placed_pod_left(_pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    gone = event.old
    held_room = isinstance(gone, PodInfo) and (gone.pod.spec.node_name or gone.pod.status.nominated_node_name)
    return QueueingHint.QUEUE if held_room else QueueingHint.SKIP
