"""PodMatch: which placed Pods are meant, as a key; and how much work one decision may take to find them."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.errors import UnsupportedPodError
from scheduler.model.pods import PodInfo
from scheduler.model.selectors import Selector

MOST_WORK = 30_000_000
"""Comparisons of a requirement with a group of Pods, for all terms of one Pod: some 100 ms.

A Pod with 200 terms that mean nearly everybody stays below it beside 60,000 Pods, no two of them with equal labels.
"""


@dataclass(frozen=True, slots=True)
class Clause:
    """Pods of some namespaces (None: of all) whose labels match."""

    namespaces: frozenset[str] | None
    selector: Selector

    def holds(self, pod: PodInfo) -> bool:
        return (self.namespaces is None or pod.namespace in self.namespaces) and self.selector.matches(pod.labels)


@dataclass(frozen=True, slots=True)
class PodMatch:
    """Pods for which all clauses hold.

    `is_alive` leaves out those that are being deleted, `below` those whose priority is not lower.
    """

    clauses: tuple[Clause, ...]
    is_alive: bool = False
    below: int | None = None

    def holds(self, pod: PodInfo) -> bool:
        if self.is_alive and pod.pod.metadata.deletion_timestamp is not None:
            return False
        if self.below is not None and pod.priority >= self.below:
            return False
        return all(clause.holds(pod) for clause in self.clauses)

    @property
    def namespaces(self) -> frozenset[str] | None:
        """The namespaces that no clause rules out, None for all."""
        named = [clause.namespaces for clause in self.clauses if clause.namespaces is not None]
        return frozenset.intersection(*named) if named else None


class Work:
    """What a field of one Pod may still cost; UnsupportedPodError once it has cost more than `most` comparisons."""

    def __init__(self, path: str, most: int = MOST_WORK) -> None:
        self._path = path
        self._most = self._left = most

    def spend(self, n: int) -> None:
        self._left -= n
        if self._left < 0:
            found = f"its selectors take more than {self._most:,} comparisons with the labels of placed Pods"
            raise UnsupportedPodError((f"{self._path}: {found}, the most that Vane makes for one Pod",))
