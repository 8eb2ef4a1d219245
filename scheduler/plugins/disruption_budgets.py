"""Pods by priority, and the budgets that protect them: what DefaultPreemption reads of the cluster."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from scheduler.errors import InvalidObjectError
from scheduler.framework.index import Index
from scheduler.model.arrays import IntArray
from scheduler.model.catalog import Catalog
from scheduler.model.label_selectors import Selector, selector_of
from scheduler.model.pods import PodInfo
from scheduler.model.views import NodeView
from scheduler.model.workloads import PodDisruptionBudget


@dataclass(slots=True)
class _Usage:
    """What the Pods of one priority occupy: columns (n,) over the rows, with room for more rows than there are.

    `n_asking` are the Pods behind each column of `requested`: without any, the column goes.
    """

    n_pods: IntArray
    total: int = 0
    requested: dict[str, IntArray] = field(default_factory=dict)
    n_asking: dict[str, int] = field(default_factory=dict)


class UsageByPriority(Index):
    """What the placed Pods of each priority occupy, by row."""

    def __init__(self) -> None:
        self._width = 1
        self._by_priority: dict[int, _Usage] = {}

    def add_pod(self, pod: PodInfo, row: int) -> None:
        if row >= self._width:
            self._widen(row)
        usage = self._by_priority.get(pod.priority)
        if usage is None:
            usage = self._by_priority[pod.priority] = _Usage(self._zeros())
        usage.total += 1
        self._count(usage, pod, row, 1)

    def remove_pod(self, pod: PodInfo, row: int) -> None:
        usage = self._by_priority[pod.priority]
        usage.total -= 1
        if usage.total == 0:
            del self._by_priority[pod.priority]
        else:
            self._count(usage, pod, row, -1)

    def n_pods_below(self, priority: int, n_rows: int) -> IntArray:
        """Return int64 (n_rows,): the Pods on each row whose priority is lower."""
        counts: IntArray = np.zeros(n_rows, dtype=np.int64)
        for usage in self._below(priority):
            _add(counts, usage.n_pods, 1)
        return counts

    def left_below(self, priority: int, nodes: NodeView) -> tuple[IntArray, IntArray]:
        """Return what is requested, (n_resources, n_rows), and Pods, (n_rows,), without those of lower priority."""
        requested, n_pods = nodes.requested.copy(), nodes.n_pods.copy()
        for usage in self._below(priority):
            _add(n_pods, usage.n_pods, -1)
            for name, column in usage.requested.items():
                _add(requested[nodes.resources[name]], column, -1)
        return requested, n_pods

    def _below(self, priority: int) -> list[_Usage]:
        return [usage for one, usage in self._by_priority.items() if one < priority]

    def _count(self, usage: _Usage, pod: PodInfo, row: int, sign: int) -> None:
        usage.n_pods[row] += sign
        for name, amount in pod.usage[0].items():
            column = usage.requested.get(name)
            if column is None:
                column = usage.requested[name] = self._zeros()
            column[row] += sign * amount
            usage.n_asking[name] = usage.n_asking.get(name, 0) + sign
            if not usage.n_asking[name]:
                del usage.requested[name], usage.n_asking[name]

    def _zeros(self) -> IntArray:
        return np.zeros(self._width, dtype=np.int64)

    def _widen(self, row: int) -> None:
        more = (1 << row.bit_length()) - self._width
        self._width += more
        for usage in self._by_priority.values():
            usage.n_pods = np.pad(usage.n_pods, (0, more))
            usage.requested = {name: np.pad(column, (0, more)) for name, column in usage.requested.items()}


class Budgets:
    """The PodDisruptionBudgets of one cycle.

    Source: kube-scheduler v1.37 framework/preemption/util.go (behaviour).
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._by_namespace: dict[str, _Guards] = {}
        self._by_labels: dict[tuple[str, tuple[tuple[str, str], ...]], list[_Guard]] = {}
        self._numbers = itertools.count()

    def violated_by(self, pods: Sequence[PodInfo]) -> list[bool]:
        """Return for each Pod, taken to leave in this order, whether that breaks a budget.

        A Pod is charged to its budgets up to the first that it breaks. One without labels, and one that a budget names
        as disrupted already, costs nothing.
        """
        left: dict[int, int] = {}
        return [self._is_violation(pod, left) for pod in pods]

    def _is_violation(self, pod: PodInfo, left: dict[int, int]) -> bool:
        for guard in self._of(pod):
            if guard.disrupted and pod.name in guard.disrupted:
                continue
            number = guard.number
            n_left = left[number] = left.get(number, guard.n_allowed) - 1
            if n_left < 0:
                return True
        return False

    def _of(self, pod: PodInfo) -> Sequence[_Guard]:
        metadata = pod.pod.metadata
        labels = metadata.labels
        if not labels:
            return ()
        # Labels in another order only take an entry of their own: a set of them would cost more than that saves.
        key = (metadata.namespace, tuple(labels.items()))
        found = self._by_labels.get(key)
        if found is None:
            guards = self._within(metadata.namespace)
            known = [guard for label in labels.items() for guard in guards.by_label.get(label, ())]
            order = sorted([*known, *guards.others], key=lambda guard: guard.number)
            found = self._by_labels[key] = [guard for guard in order if guard.selector.matches(labels)]
        return found

    def _within(self, namespace: str) -> _Guards:
        guards = self._by_namespace.get(namespace)
        if guards is None:
            guards = self._by_namespace[namespace] = _Guards()
            for budget in self._catalog.within(PodDisruptionBudget, namespace):
                try:
                    selector = selector_of(budget.spec.selector)
                except InvalidObjectError:
                    continue  # as upstream: a budget whose selector cannot be read protects nobody
                n_allowed, disrupted = budget.status.disruptions_allowed, budget.status.disrupted_pods or ()
                guards.add(_Guard(next(self._numbers), selector, n_allowed, disrupted))
        return guards


@dataclass(frozen=True, slots=True)
class _Guard:
    """A budget: `number` rises in the order of the list, `disrupted` are names of Pods that it counts as gone."""

    number: int
    selector: Selector
    n_allowed: int
    disrupted: Collection[str]


@dataclass(slots=True)
class _Guards:
    """The budgets of a namespace, by a label that Pods must have, as far as they name one."""

    by_label: dict[tuple[str, str], list[_Guard]] = field(default_factory=dict)
    others: list[_Guard] = field(default_factory=list)

    def add(self, guard: _Guard) -> None:
        """Take a budget in, unless it selects everything: as upstream, such a one protects nobody."""
        if guard.selector.is_everything:
            return
        for term in guard.selector.terms:
            if term.operator == "In" and len(term.values) == 1:
                self.by_label.setdefault((term.key, term.values[0]), []).append(guard)
                return
        self.others.append(guard)


def _add(total: IntArray, column: IntArray, sign: int) -> None:
    """Add a column to (n_rows,) in place; one of the two may be shorter."""
    width = min(len(column), len(total))
    total[:width] += sign * column[:width]
