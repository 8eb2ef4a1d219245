"""Index: what Pods change, counted as events arrive instead of in the cycle."""

from __future__ import annotations

from abc import ABC, abstractmethod

from scheduler.model.pods import PodInfo


class Index(ABC):
    """Counts kept up to date for plugins, in O(change).

    A plugin names the classes it needs in `Plugin.indexes`; one instance per class is shared by all profiles
    and told of every Pod that comes to a row or leaves it: events, assume, forget and trials alike. Pods of
    all schedulers count. When a trial is undone, a Pod that was taken out comes back last: for the order of the
    Pods ask `snapshot.pods_on`.
    """

    @abstractmethod
    def add_pod(self, pod: PodInfo, row: int) -> None: ...

    @abstractmethod
    def remove_pod(self, pod: PodInfo, row: int) -> None: ...

    def renew_pod(self, pod: PodInfo, row: int) -> bool:
        """Take note of another version of a Pod, of which only the status has changed, and not what it occupies.

        Return whether anything that is counted on its row has changed.
        """
        return False
