"""A hint for what depends on the labels of a Pod's namespace."""

from __future__ import annotations

from typing import Final

from scheduler.framework.events import Action, ClusterEvent, EventInterest, QueueingHint, Resource
from scheduler.model.pods import PodInfo
from scheduler.model.workloads import Namespace


def _own_namespace_changed(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    versions = [one for one in (event.old, event.new) if isinstance(one, Namespace)]
    is_own = any(one.metadata.name == pod.namespace for one in versions)
    is_alike = len(versions) == 2 and (versions[0].metadata.labels or {}) == (versions[1].metadata.labels or {})
    return QueueingHint.QUEUE if is_own and not is_alike else QueueingHint.SKIP


OWN_NAMESPACE: Final = EventInterest(
    Resource.NAMESPACE, Action.ADD | Action.UPDATE_OTHER | Action.DELETE, _own_namespace_changed
)
"""Labels of the Pod's namespace have changed, or it has come or gone."""
