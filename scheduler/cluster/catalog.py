"""CatalogRouter: takes objects that are neither Pods nor Nodes into the catalog, and tells the queue of each change."""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import partial

from scheduler.cluster.bad_input import BadReason
from scheduler.cluster.cache import Cache, is_same_version
from scheduler.cluster.queue import SchedulingQueue
from scheduler.framework.events import Action, ClusterEvent, Resource
from scheduler.model.catalog import CATALOG_KINDS, CatalogObject, ObjectKey, UnreadableObject, key_of

_RESOURCES: dict[str, Resource] = {str(resource): resource for resource in Resource if resource in CATALOG_KINDS}


class CatalogRouter:
    """Keeps the catalog as the API server shows it, except for what is assumed; `changed` gets each new version's key.

    An object that can no longer be read is taken out: its older version may be wrong by now.
    """

    def __init__(self, cache: Cache, queue: SchedulingQueue, changed: Callable[[ObjectKey], None]) -> None:
        self._unreadable = cache.unreadable_objects
        self._bad_input = cache.bad_input
        self._state = cache.state
        self._assumed = cache.assumed
        self._queue = queue
        self._changed = changed

    def unlisted(self, kind: str, named: Container[object]) -> list[Callable[[float], None]]:
        """Return what deletes each object whose (namespace, name) is not `named`, at a given time."""
        known = self._state.catalog.all(CATALOG_KINDS[kind])
        unreadable = self._unreadable.get(kind, {})
        return [
            *(partial(self.deleted, item) for item in known if _key(item) not in named),
            *(partial(self._gone_unread, kind, key) for key in unreadable if key not in named),
        ]

    def set(self, item: CatalogObject | UnreadableObject, now_s: float) -> None:
        """Add or change an object, or set it aside."""
        if isinstance(item, UnreadableObject):
            self.set_aside(item, now_s)
            return
        self._forget_unreadable(type(item).__name__, _key(item))
        known = self._state.catalog.get(type(item), item.metadata.name, item.metadata.namespace)
        if known is not None and is_same_version(known, item):
            return
        shown = self._assumed.end(key_of(item))
        old = self._state.set_object(item)
        action = Action.ADD if old is None else Action.UPDATE_OTHER
        self._tell(type(item).__name__, action, shown or old, item, now_s)

    def deleted(self, item: CatalogObject | UnreadableObject, now_s: float) -> None:
        kind = item.kind if isinstance(item, UnreadableObject) else type(item).__name__
        self._forget_unreadable(kind, _key(item))
        self._take_out(kind, item, now_s)

    def set_aside(
        self, item: UnreadableObject, now_s: float, reason: BadReason = BadReason.SCHEMA, error: Exception | None = None
    ) -> None:
        """Take out what cannot be read."""
        namespace, name = _key(item)
        where = f"{namespace}/{name}" if namespace else name
        text = f"cannot be read and counts as missing until it can: {item.problem}"
        self._bad_input.note(item.kind, where, reason, text, error)
        self._unreadable.setdefault(item.kind, {})[namespace, name] = item.problem
        self._take_out(item.kind, item, now_s)

    def _take_out(self, kind: str, item: CatalogObject | UnreadableObject, now_s: float) -> None:
        namespace, name = _key(item)
        shown = self._assumed.end((kind, namespace, name))
        old = self._state.remove_object(CATALOG_KINDS[kind], namespace, name)
        if old is not None:
            self._tell(kind, Action.DELETE, shown or old, None, now_s)

    def _gone_unread(self, kind: str, key: tuple[str, str], _now_s: float) -> None:
        self._forget_unreadable(kind, key)

    def _forget_unreadable(self, kind: str, key: tuple[str, str]) -> None:
        if kind in self._unreadable:
            self._unreadable[kind].pop(key, None)

    def _tell(
        self, kind: str, action: Action, old: CatalogObject | None, new: CatalogObject | None, now_s: float
    ) -> None:
        resource = _RESOURCES.get(kind)
        if resource is not None:
            self._queue.on_event(ClusterEvent.of(resource, action, old, new), now_s)
        known = new or old
        if known is not None:
            self._changed(key_of(known))


def given_back(assumed: CatalogObject, shown: CatalogObject) -> ClusterEvent | None:
    """Return the event that an object is no longer assumed, for others may have been refused for that."""
    resource = _RESOURCES.get(type(shown).__name__)
    return None if resource is None else ClusterEvent.of(resource, Action.UPDATE_OTHER, assumed, shown)


def _key(item: CatalogObject | UnreadableObject) -> tuple[str, str]:
    return item.metadata.namespace, item.metadata.name
