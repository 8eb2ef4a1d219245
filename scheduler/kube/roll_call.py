"""RollCall: which Pods were still without a node when we became the leader."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.model.objects import Pod


@dataclass(frozen=True, slots=True)
class RollCall:
    """A consistent list of the pending Pods of our schedulers, taken after the lease was ours.

    The watch may lag behind what the leader before us has done. What it shows is older than the list where its
    resourceVersion is not greater (those of one API server are comparable numbers), and then only Pods on the list may
    be tried: the others have been bound or deleted, and the watch is about to say so.
    """

    resource_version: int
    pending: frozenset[str]

    def is_overtaken(self, pod: Pod) -> bool:
        """Return whether a Pod that the watch shows as pending is known not to be any more."""
        version = pod.metadata.resource_version
        return version.isdecimal() and int(version) <= self.resource_version and pod.metadata.uid not in self.pending


EVERYONE = RollCall(0, frozenset())
"""Without leader election nobody was there before us."""
