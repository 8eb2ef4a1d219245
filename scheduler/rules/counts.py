"""Built-in signals: what is read from the snapshot instead of being asked for, exact at its moment and always fresh.

A count is that of the Pods which are placed now, of all schedulers, before the Pod at hand: so a limit of `max: 2` lets
a third one come. Pods that are being deleted count until they are gone. With a window those that have gone count too,
if they were placed within it. Values that change with each Pod are compared without hysteresis, and a node without a
value is not refused.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from scheduler.framework.events import EVERYONE, Action, ClusterEvent, Resource
from scheduler.framework.matching_pods import MatchingPods
from scheduler.framework.pod_match import Clause, PodMatch
from scheduler.framework.usage_by_priority import UsageByPriority
from scheduler.model.arrays import BoolArray, FloatArray, IntArray, read_only
from scheduler.model.history import CountedPods, Departed, PlacementHistory
from scheduler.model.labels import ABSENT
from scheduler.model.memo import Memo
from scheduler.model.pods import PodInfo
from scheduler.model.requests import CPU, PODS
from scheduler.model.rules import BuiltIn, BuiltInKind, ByKind, Match, Rule, Signal, Unit
from scheduler.model.selectors import Selector, SelectorTerm
from scheduler.model.signals import Freshness, SignalColumn
from scheduler.model.snapshot import Snapshot
from scheduler.model.views import NodeView
from scheduler.rules.reading import Departures, Reading, Sample

_MILLICORES: Final = 1000.0
_PERCENT: Final = 100.0
_SHARES: Final = (Unit.RATIO, Unit.PERCENT)
_MOST_KINDS: Final = 64
"""Kinds of Pods that a passing window is asked about one by one: beyond, one question for all of them costs less."""


class BuiltInReading(Reading, ABC):
    """Reads amounts that lie on nodes, alone or summed over a domain or the cluster."""

    is_asked = False

    def __init__(self, rule: Rule, signal: Signal, kept: Memo, built_in: BuiltIn) -> None:
        super().__init__(rule, signal, kept)
        self.signal = signal
        self._built_in = built_in
        self._resource = built_in.resource

    @abstractmethod
    def amounts(self, pod: PodInfo | None, snapshot: Snapshot) -> IntArray:
        """Return int64 (n_rows,), what lies on each node: Pods, millicores or whole units."""

    def column(self, pod: PodInfo | None, snapshot: Snapshot) -> SignalColumn | None:
        if pod is None and self.depends_on_pod:
            return None
        return SignalColumn(self.signal, self._shared_values(pod, snapshot), 0.0)

    def tripped(self, pod: PodInfo | None, snapshot: Snapshot) -> BoolArray | None:
        if self.rule.filter is None or (pod is None and self.depends_on_pod):
            return None
        return self._beyond(self._shared_values(pod, snapshot))

    def sample(self, pod: PodInfo, snapshot: Snapshot, row: int) -> Sample:
        if row < 0:
            return Freshness.FRESH.value, 0.0, math.nan, math.nan, ""
        return Freshness.FRESH.value, 0.0, float(self._shared_values(pod, snapshot)[row]), math.nan, ""

    def values(self, pod: PodInfo | None, snapshot: Snapshot) -> FloatArray:
        """Return float64 (n_rows,), in the signal's unit; NaN only outside its domains, and for a share of nothing."""
        nodes = snapshot.nodes
        return self._in_unit(self._summed(self.amounts(pod, snapshot), nodes), nodes)

    def may_free(self, pod: PodInfo, event: ClusterEvent) -> bool:
        limits = self.rule.filter
        if limits is None:
            return False
        if event.resource is Resource.NODE:
            return self._may_node_free(event.action)
        if event.resource is not Resource.ASSIGNED_POD:
            return False
        is_less, is_more = self._changes(pod, event)
        return (is_less and limits.max is not None) or (is_more and limits.min is not None)

    def departures(self, pod: PodInfo, snapshot: Snapshot, pods: Sequence[PodInfo]) -> Departures | None:
        before = self.amounts(pod, snapshot).copy()

        def refused_without(gone: IntArray) -> BoolArray | None:
            return None if self.rule.filter is None else self._beyond(self._values_without(before, gone, snapshot))

        return Departures(self._each(pod, snapshot, pods), self._below(pod, snapshot), refused_without)

    def _each(self, pod: PodInfo, snapshot: Snapshot, pods: Sequence[PodInfo]) -> list[int]:
        """Return what each of some Pods counts for."""
        return [0] * len(pods)

    def _below(self, pod: PodInfo, snapshot: Snapshot) -> IntArray:
        """Return int64 (n_rows,): what the Pods of lower priority count for on each row."""
        return _nothing(snapshot.nodes)

    def _counts(self, pod: PodInfo, other: object) -> bool:
        """Return whether one version of another Pod is in the value that the Pod reads."""
        return isinstance(other, PodInfo)

    def _changes(self, pod: PodInfo, event: ClusterEvent) -> tuple[bool, bool]:
        """Return whether a change of another Pod makes the value smaller, and whether larger."""
        before, after = self._counts(pod, event.old), self._counts(pod, event.new)
        return before and not after, after and not before

    def _is_of_room(self) -> bool:
        """Whether what nodes have is part of the value."""
        return self.signal.unit in _SHARES

    def _may_node_free(self, action: Action) -> bool:
        if action & Action.UPDATE_NODE_ALLOCATABLE:
            return self._is_of_room()
        return bool(action & Action.DELETE) and self.signal.by is not ByKind.NODE

    def _beyond(self, values: FloatArray) -> BoolArray:
        limits = self.rule.filter
        refused = np.zeros(values.shape, dtype=np.bool_)
        if limits is None:
            return refused
        if limits.max is not None:
            refused = values > limits.max
        return refused if limits.min is None else refused | (values < limits.min)

    def _shared_values(self, pod: PodInfo | None, snapshot: Snapshot) -> FloatArray:
        """Return `values`, read-only: filter, score and record of one decision share them."""
        key = self.signal.name, self._likeness(pod)
        return snapshot.once(key, lambda: read_only(self.values(pod, snapshot)))

    def _likeness(self, pod: PodInfo | None) -> object:
        """Return what Pods have in common that read the same values."""
        return None

    def _values_without(self, before: IntArray, gone: IntArray, snapshot: Snapshot) -> FloatArray:
        """Return the values where each row misses what has left it, int64 (n_rows,), and not what left others."""
        nodes = snapshot.nodes
        values = self._summed(before, nodes)
        # Only Pods of live nodes are in a sum.
        values -= gone if self.signal.by is ByKind.NODE else np.where(nodes.alive, gone, 0)
        return self._in_unit(values, nodes)

    def _in_unit(self, values: FloatArray, nodes: NodeView) -> FloatArray:
        if self.signal.unit in _SHARES:
            whole = self._summed(allocatable(self._resource, nodes), nodes)
            share: FloatArray = np.full(nodes.n_rows, np.nan)
            np.divide(values, whole, out=share, where=whole > 0)
            return share * _PERCENT if self.signal.unit is Unit.PERCENT else share
        return values / _MILLICORES if self._resource == CPU else values

    def _summed(self, of_rows: IntArray, nodes: NodeView) -> FloatArray:
        """Return float64 (n_rows,): each node's amount, or the sum over the live nodes of its domain or the cluster."""
        if self.signal.by is ByKind.NODE:
            return of_rows.astype(np.float64)
        if self.signal.by is ByKind.CLUSTER:
            return np.full(nodes.n_rows, float(of_rows[nodes.alive].sum()))
        codes = nodes.label_codes(self.signal.label)
        if codes is None:
            return np.full(nodes.n_rows, np.nan)
        # A node that is gone has no labels, and a row without the label reads the first entry: code -1.
        # Most counts are of few nodes, so only those are summed.
        some = np.flatnonzero(of_rows != 0)
        n_codes = len(nodes.label_values(self.signal.label)) + 1
        counted = np.bincount(codes[some] - ABSENT, weights=of_rows[some], minlength=n_codes)
        sums: FloatArray = counted.astype(np.float64, copy=False)
        sums[0] = np.nan
        by_row: FloatArray = sums.take(codes - ABSENT)
        return by_row


