"""Cards: a Pod that asks for n of them reads each node's n-th best one, the worst where fewer are measured.

A filter refuses the node where fewer cards than that are within its limits. Which end is the best one the rule says:
low for a score that falls and for a filter with `max`.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from scheduler.model.arrays import BoolArray, FloatArray, IntArray
from scheduler.model.keyed import KeyedColumn
from scheduler.model.memo import Memo
from scheduler.model.pods import PodInfo
from scheduler.model.rules import Rule, Signal
from scheduler.model.snapshot import Snapshot
from scheduler.rules.keyed import KeyedReading


class CardReading(KeyedReading):
    """Reads `by: gpu` for Pods that ask for cards."""

    is_choosy = True

    def __init__(self, rule: Rule, signal: Signal | None, kept: Memo) -> None:
        super().__init__(rule, signal, kept)
        self._is_low_best = _is_low_best(rule)
        self._resources = Memo(1_024)

    def concerns(self, pod: PodInfo) -> bool:
        return self.n_cards(pod) > 0

    def n_cards(self, pod: PodInfo) -> int:
        """Return how many cards a Pod asks for, by the names of resources, in which `*` stands for anything."""
        asked = pod.requested_resources
        names = self._resources.known(asked, self)
        if names is None:
            # Pods differ in few ways in which resources they ask for.
            names = self._resources.get(asked, (self,), lambda: _among(self.rule.gpu_resources, asked))
        requests, n = pod.requests, 0
        for name in names:
            n += requests[name]
        return n

    def _values(self, pod: PodInfo, samples: KeyedColumn, snapshot: Snapshot) -> tuple[FloatArray, str]:
        n = self.n_cards(pod)
        if not n:
            return self._nothing(samples), "0"
        known: FloatArray | None = self._kept.known((self._values_of, n), samples)
        if known is None:
            cards = self._cards(samples)
            known = self._kept.get(
                (self._values_of, n), (samples,), lambda: samples.of_card(n, cards, is_low_best=self._is_low_best)
            )
        return known, str(n)

    def _tripped(self, pod: PodInfo, samples: KeyedColumn, snapshot: Snapshot) -> BoolArray | None:
        n = self.n_cards(pod)
        if not n:
            return None
        known: BoolArray | None = self._kept.known((self._trips_of, n), samples)
        if known is None:
            cards = self._cards(samples)
            known = self._kept.get(
                (self._trips_of, n), (samples,), lambda: samples.lacking_cards(n, cards, self.rule.name)
            )
        return known

    def _keys(self, samples: KeyedColumn, names: Sequence[str], at: IntArray) -> list[str]:
        return []

    def _cards(self, samples: KeyedColumn) -> IntArray:
        return self._memo.get("cards", (samples,), samples.cards)


def _is_low_best(rule: Rule) -> bool:
    if rule.score is not None:
        ys = rule.score.curve.ys
        return ys[0] >= ys[-1]
    return rule.filter is None or rule.filter.max is not None


def _among(patterns: tuple[str, ...], resources: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in resources if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns))
