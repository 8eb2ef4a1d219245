"""Snapshot: the world as one scheduling cycle sees it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from scheduler.errors import StaleSnapshotError
from scheduler.model.arrays import IntArray, Rows, read_only
from scheduler.model.catalog import Catalog
from scheduler.model.history import CountedPods
from scheduler.model.memo import Memo
from scheduler.model.pods import PodInfo
from scheduler.model.signals import SignalTable
from scheduler.model.state import ClusterState
from scheduler.model.views import NodeView

I = TypeVar("I")  # noqa: E741
T = TypeVar("T")
S = TypeVar("S", bound=np.generic)


class Trial:
    """A what-if on a snapshot: `place` and `remove` change what it shows until the block ends."""

    def __init__(self, state: ClusterState, renew: Callable[[], None]) -> None:
        self._state = state
        self._renew = renew
        self._moved: dict[tuple[int, int], tuple[PodInfo, int]] = {}
        self._pods_before: dict[int, dict[str, PodInfo]] = {}

    def place(self, pod: PodInfo, row: int) -> None:
        self._note_order(row)
        self._state.place(pod, row)
        self._note_move(pod, row, 1)
        self._renew()

    def remove(self, pod: PodInfo, row: int) -> None:
        self._note_order(row)
        self._state.displace(pod, row)
        self._note_move(pod, row, -1)
        self._renew()

    def undo(self) -> None:
        while self._moved:
            (_, row), (pod, net) = self._moved.popitem()
            step = self._state.displace if net > 0 else self._state.place
            for _ in range(abs(net)):
                step(pod, row)
        for row, pods in self._pods_before.items():
            if pods:
                self._state.pods[row] = pods
        self._pods_before.clear()
        self._renew()

    def moves(self) -> Iterator[tuple[PodInfo, int, int]]:
        """Yield Pods that are not where they were: each with a row, and how often it has come there less left it."""
        return ((pod, row, net) for (_, row), (pod, net) in self._moved.items())

    def _note_move(self, pod: PodInfo, row: int, sign: int) -> None:
        """Remember what has to be undone, the latest last; a Pod that has left and come back is where it was."""
        key = (id(pod), row)
        _, before = self._moved.pop(key, (pod, 0))
        if before + sign:
            self._moved[key] = (pod, before + sign)

    def _note_order(self, row: int) -> None:
        """Remember the order of a row's Pods: a removed one comes back as the last."""
        if row not in self._pods_before:
            self._pods_before[row] = dict(self._state.pods.get(row, ()))


