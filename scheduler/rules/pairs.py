"""Pairs of domains: a Pod reads the value between a node's domain and the domains that it calls.

Where the rule says which Pods it calls, that is the mean over them, each counted where it is now; those that are being
deleted do not count. Pairs without a sample are left out, also those of a domain with itself. With several pairs the
filter's limit lies between `max` and `clear`: the more of the called Pods are behind tripped pairs, the closer it is to
`clear`. With one pair that is plain hysteresis. A Pod whose called Pods are not placed yet is not refused for lack of a
sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from scheduler.framework.events import ClusterEvent, Resource
from scheduler.framework.matching_pods import MatchingPods
from scheduler.framework.pod_match import Clause, PodMatch
from scheduler.model.arrays import BoolArray, FloatArray, IntArray, read_only
from scheduler.model.keyed import KeyedColumn
from scheduler.model.memo import Memo
from scheduler.model.pods import PodInfo
from scheduler.model.rules import Calls, Rule, RuleFilter, Signal
from scheduler.model.selectors import selector_of_set
from scheduler.model.snapshot import Snapshot
from scheduler.model.views import NodeView
from scheduler.rules.keyed import KeyedReading, group_names
from scheduler.rules.shown import label_of
from scheduler.rules.workloads import GroupReading


def pair_reading(rule: Rule, signal: Signal | None, kept: Memo) -> KeyedReading:
    """Return the reading of a rule over `by: pair`: of one domain that a label names, or of all that are called."""
    if rule.calls is not None and not rule.calls.pod_label:
        return CalledPodsReading(rule, signal, kept, rule.calls)
    return CalledDomainReading(rule, signal, kept)


class _PairReading(KeyedReading):
    """What readings of pairs show: the domain from which a pair leads, and both domains."""

    def __init__(self, rule: Rule, signal: Signal | None, kept: Memo) -> None:
        super().__init__(rule, signal, kept)
        self._domain_label = "" if signal is None else signal.label

    def _names(self, nodes: NodeView, rows: Sequence[int]) -> list[str]:
        return [label_of(nodes, row, self._domain_label) for row in rows]

    def _keys(self, samples: KeyedColumn, names: Sequence[str], at: IntArray) -> list[str]:
        return [f"{source} -> {target}" for source, target in zip(names, group_names(samples, at), strict=True)]


class CalledDomainReading(_PairReading, GroupReading):
    """Reads the pairs to the domain that a label of the Pod names."""

    def _is_due_a_sample(self, pod: PodInfo | None, snapshot: Snapshot) -> bool:
        return pod is None or bool(self.group_name(pod))


class CalledPodsReading(_PairReading):
    """Reads the mean of the pairs to the domains where the called Pods are."""

    def __init__(self, rule: Rule, signal: Signal | None, kept: Memo, calls: Calls) -> None:
        super().__init__(rule, signal, kept)
        self._calls = calls
        self._matches = Memo(1_024)

    def is_moved_by(self, pod: PodInfo, other: PodInfo) -> bool:
        """Whether the Pod calls the other: without that one the mean may lie elsewhere, on all nodes."""
        return self.called(pod).holds(other)

    def may_free(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Return whether a Pod that is called has come, gone or changed.

        One that is being deleted is not called any more; nothing else tells of that than its end.
        """
        if event.resource not in (Resource.ASSIGNED_POD, Resource.NODE):
            return False
        match = replace(self.called(pod), is_alive=False)
        old, new = (isinstance(one, PodInfo) and match.holds(one) for one in (event.old, event.new))
        return old != new

    def called(self, pod: PodInfo) -> PodMatch:
        """Return which Pods a Pod calls."""
        namespace = None if self._calls.all_namespaces else pod.namespace
        return self._matches.get(namespace, (), lambda: self._match(namespace))

    def _match(self, namespace: str | None) -> PodMatch:
        namespaces = None if namespace is None else frozenset({namespace})
        return PodMatch((Clause(namespaces, selector_of_set(dict(self._calls.labels))),), is_alive=True)

    def _values(self, pod: PodInfo, samples: KeyedColumn, snapshot: Snapshot) -> tuple[FloatArray, str]:
        mean = self._mean(self.called(pod), samples, snapshot)
        return self._nothing(samples) if mean is None else mean, "" if self._calls.all_namespaces else pod.namespace

    def _tripped(self, pod: PodInfo, samples: KeyedColumn, snapshot: Snapshot) -> BoolArray | None:
        limits, match = self.rule.filter, self.called(pod)
        mean = self._mean(match, samples, snapshot)
        if limits is None or mean is None:
            return None

        def computed() -> BoolArray | None:
            counts = _by_group(match, samples, snapshot)
            return None if counts is None else beyond(limits, mean, samples.tripped_share(counts, self.rule.name))

        return self._kept.get((self._trips_of, match), (samples, mean), computed)

    def _mean(self, match: PodMatch, samples: KeyedColumn, snapshot: Snapshot) -> FloatArray | None:
        def computed() -> FloatArray | None:
            counts = _by_group(match, samples, snapshot)
            return None if counts is None else samples.mean_of(counts)

        return self._kept.get(
            (self._values_of, match), (samples, snapshot.index(MatchingPods).version_of(match)), computed
        )

    def _is_due_a_sample(self, pod: PodInfo | None, snapshot: Snapshot) -> bool:
        if pod is None:
            return True
        return bool(snapshot.index(MatchingPods).on_rows(self.called(pod), snapshot.nodes.n_rows).any())


def beyond(limits: RuleFilter, mean: FloatArray, tripped: FloatArray) -> BoolArray:
    """Return bool, True where a mean over several pairs is refused.

    `tripped` is the part of them that is, 0..1, NaN for no pair: refused with all, not refused with none, else beyond
    a limit that moves from the limit itself to `clear` with that part.
    """
    refused = tripped >= 1.0
    is_mixed = (tripped > 0.0) & (tripped < 1.0)
    for limit, clear, sign in ((limits.max, limits.max_clear, 1.0), (limits.min, limits.min_clear, -1.0)):
        if limit is not None:
            moved = limit + ((limit if clear is None else clear) - limit) * tripped
            refused |= is_mixed & (sign * mean > sign * moved)
    return read_only(refused)


def _by_group(match: PodMatch, samples: KeyedColumn, snapshot: Snapshot) -> FloatArray | None:
    """Return float64 (n_groups,), the called Pods in each domain that is a group; None where there is no such Pod."""
    on_rows = snapshot.index(MatchingPods).on_rows(match, snapshot.nodes.n_rows)
    if samples.targets is None or not on_rows.any():
        return None
    has_group = samples.targets >= 0
    counts: FloatArray = np.bincount(
        samples.targets[has_group], weights=on_rows[has_group], minlength=len(samples.groups)
    ).astype(np.float64)
    return counts
