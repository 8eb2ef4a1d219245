"""Pending load: what placed Pods will add to a signal that its samples do not show yet.

Pending(node, t) = sum over all Pods on the node, of any scheduler, of effect * share, with
share = 1 - clamp((t - running) / window, 0, 1), and 1 for a Pod that does not run yet, for at most five minutes after
its bind; t is the moment for which the samples speak. It follows from the Pods and t alone and is never remembered, so
that a new leader and a replay agree. Amounts and shares are whole numbers, so that sums depend on no order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from scheduler.framework.index import Index
from scheduler.model.arrays import BoolArray, FloatArray, IntArray, read_only
from scheduler.model.pods import PodInfo
from scheduler.model.requests import CPU, MEMORY
from scheduler.model.rules import Effect, EffectKind

SHARES = 1024
"""An effect is counted in so many parts: a Pod's share is rounded to one of them."""

NOT_RUNNING_S = 300.0
"""How long after its bind a Pod that does not run yet counts in full."""

_SCORED = (CPU, MEMORY)
_MOST = 2**45
"""A Pod adds no more than this, 35 TB: times SHARES it must fit a sum."""

_CAPACITY = 64
"""Signals for which sums are kept, least recently asked forgotten: 8 bytes for each node."""

Workload = tuple[str, str]
"""`PodInfo.workload`."""


@dataclass(frozen=True, slots=True, eq=False)
class PendingQuestion:
    """What is asked: the effect of Pods that the samples of `as_of_s`, UNIX time, show in part or not at all.

    `learned` has amounts of workloads, for an effect that is learned, in the units of `Effect.amount`, whole. Each
    publication of the signal makes a new question, which takes the place of the one before; two are the same only if
    they are one object.
    """

    signal: str
    effect: Effect
    window_s: float
    as_of_s: float
    learned: Mapping[Workload, int]

    def share(self, running_s: float, bound_s: float) -> int:
        """Return the parts of a Pod's effect, 0..SHARES, that the samples do not show."""
        if running_s == math.inf:
            return SHARES if self.as_of_s < bound_s + NOT_RUNNING_S else 0
        unseen_s = running_s + self.window_s - self.as_of_s
        if unseen_s <= 0:
            return 0
        return SHARES if unseen_s >= self.window_s else round(SHARES * (unseen_s / self.window_s))

    def shares(self, running_s: FloatArray, bound_s: FloatArray) -> IntArray:
        """Return int64 (n,): `share` of many Pods."""
        unseen_s = running_s + self.window_s - self.as_of_s
        # A window of 0 leaves nothing between seen and unseen.
        parts = np.clip(unseen_s / self.window_s, 0.0, 1.0) if self.window_s else (unseen_s > 0).astype(np.float64)
        is_overdue = np.isinf(running_s) & (self.as_of_s >= bound_s + NOT_RUNNING_S)
        shares: IntArray = np.rint(SHARES * np.where(is_overdue, 0.0, parts)).astype(np.int64)
        return shares

    def amount(self, pod: PodInfo) -> int:
        """Return what one Pod adds in the end.

        One that requests nothing adds something, too: many such Pods must not all go to the node that looks best.
        """
        if self.effect.kind is EffectKind.CONSTANT:
            return int(self.effect.amount)
        if self.effect.kind is EffectKind.LEARNED:
            known = self.learned.get(pod.workload)
            if known is not None:
                return known
        resource, requested = self.effect.resource, pod.usage.requests.get(self.effect.resource, 0)
        if not requested and self.effect.without_request:
            return int(self.effect.without_request)
        return min(pod.usage.scored[_SCORED.index(resource)] if resource in _SCORED else requested, _MOST)