class Snapshot:
    """Read-only views on nodes, Pods and signals, valid until the next message is applied.

    `now_s` is the core's only clock: monotonic seconds at which the cycle began. `waited_s` is how long the Pod that
    the snapshot was taken for has been waiting to be placed, 0 where it was taken for none.
    """

    def __init__(
        self,
        state: ClusterState,
        signals: SignalTable,
        now_s: float,
        nodes: NodeView | None = None,
        waited_s: float = 0.0,
    ) -> None:
        self._state = state
        self._epoch = state.epoch
        self._nodes = nodes
        self._known: dict[Hashable, Any] = {}
        self._trials: list[Trial] = []
        self.signals = signals
        self.now_s = now_s
        self.waited_s = waited_s

    @property
    def nodes(self) -> NodeView:
        """The node columns; raises StaleSnapshotError once the world has moved on."""
        if self._state.epoch != self._epoch:
            raise self._stale()
        if self._nodes is None:
            self._nodes = NodeView(self._state.nodes)
        return self._nodes

    @property
    def generation(self) -> int:
        return self._state.nodes.generation

    @property
    def memo(self) -> Memo:
        """What earlier cycles derived from columns that are still the same."""
        return self._state.memo

    def by_row(self, key: Hashable, compute: Callable[[Rows], NDArray[S]]) -> NDArray[S]:
        """Return (n_rows,), computed now only for the rows that have changed since it was asked for last.

        `compute` may read, for a row, only that row's node columns, the Pods on it and what the key says: nothing of
        Pods elsewhere, of signals or of the clock that the key does not hold.
        """
        return self._state.row_memo.column(key, self._state.nodes, compute)

    def once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return what `compute` gives, called once for a key as long as nothing changes, on trial or for good.

        The key has to say all that it depends on besides the snapshot.
        """
        if self._state.epoch != self._epoch:
            raise self._stale()
        if key not in self._known:
            self._known[key] = compute()
        found: T = self._known[key]
        return found

    @property
    def catalog(self) -> Catalog:
        """The objects that are neither Pods nor Nodes, to be looked up; a plugin declares which `kinds` it needs."""
        return self._state.catalog

    @property
    def unix_s(self) -> float:
        """The moment of the snapshot as UNIX time: what `now_s` is to the times that Pods carry."""
        return self.now_s + self._state.unix_ahead_s

    def placed_within(self, window_s: float, whom: CountedPods) -> IntArray:
        """Return int64 (n_rows,): the Pods that have gone and were placed on each row within so many seconds.

        Those that have left on trial are among them, for that is what they would be.
        """
        counts = self._state.history.counts(whom, self.unix_s - window_s, self._state.nodes)
        for pod, row in self._away():
            counts[row] += whom.holds(pod) and self.is_recent(pod, window_s)
        return counts

    def _away(self) -> list[tuple[PodInfo, int]]:
        """Return the Pods that have left a row on trial."""
        moved: dict[tuple[int, int], tuple[PodInfo, int]] = {}
        for pod, row, net in (move for trial in self._trials for move in trial.moves()):
            _, before = moved.get((id(pod), row), (pod, 0))
            moved[id(pod), row] = pod, before + net
        return [(pod, row) for (_, row), (pod, net) in moved.items() if net < 0]

    def is_recent(self, pod: PodInfo, window_s: float) -> bool:
        """Return whether a Pod with a node was placed there within so many seconds."""
        placed_s = min(pod.bound_s, pod.started_s, self.unix_s)
        return bool(pod.pod.spec.node_name) and placed_s > self.unix_s - window_s

    def is_on(self, pod: PodInfo, row: int) -> bool:
        """Return whether the Pod is among those of a row."""
        return pod.uid in self._state.pods.get(row, ())

    @property
    def nominated(self) -> dict[str, dict[str, PodInfo]]:
        """Node name -> UID -> pending Pod with that nomination."""
        return self._state.nominated

    def pods_on(self, row: int) -> Iterable[PodInfo]:
        return self._state.pods_on(row)

    def index(self, kind: type[I]) -> I:
        """Return the one index of this class; LookupError if no enabled plugin declared it."""
        for index in self._state.indexes:
            if isinstance(index, kind):
                return index
        raise LookupError(f"no enabled plugin declares the index {kind.__name__}")

    @contextmanager
    def trial(self) -> Iterator[Trial]:
        """Place and remove Pods for a while; leaving the block undoes everything, exactly."""
        trial = Trial(self._state, self._renew)
        self._trials.append(trial)
        try:
            yield trial
        finally:
            trial.undo()
            self._trials.remove(trial)

    def supposing(self, requested: IntArray, n_pods: IntArray) -> Snapshot:
        """Return the snapshot with other sums in its node columns, for plugins that read nothing else about Pods.

        `requested` is int64 (n_resources, n_rows), `n_pods` int64 (n_rows,).
        """
        nodes = NodeView(self._state.nodes)
        nodes.requested, nodes.n_pods = read_only(requested), read_only(n_pods)
        return Snapshot(self._state, self.signals, self.now_s, nodes, self.waited_s)

    def _stale(self) -> StaleSnapshotError:
        return StaleSnapshotError(f"snapshot of epoch {self._epoch} used at epoch {self._state.epoch}")

    def _renew(self) -> None:
        self._epoch = self._state.epoch
        self._nodes = None
        self._known = {}

    def detach(self) -> Snapshot:
        """Return a deep copy that lives on its own, for other threads and processes."""
        return Snapshot(copy.deepcopy(self._state), copy.deepcopy(self.signals), self.now_s, None, self.waited_s)