class AllocatableReading(BuiltInReading):
    """Reads what nodes have of a resource, whichever Pods are there."""

    def amounts(self, pod: PodInfo | None, snapshot: Snapshot) -> IntArray:
        return allocatable(self._resource, snapshot.nodes)

    def departures(self, pod: PodInfo, snapshot: Snapshot, pods: Sequence[PodInfo]) -> Departures | None:
        return None

    def _counts(self, pod: PodInfo, other: object) -> bool:
        return False

    def _is_of_room(self) -> bool:
        return True


class RequestedReading(BuiltInReading):
    """Reads what Pods request of a resource."""

    def amounts(self, pod: PodInfo | None, snapshot: Snapshot) -> IntArray:
        nodes = snapshot.nodes
        row = nodes.resources.get(self._resource)
        return _nothing(nodes) if row is None else nodes.requested[row]

    def _each(self, pod: PodInfo, snapshot: Snapshot, pods: Sequence[PodInfo]) -> list[int]:
        if self._resource not in snapshot.nodes.resources:
            return super()._each(pod, snapshot, pods)
        return [one.usage.requests.get(self._resource, 0) for one in pods]

    def _below(self, pod: PodInfo, snapshot: Snapshot) -> IntArray:
        nodes = snapshot.nodes
        resource = nodes.resources.get(self._resource)
        if resource is None:
            return _nothing(nodes)
        requested, _ = snapshot.index(UsageByPriority).left_below(pod.priority, nodes)
        amount: IntArray = nodes.requested[resource] - requested[resource]
        return amount

    def _changes(self, pod: PodInfo, event: ClusterEvent) -> tuple[bool, bool]:
        if isinstance(event.old, PodInfo) and isinstance(event.new, PodInfo):
            down, up = Action.UPDATE_POD_SCALE_DOWN, Action.UPDATE_POD_SCALE_UP
            return bool(event.action & down), bool(event.action & up)
        return super()._changes(pod, event)