class PodTimes:
    """When Pods were bound and first ran, as columns over slots; a free slot belongs to a Pod seen long ago."""

    def __init__(self) -> None:
        self.running_s: FloatArray = np.full(64, -np.inf)
        self.bound_s: FloatArray = np.full(64, -np.inf)
        self.pods: list[tuple[PodInfo, int] | None] = []
        self._slots: dict[str, int] = {}
        self._free: list[int] = []

    def put(self, pod: PodInfo, row: int) -> None:
        slot = self._slots.get(pod.uid)
        if slot is None:
            slot = self._free.pop() if self._free else self._new_slot()
            self._slots[pod.uid] = slot
        self.pods[slot] = (pod, row)
        self.running_s[slot], self.bound_s[slot] = pod.running_s, pod.bound_s

    def entries(self) -> dict[str, tuple[PodInfo, int, float, float]]:
        """Return (Pod, row, running, bound) by UID, wherever they stand."""
        found = ((uid, slot, self.pods[slot]) for uid, slot in self._slots.items())
        return {
            uid: (*entry, float(self.running_s[slot]), float(self.bound_s[slot]))
            for uid, slot, entry in found
            if entry is not None
        }

    def take(self, uid: str) -> PodInfo:
        slot = self._slots.pop(uid)
        found = self.pods[slot]
        if found is None:
            raise LookupError(f"the slot of Pod {uid} is free")
        self.pods[slot] = None
        self.running_s[slot] = self.bound_s[slot] = -np.inf
        self._free.append(slot)
        return found[0]

    def known(self, uid: str) -> PodInfo | None:
        slot = self._slots.get(uid)
        found = None if slot is None else self.pods[slot]
        return None if found is None else found[0]

    def unseen(self, question: PendingQuestion) -> list[tuple[PodInfo, int, int]]:
        """Return (Pod, row, share) of each Pod that the samples do not show whole."""
        slots = np.flatnonzero(self._is_late(question))
        shares = question.shares(self.running_s[slots], self.bound_s[slots])
        found = ((self.pods[slot], share) for slot, share in zip(slots.tolist(), shares.tolist(), strict=True))
        return [(*entry, share) for entry, share in found if entry is not None and share]

    def _is_late(self, question: PendingQuestion) -> BoolArray:
        late: BoolArray = self.running_s[: len(self.pods)] > question.as_of_s - question.window_s
        return late

    def _new_slot(self) -> int:
        slot = len(self.pods)
        if slot == len(self.running_s):
            self.running_s = np.concatenate([self.running_s, np.full(slot, -np.inf)])
            self.bound_s = np.concatenate([self.bound_s, np.full(slot, -np.inf)])
        self.pods.append(None)
        return slot


class PendingPods(Index):
    """Sums of the pending load by row, for the last question about each signal; Pods of all schedulers count.

    A new question looks at the Pods that ran, or were bound, late enough to matter; a Pod that comes or goes costs one
    addition per signal that it matters to.
    """

    def __init__(self) -> None:
        self._times = PodTimes()
        self._sums: dict[str, tuple[PendingQuestion, IntArray]] = {}
        self._width = 64

    def add_pod(self, pod: PodInfo, row: int) -> None:
        self._times.put(pod, row)
        self._add(pod, row, 1)

    def remove_pod(self, pod: PodInfo, row: int) -> None:
        # What was counted is the version that came last.
        self._add(self._times.take(pod.uid), row, -1)

    def renew_pod(self, pod: PodInfo, row: int) -> bool:
        before = self._times.known(pod.uid)
        self._times.put(pod, row)
        if before is None or (before.running_s, before.bound_s) == (pod.running_s, pod.bound_s):
            return False
        self._add(before, row, -1)
        self._add(pod, row, 1)
        return any(
            question.share(before.running_s, before.bound_s) != question.share(pod.running_s, pod.bound_s)
            for question, _ in self._sums.values()
        )

    def on_rows(self, question: PendingQuestion, n_rows: int) -> IntArray:
        """Return int64 (n_rows,): amounts times SHARES. Not to be kept: it changes as Pods come and go."""
        self._widen(n_rows)
        known, sums = self._sums.pop(question.signal, (None, None))
        if known is not question or sums is None:
            sums = self.counted(question, self._width)
        self._sums[question.signal] = question, sums
        if len(self._sums) > _CAPACITY:
            del self._sums[next(iter(self._sums))]
        return read_only(sums[:n_rows])

    def counted(self, question: PendingQuestion, n_rows: int, below: int | None = None) -> IntArray:
        """Return int64 (n_rows,): as `on_rows`, counted now and not kept; `below`: only Pods of lower priority."""
        sums = np.zeros(n_rows, dtype=np.int64)
        for pod, row, share in self._times.unseen(question):
            if below is None or pod.priority < below:
                sums[row : row + 1] += share * question.amount(pod)
        return sums

    def _add(self, pod: PodInfo, row: int, sign: int) -> None:
        self._widen(row + 1)
        for question, sums in self._sums.values():
            share = question.share(pod.running_s, pod.bound_s)
            if share:
                # A slice, for it wraps without a word where one owner's Pods add up to more than a sum can hold.
                sums[row : row + 1] += sign * share * question.amount(pod)

    def _widen(self, n_rows: int) -> None:
        if n_rows <= self._width:
            return
        self._width = max(2 * self._width, n_rows)
        for signal, (question, sums) in self._sums.items():
            wider = np.zeros(self._width, dtype=np.int64)
            wider[: len(sums)] = sums
            self._sums[signal] = question, wider
