"""DisruptionBudgets: which evictions break a PodDisruptionBudget."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from scheduler.errors import InvalidObjectError
from scheduler.model.catalog import Catalog
from scheduler.model.pods import PodInfo
from scheduler.model.selectors import Selector, selector_of
from scheduler.model.workloads import PodDisruptionBudget


class DisruptionBudgets:
    """The PodDisruptionBudgets of one cycle.

    Source: kube-scheduler v1.37 framework/preemption/util.go (behaviour).
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._by_namespace: dict[str, _NamespaceBudgets] = {}
        self._by_labels: dict[tuple[str, tuple[tuple[str, str], ...]], list[_Budget]] = {}
        self._numbers = itertools.count()

    def violated_by(self, pods: Sequence[PodInfo]) -> list[bool]:
        """Return for each Pod, evicted in this order, whether its eviction breaks a budget.

        A Pod is charged to its budgets up to the first that it breaks. One without labels costs nothing, and one that a
        budget names as disrupted already costs that budget nothing.
        """
        left: dict[int, int] = {}
        return [self._is_violation(pod, left) for pod in pods]

    def _is_violation(self, pod: PodInfo, left: dict[int, int]) -> bool:
        for budget in self._of(pod):
            if budget.disrupted and pod.name in budget.disrupted:
                continue
            number = budget.number
            n_left = left[number] = left.get(number, budget.n_allowed) - 1
            if n_left < 0:
                return True
        return False

    def _of(self, pod: PodInfo) -> Sequence[_Budget]:
        metadata = pod.pod.metadata
        labels = metadata.labels
        if not labels:
            return ()
        # Labels in another order get an entry of their own: comparing sets of labels would cost more than it saves.
        key = (metadata.namespace, tuple(labels.items()))
        found = self._by_labels.get(key)
        if found is None:
            budgets = self._within(metadata.namespace)
            known = [budget for label in labels.items() for budget in budgets.by_label.get(label, ())]
            order = sorted([*known, *budgets.others], key=lambda budget: budget.number)
            found = self._by_labels[key] = [budget for budget in order if budget.selector.matches(labels)]
        return found

    def _within(self, namespace: str) -> _NamespaceBudgets:
        budgets = self._by_namespace.get(namespace)
        if budgets is None:
            budgets = self._by_namespace[namespace] = _NamespaceBudgets()
            for budget in self._catalog.within(PodDisruptionBudget, namespace):
                try:
                    selector = selector_of(budget.spec.selector)
                except InvalidObjectError:
                    continue  # as upstream: a budget whose selector cannot be read protects nothing
                n_allowed, disrupted = budget.status.disruptions_allowed, budget.status.disrupted_pods or ()
                budgets.add(_Budget(next(self._numbers), selector, n_allowed, disrupted))
        return budgets


@dataclass(frozen=True, slots=True)
class _Budget:
    """A budget: `number` rises in the order of the list, `disrupted` are names of Pods that it counts as gone."""

    number: int
    selector: Selector
    n_allowed: int
    disrupted: Collection[str]


@dataclass(slots=True)
class _NamespaceBudgets:
    """The budgets of a namespace, by a label that Pods must have, as far as they name one."""

    by_label: dict[tuple[str, str], list[_Budget]] = field(default_factory=dict)
    others: list[_Budget] = field(default_factory=list)

    def add(self, budget: _Budget) -> None:
        """Add a budget, unless it selects everything: as upstream, such a budget protects nothing."""
        if budget.selector.is_everything:
            return
        for term in budget.selector.terms:
            if term.operator == "In" and len(term.values) == 1:
                self.by_label.setdefault((term.key, term.values[0]), []).append(budget)
                return
        self.others.append(budget)
