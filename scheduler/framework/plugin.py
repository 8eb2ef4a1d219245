"""The extension points: what a plugin may implement and what the framework does with the answer.

A plugin subclasses any of the points below; the class name is the name in configuration and metrics. Columns in,
columns out: `rows` is a slice (all nodes) or an int64 array of row numbers, and for any subset of rows a plugin must
answer what it answers for all rows, there.

The points in the order of a Pod's walk: PreEnqueue, QueueSort (the queue); PreFilter, Filter, PostFilter, PreScore,
Score, NormalizeScore (`decide`, which must be pure: no I/O, no clock but `snapshot.now_s`, no state between cycles);
Reserve, Permit (the deciding thread); PreBind, Bind, PostBind (the binding cycle). From Reserve on a plugin is handed
its own state of PreFilter, for what it has worked out, or what Reserve put in its place; the snapshot and its arrays
are no longer valid then.

Side effects are values: a plugin returns instructions, the loop carries them out. A PreBind or PostBind plugin that
must do I/O of its own says `blocking = True` and is called in a bounded pool of threads.

Code that raises fails that Pod's attempt with `SchedulerError`, never the process.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from scheduler.framework.diagnosis import Diagnosis, Refusal
from scheduler.framework.events import EventInterest
from scheduler.framework.index import Index
from scheduler.framework.instructions import Bind, Instruction, PatchPod, Preparation
from scheduler.framework.status import PostFilterResult, PreFilterResult, Rejection, Reserved, ScoreTerm, Status, Wait
from scheduler.model.arrays import FloatArray, IntArray, Rows
from scheduler.model.catalog import ObjectKey, T
from scheduler.model.objects import Node
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot

if TYPE_CHECKING:
    import msgspec

    from scheduler.framework.queued import QueuedEntity

MAX_NODE_SCORE = 100

Needed = dict[int, tuple[PodInfo, ...]]
"""Row -> those of its Pods that have to go."""


class FreedBy(enum.Enum):
    """Which Pods a Filter plugin's verdict on a node depends on, and how it reads them.

    Pods that leave may make a plugin refuse a node as well as take it, as where a volume has to be attached anew: it is
    asked again about the emptied node, and only NOTHING spares that.
    """

    NOTHING = enum.auto()
    """None."""
    ROOM = enum.auto()
    """Those on the node, through nothing but the columns `requested` and `n_pods`; its state does not know them."""
    ITS_ROW = enum.auto()
    """Those on the node."""
    ANY_ROW = enum.auto()
    """Those on other nodes, too."""


@dataclass(frozen=True, slots=True)
class Tally:
    """How a Filter plugin's verdict follows from sums over Pods, so that nodes can lose theirs all at once.

    `each` is int64 (n_counts, n_pods): what each of the Pods asked about adds to the sums. `below` is int64 (n_counts,
    n_rows): what all Pods of lower priority than the Pod to place add on each row, those being deleted among them.

    `without(gone)` returns the state for Filter in which every row misses what is gone from that row, and nothing of
    what is gone from others; `gone` is int64 (n_counts, n_rows), negative where Pods have come, and changes later on.
    """

    each: IntArray
    below: IntArray
    without: Callable[[IntArray], Any]


class Plugin:
    """Base of all plugins; what it declares is read once, when the profile is built."""

    name: str
    """The class name; an attribute, because each decision asks some hundred times."""

    indexes: ClassVar[tuple[type[Index], ...]] = ()
    """The indexes whose counts it reads with `snapshot.index`."""

    kinds: ClassVar[tuple[str, ...]] = ()
    """The kinds of objects that it looks up in `snapshot.catalog`, besides those that its events are about."""

    Args: ClassVar[type[msgspec.Struct] | None] = None
    """What `pluginConfig` may hold for it: then it is made as `cls(args)`, else as `cls()`."""

    applies_rules: ClassVar[bool] = False
    """Whether its Filter refuses, or its Score scores, by the rules in force: rules that only watch are asked then."""

    blocking: ClassVar[bool] = False
    """Whether its PreBind and PostBind do I/O of their own, so that they are called in a pool of threads."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in vars(cls):  # another name is refused when the plugin is made
            cls.name = cls.__name__

    def events(self) -> Sequence[EventInterest]:
        """Return the events that may make a Pod that this plugin refused schedulable."""
        return ()

    def follow(self, snapshot: Snapshot) -> None:
        """Take what has changed into `snapshot.catalog.derived` and `.memo`: called before the first cycle and between.

        It keeps the work in a Pod's cycle small; the plugin's answers must not depend on whether it was called.
        """


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
        """Look at the Pod once. SKIP switches this plugin's Filter off for the cycle; a refusal ends the cycle."""


