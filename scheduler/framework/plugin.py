"""The extension points: what a plugin may implement and what the framework does with the answer.

A plugin subclasses `Plugin` and any of the points below; the class name is the name in configuration and
metrics. Columns in, columns out: `rows` is a slice (all nodes) or an int64 array of row numbers, and for any
subset of rows a plugin must answer what it answers for all rows, there. Nothing here may do I/O, read a
clock (use `snapshot.now_s`) or keep state between cycles.

Code that raises fails that Pod's attempt with `SchedulerError`, never the process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from scheduler.framework.events import EventInterest
from scheduler.framework.index import Index
from scheduler.framework.instructions import Bind
from scheduler.framework.status import PreFilterResult, Rejection, ScoreTerm, Status
from scheduler.model.arrays import FloatArray, IntArray, Rows
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot

if TYPE_CHECKING:
    from scheduler.framework.queued import QueuedEntity

MAX_NODE_SCORE = 100


class Plugin:
    """Base of all plugins; what it declares is read once, when the profile is built."""

    indexes: ClassVar[tuple[type[Index], ...]] = ()
    """The indexes whose counts it reads with `snapshot.index`."""

    @property
    def name(self) -> str:
        return type(self).__name__

    def events(self) -> Sequence[EventInterest]:
        """Return the events that may make a Pod that this plugin refused schedulable."""
        return ()


class PreEnqueuePlugin(Plugin, ABC):
    @abstractmethod
    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        """Return None to let the Pod into the active queue, or why it must wait outside the queues."""


class QueueSortPlugin(Plugin, ABC):
    @abstractmethod
    def sort_key(self, entity: QueuedEntity) -> tuple[Any, ...]:
        """Return the key by which the active queue is ordered, smallest first."""


class PreFilterPlugin(Plugin, ABC):
    @abstractmethod
    def prefilter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status:
        """Look at the Pod once. SKIP switches this plugin's Filter off for the cycle; a refusal ends it."""


class FilterPlugin(Plugin, ABC):
    @abstractmethod
    def filter(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        """Return who is turned away and why; masks are bool (len(rows),). `state` is PreFilter's."""

    def add_pod(self, state: Any, pod: PodInfo, row: int, snapshot: Snapshot) -> Any:
        """Return the state of PreFilter as it is once `pod` has been placed on `row` (PreFilterExtensions)."""
        return state

    def remove_pod(self, state: Any, pod: PodInfo, row: int, snapshot: Snapshot) -> Any:
        """Return the state of PreFilter as it is once `pod` has been removed from `row`."""
        return state


class PreScorePlugin(Plugin, ABC):
    @abstractmethod
    def prescore(self, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> object | Status:
        """Return the state for Score, or SKIP to leave this plugin out; `rows` are the feasible nodes."""


class ScorePlugin(Plugin, ABC):
    @abstractmethod
    def score(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[ScoreTerm]:
        """Return raw scores of the feasible nodes. `state` is PreScore's, else PreFilter's."""

    def normalize(self, term: ScoreTerm) -> IntArray | FloatArray:
        """Return the term's values in 0..100, given the raw values of all feasible nodes (NormalizeScore)."""
        return term.values


class BindPlugin(Plugin, ABC):
    @abstractmethod
    def bind(self, pod: PodInfo, node_name: str) -> Bind | None:
        """Return the instruction that binds the Pod, or None to leave it to the next Bind plugin."""
