"""The PodDisruptionBudgets that protect Pods: what DefaultPreemption reads of the cluster beside priorities."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from scheduler.errors import InvalidObjectError
from scheduler.model.catalog import Catalog
from scheduler.model.pods import PodInfo
from scheduler.model.selectors import Selector, selector_of
from scheduler.model.workloads import PodDisruptionBudget


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