class PodsReading(BuiltInReading):
    """Reads how many Pods are there."""

    def __init__(self, rule: Rule, signal: Signal, kept: Memo, built_in: BuiltIn) -> None:
        super().__init__(rule, signal, kept, built_in)
        self._resource = PODS

    def amounts(self, pod: PodInfo | None, snapshot: Snapshot) -> IntArray:
        return snapshot.nodes.n_pods

    def _each(self, pod: PodInfo, snapshot: Snapshot, pods: Sequence[PodInfo]) -> list[int]:
        return [1] * len(pods)

    def _below(self, pod: PodInfo, snapshot: Snapshot) -> IntArray:
        return snapshot.index(UsageByPriority).n_pods_below(pod.priority, snapshot.nodes.n_rows)


class CountReading(BuiltInReading):
    """Counts the Pods that have the same values of some labels as the Pod to place."""

    depends_on_pod = True

    def amounts(self, pod: PodInfo | None, snapshot: Snapshot) -> IntArray:
        built_in = self._built_in
        if pod is None:
            raise ValueError("a count depends on the Pod, and there is none")
        match = self.counted(pod)
        if match is None:
            return _nothing(snapshot.nodes)
        counts = snapshot.index(MatchingPods).on_rows(match, snapshot.nodes.n_rows)
        if not built_in.window_s:
            return counts
        labels = tuple((key, pod.labels[key]) for key in built_in.same)
        question = CountedPods(None if built_in.all_namespaces else pod.namespace, labels)
        return counts + snapshot.placed_within(built_in.window_s, question)

    def counted(self, pod: PodInfo) -> PodMatch | None:
        """Return which Pods count for a Pod, None where it lacks one of the labels: then no Pod is like it."""
        terms = []
        for key in self._built_in.same:
            value = pod.labels.get(key)
            if value is None:
                return None
            terms.append(SelectorTerm(key, "In", (value,)))
        namespaces = None if self._built_in.all_namespaces else frozenset({pod.namespace})
        return PodMatch((Clause(namespaces, Selector(tuple(terms))),))

    def freed_by_passing(self, history: PlacementHistory, after_s: float, until_s: float) -> Sequence[Match]:
        window_s, limits = self._built_in.window_s, self.rule.filter
        if not window_s or limits is None or limits.max is None:
            return ()
        return self._concerned(history.passing(after_s - window_s, until_s - window_s))

    def _concerned(self, passing: Iterable[Departed]) -> list[Match]:
        """Return for which Pods one of those counted; for all, where they would be many kinds."""
        same = self._built_in.same
        kinds = {
            (pod.namespace, tuple((key, pod.labels[key]) for key in same))
            for pod in passing
            if all(key in pod.labels for key in same)
        }
        if len(kinds) > _MOST_KINDS:
            return [EVERYONE]
        is_of_all = self._built_in.all_namespaces
        return [Match(() if is_of_all else (namespace,), dict(labels)) for namespace, labels in sorted(kinds)]

    def _each(self, pod: PodInfo, snapshot: Snapshot, pods: Sequence[PodInfo]) -> list[int]:
        match = self.counted(pod)
        return [int(match is not None and match.holds(one) and not self._stays(one, snapshot)) for one in pods]

    def _below(self, pod: PodInfo, snapshot: Snapshot) -> IntArray:
        match = self.counted(pod)
        if match is None:
            return _nothing(snapshot.nodes)
        lower = replace(match, below=pod.priority)
        counts = snapshot.index(MatchingPods).on_rows(lower, snapshot.nodes.n_rows)
        return self._without_staying(lower, counts, snapshot) if self._built_in.window_s else counts

    def _without_staying(self, match: PodMatch, counts: IntArray, snapshot: Snapshot) -> IntArray:
        """Return counts without the Pods that still count; a plain loop over the Pods of the nodes that have any."""
        left = counts.copy()
        for row in np.flatnonzero(counts).tolist():
            left[row] -= sum(match.holds(one) and self._stays(one, snapshot) for one in snapshot.pods_on(row))
        return left

    def _stays(self, pod: PodInfo, snapshot: Snapshot) -> bool:
        """Return whether a Pod on a node would still count after it left, because its window has not passed."""
        window_s = self._built_in.window_s
        row = snapshot.nodes.row_of(pod.pod.spec.node_name) if window_s else None
        return row is not None and snapshot.is_on(pod, row) and snapshot.is_recent(pod, window_s)

    def _counts(self, pod: PodInfo, other: object) -> bool:
        match = self.counted(pod)
        return isinstance(other, PodInfo) and match is not None and match.holds(other)

    def _likeness(self, pod: PodInfo | None) -> object:
        same = self._built_in.same
        return None if pod is None or not same else (pod.namespace, *(pod.labels.get(key) for key in same))


BUILT_IN: Final[dict[BuiltInKind, type[BuiltInReading]]] = {
    BuiltInKind.COUNT: CountReading,
    BuiltInKind.REQUESTED: RequestedReading,
    BuiltInKind.ALLOCATABLE: AllocatableReading,
    BuiltInKind.PODS: PodsReading,
}


def allocatable(resource: str, nodes: NodeView) -> IntArray:
    """Return int64 (n_rows,), what each node has of a resource, zeros where it is unknown."""
    row = nodes.resources.get(resource)
    return _nothing(nodes) if row is None else nodes.allocatable[row]


def _nothing(nodes: NodeView) -> IntArray:
    return np.zeros(nodes.n_rows, dtype=np.int64)
