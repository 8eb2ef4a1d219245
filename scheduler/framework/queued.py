"""QueuedEntity: the queue's unit. A Pod is an entity of one member."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.errors import PluginError
from scheduler.model.pods import PodInfo


@dataclass(slots=True)
class QueuedEntity:
    """Pods that are queued, tried and refused together.

    timestamp_s
        When it last came back to the queue, monotonic seconds; orders Pods of equal priority.
    first_seen_s
        When it came for the first time, monotonic seconds.
    attempts
        Scheduling attempts so far.
    unschedulable_count, consecutive_errors
        What its backoff grows with.
    rejected_by
        Plugins that refused it in the last attempt; only events that they asked for bring it back.
    rejected_rules
        Rules that refused nodes in the last attempt; only events about them bring it back.
    gated_by
        The PreEnqueue plugin that keeps it out of the queues, empty if none does.
    problem
        Why the Pod cannot be read; its attempt must fail with that text. Empty for readable Pods.
    fault
        What a PreEnqueue or QueueSort plugin got wrong about it; its attempt must fail with that.
    waits_for_update
        Refused for its own spec, not for lack of a node: only its own update brings it back.
    first_active_s
        When it first entered the active queue, monotonic seconds: time spent gated is not ours.
    flushed_s, was_flushed
        When the five-minute flush last moved it, and whether that led to the attempt under way.
    """

    members: tuple[PodInfo, ...]
    timestamp_s: float
    first_seen_s: float
    attempts: int = 0
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    rejected_by: frozenset[str] = frozenset()
    rejected_rules: frozenset[str] = frozenset()
    gated_by: str = ""
    problem: str = ""
    fault: PluginError | None = None
    waits_for_update: bool = False
    first_active_s: float | None = None
    flushed_s: float | None = None
    was_flushed: bool = False

    def waited_s(self, now_s: float) -> float:
        """Return for how long it could have been placed, in seconds: what it spent gated does not count."""
        return 0.0 if self.first_active_s is None else now_s - self.first_active_s

    @property
    def pod(self) -> PodInfo:
        """The only member of an entity of one."""
        return self.members[0]

    @property
    def uid(self) -> str:
        return self.pod.uid

    @property
    def priority(self) -> int:
        return max(member.priority for member in self.members)
