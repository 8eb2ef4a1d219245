"""NodeResourcesFit: nodes with room for what the Pod requests, scored by how full they would be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.framework.events import Action, ClusterEvent, EventInterest, QueueingHint, Resource
from scheduler.framework.plugin import FilterPlugin, PreFilterPlugin, ScorePlugin
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
from scheduler.plugins.resource_scoring import (
    DEFAULT_RESOURCES,
    Strategy,
    Weights,
    check_shape,
    check_weights,
    fills,
    mean_score,
    shape_scores,
)

REASON_PODS = "Too many pods"
MAX_RESOURCE_WEIGHT = 100


@dataclass(frozen=True, slots=True)
class FitArgs:
    """The arguments of NodeResourcesFit, checked; the defaults are kube-scheduler's.

    shape
        (per cent of use, score 0..10) points, for RequestedToCapacityRatio.
    ignored_resources, ignored_groups
        Extended resources, by name or by what stands before their slash, that the filter leaves to others.
    """

    strategy: Strategy = Strategy.LEAST_ALLOCATED
    resources: Weights = DEFAULT_RESOURCES
    shape: tuple[tuple[int, int], ...] = ((0, 0), (100, 10))
    ignored_resources: frozenset[str] = frozenset()
    ignored_groups: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        where = "NodeResourcesFitArgs.scoringStrategy"
        check_weights(where, self.resources, MAX_RESOURCE_WEIGHT)
        check_shape(f"{where}.requestedToCapacityRatio", self.shape)


class NodeResourcesFit(PreFilterPlugin, FilterPlugin, ScorePlugin):
    """Refuses nodes without room, naming every resource that is short.

    The code says whether removing Pods could help: not where a request is beyond what the whole node offers.

    Source: kube-scheduler v1.37 noderesources/fit.go (behaviour).
    """

    def __init__(self, args: FitArgs | None = None) -> None:
        self._args = args or FitArgs()
        self._shape_table = shape_scores(self._args.shape)
        self._scores_only_defaults = all(name in NONZERO_RESOURCES for name, _ in self._args.resources)

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
            rejections += _refuse_short(nodes, rows, name, amount)
        return rejections

    def score(self, state: Amounts, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[ScoreTerm]:
        """Return the configured strategy's score; containers that ask for nothing count with defaults."""
        args, nodes, amounts = self._args, snapshot.nodes, self._scored(pod)

        def scores(rows: Rows) -> IntArray:
            parts = list(fills(nodes, rows, args.resources, amounts, nonzero=True))
            return mean_score(args.strategy, parts, self._shape_table, len(nodes.alive[rows]))

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
        ignored = self._args.ignored_resources or self._args.ignored_groups
        return {
            name: amount
            for name, amount in pod.requests.items()
            if amount > 0 and not (ignored and self._is_ignored(name))
        }

    def _is_ignored(self, name: str) -> bool:
        args = self._args
        return is_extended(name) and (name in args.ignored_resources or name.partition("/")[0] in args.ignored_groups)

    def _scored(self, pod: PodInfo) -> Amounts:
        cpu_milli, memory_bytes = pod.scored_requests
        others = {} if self._scores_only_defaults else container_requests(pod.pod)
        return others | {CPU: cpu_milli, MEMORY: memory_bytes}

    def _placed_pod_shrank(self, pod: PodInfo, event: ClusterEvent) -> QueueingHint:
        if not isinstance(event.old, PodInfo) or not isinstance(event.new, PodInfo):
            return QueueingHint.QUEUE
        before, after = event.old.requests, event.new.requests
        shrank = any(after.get(name, 0) < before.get(name, 0) for name in self._wanted(pod))
        return QueueingHint.QUEUE if shrank else QueueingHint.SKIP

    def _node_grew(self, pod: PodInfo, event: ClusterEvent) -> QueueingHint:
        if not isinstance(event.new, Node):
            return QueueingHint.SKIP
        wanted = self._wanted(pod) | {PODS: 1}
        after = resource_amounts(event.new.status.allocatable)
        if any(amount > after.get(name, 0) for name, amount in wanted.items()):
            return QueueingHint.SKIP
        if not isinstance(event.old, Node):
            return QueueingHint.QUEUE
        before = resource_amounts(event.old.status.allocatable)
        grew = any(after.get(name, 0) > before.get(name, 0) for name in wanted)
        return QueueingHint.QUEUE if grew else QueueingHint.SKIP


def _refuse_short(nodes: NodeView, rows: Rows, name: str, amount: int) -> list[Rejection]:
    """Return up to two refusals for one resource, with disjoint masks: those that eviction may cure, and not."""
    reason = f"Insufficient {name}"
    index = nodes.resources.get(name)
    if index is None:
        everywhere = np.ones(len(nodes.alive[rows]), dtype=np.bool_)
        return [Rejection(everywhere, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reason)]
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


def _placed_pod_left(_pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    gone = event.old
    held_room = isinstance(gone, PodInfo) and (gone.pod.spec.node_name or gone.pod.status.nominated_node_name)
    return QueueingHint.QUEUE if held_room else QueueingHint.SKIP