class FilterPlugin(Plugin, ABC):
    freed_by: ClassVar[FreedBy] = FreedBy.ANY_ROW
    """Which Pods must leave for a refusal to end; a narrower answer than ANY_ROW, or a tally, makes preemption fast."""

    @abstractmethod
    def filter(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        """Return which nodes are refused and why; masks are bool (len(rows),). `state` is PreFilter's."""

    def add_pod(self, state: Any, pod: PodInfo, row: int, snapshot: Snapshot) -> Any:
        """Return the state of PreFilter as it is once `pod` has been placed on `row` (PreFilterExtensions)."""
        return state

    def remove_pod(self, state: Any, pod: PodInfo, row: int, snapshot: Snapshot) -> Any:
        """Return the state of PreFilter as it is once `pod` has been removed from `row`."""
        return state

    def tally(self, state: Any, pod: PodInfo, snapshot: Snapshot, pods: Sequence[PodInfo]) -> Tally | None:
        """Return what follows `pods` that leave their nodes or come to them; None if that takes moving them.

        What Filter says then of a row has to be what it says there after `remove_pod` and `add_pod` for Pods of that
        row.
        """
        return None


class PreScorePlugin(Plugin, ABC):
    @abstractmethod
    def prescore(self, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> object | Status:
        """Return the state for Score, or SKIP to leave this plugin out; `rows` are the feasible nodes."""


class ScorePlugin(Plugin, ABC):
    brings_weights: ClassVar[bool] = False
    """Whether each of its terms is a finished column with a weight of its own: what the profile says of its weight then
    counts nowhere."""

    @abstractmethod
    def score(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[ScoreTerm]:
        """Return raw scores of the feasible nodes. `state` is PreScore's, else PreFilter's."""

    def normalize(self, term: ScoreTerm) -> IntArray | FloatArray:
        """Return the term's values in 0..100, given the raw values of all feasible nodes (NormalizeScore)."""
        return term.values


class DryRun(Protocol):
    """The Filter plugins of one attempt, asked what they would say if some Pods left; nothing is left changed."""

    def needed(self, removable: Mapping[int, Sequence[PodInfo]]) -> tuple[Needed, list[Refusal]]:
        """Find out which of some Pods have to leave their node for the Pod to fit there.

        All leave first; then they come back in the order given, each for as long as the Pod still fits.

        Parameters
        ----------
        removable
            Row -> Pods placed there.

        Returns
        -------
        needed
            Row -> those of its Pods that have to go, in that order; rows where not even all suffice are left out.
        refusals
            Why those rows are refused even so; masks are bool (n_rows,). Where a plugin has a fault, with Code.ERROR.
        """

    def hopeless(self, rows: IntArray, emptied: Snapshot) -> list[Refusal]:
        """Return refusals, masks bool (n_rows,), that will stand on `rows` whichever Pods leave, found in columns.

        A plugin's fault is among them, with Code.ERROR. Nothing is known of nodes that they do not cover. `emptied`
        shows in `requested` and `n_pods` what is left on each node once every Pod has gone that may go.
        """


class PostFilterPlugin(Plugin, ABC):
    @abstractmethod
    def postfilter(
        self, state: Any, pod: PodInfo, snapshot: Snapshot, diagnosis: Diagnosis, dry_run: DryRun
    ) -> PostFilterResult:
        """Look for a way out where no node is feasible; the first plugin without a refusal ends the search.

        `dry_run` tells what the filters would say without some Pods.
        """

    def preempting(self, pod: PodInfo, is_under_way: bool) -> None:
        """Note that the removal of the victims it has named for this Pod begins, or that only the last one is left."""


class ReservePlugin(Plugin, ABC):
    @abstractmethod
    def reserve(self, state: Any, pod: PodInfo, node_name: str) -> Status | Reserved | None:
        """Note that the Pod will use the node, or return what is to be noted; a refusal sends it back."""

    @abstractmethod
    def unreserve(self, state: Any, pod: PodInfo, node_name: str) -> None:
        """Undo `reserve`. Called in reverse order of all Reserve plugins, also of those never asked: idempotent."""


class PermitPlugin(Plugin, ABC):
    @abstractmethod
    def permit(self, state: Any, pod: PodInfo, node_name: str) -> Status | Wait | None:
        """Return None to let the Pod be bound, a refusal, or how long it has to wait."""

    def reconsider(self, state: Any, pod: PodInfo, node_name: str) -> Status | Wait | None:
        """Return what `permit` would, now that the waiting Pod was updated. Another Wait changes no deadline."""
        return Wait(0.0)


class ApiView(Protocol):
    """Objects as the API server has shown them last, nothing of it assumed."""

    def node(self, name: str) -> Node | None: ...

    def get(self, kind: type[T], name: str, namespace: str = "") -> T | None: ...


class PreBindPlugin(Plugin, ABC):
    @abstractmethod
    def prebind(self, state: Any, pod: PodInfo, node_name: str) -> Status | Sequence[Preparation] | None:
        """Prepare the bind; it waits until the instructions have been carried out. A refusal sends the Pod back.

        Where there is a WaitFor among them, others are told first which node the Pod waits for.
        """

    def still_awaits(self, state: Any, pod: PodInfo, node_name: str, api: ApiView) -> Collection[ObjectKey]:
        """Return the objects that the Pod still waits for after a WaitFor; none: it may go on.

        Asked once the watch has shown what was written, then whenever one of them has changed, and every second.

        Raises
        ------
        NotComingError
            What it waits for will not come; as any exception, that ends the attempt.
        """
        return ()


class BindPlugin(Plugin, ABC):
    @abstractmethod
    def bind(self, state: Any, pod: PodInfo, node_name: str) -> Bind | PatchPod | None:
        """Return what makes the decision known, or None to leave it to the next Bind plugin."""

    def clusters(self) -> Collection[str]:
        """Return the names of the other API servers that it binds at: each must be among `clusters` in the settings."""
        return ()


class PostBindPlugin(Plugin, ABC):
    @abstractmethod
    def postbind(self, state: Any, pod: PodInfo, node_name: str) -> Sequence[Instruction]:
        """Return what to do after a successful bind; nothing waits for it, and its failure changes nothing."""
