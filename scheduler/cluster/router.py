"""Router: what the watch threads read, turned into calls on the cache and the queue.

Source: kube-scheduler v1.37 eventhandlers.go (behaviour).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial

from msgspec.structs import replace

from scheduler.cluster.bad_input import BadReason
from scheduler.cluster.cache import Cache, CachedPod, is_same_version
from scheduler.cluster.catalog import CatalogRouter
from scheduler.cluster.changes import bound_to, node_changes, pod_added, pod_changes, pod_deleted
from scheduler.cluster.queue import SchedulingQueue
from scheduler.errors import CacheCorruptedError
from scheduler.framework.events import Action, ClusterEvent, Resource
from scheduler.model.catalog import CatalogObject, ObjectKey, UnreadableObject
from scheduler.model.objects import Node, Pod, PodSpec, PodStatus, UnreadableNode, UnreadablePod
from scheduler.model.pods import PodInfo
from scheduler.model.structs import ObjectMeta

_log = logging.getLogger(__name__)

DELETED = "DELETED"
_TERMINAL = ("Succeeded", "Failed")

Object = Pod | UnreadablePod | Node | UnreadableNode | CatalogObject | UnreadableObject


def _nobody(_what: object) -> None:
    """Nothing waits for what vanishes or changes."""


class Router:
    """Called on the deciding thread with one message after the other.

    `scheduler_names` are those of our profiles. `assumed_gone` is told the UID of each Pod that was deleted,
    or is about to be, between its assumption and the end of its binding: what waits for it may give up.
    `assumed_changed` is told of each other change to such a Pod, `object_changed` of each node or object of the catalog
    that the watch shows to have come, changed or gone. Pods that have gone are remembered while `counts_gone` says so.
    """

    def __init__(
        self,
        cache: Cache,
        queue: SchedulingQueue,
        scheduler_names: Container[str],
        assumed_gone: Callable[[str], None] = _nobody,
        assumed_changed: Callable[[PodInfo], None] = _nobody,
        object_changed: Callable[[ObjectKey], None] = _nobody,
        counts_gone: Callable[[], bool] = lambda: True,
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._scheduler_names = scheduler_names
        self._assumed_gone = assumed_gone
        self._assumed_changed = assumed_changed
        self._object_changed = object_changed
        self._counts_gone = counts_gone
        self.catalog = CatalogRouter(cache, queue, object_changed)
        # Every Pod in the cache or the queue: namespace/name -> UID.
        self._uid_of: dict[str, str] = {}
        # Of each list under way, the UIDs of Pods or the (namespace, name) of other objects that it has named.
        self._named: dict[str, set[object]] = {}

    def uid_of(self, namespace: str, name: str) -> str | None:
        """Return the UID of the Pod of that name in the cache or the queue."""
        return self._uid_of.get(f"{namespace}/{name}")

    def replaced(self, kind: str, objects: Iterable[Object], now_s: float) -> None:
        """Take a whole list, first or new: what it names was added or changed, what it lacks was deleted.

        Raises
        ------
        CacheCorruptedError
            As `Cache.add_pod`.
        """
        self.listed(kind, objects, now_s)
        for delete in self.unlisted(kind):
            delete(now_s)

    def listed(self, kind: str, objects: Iterable[Object], now_s: float, *, is_first: bool = True) -> None:
        """Take a slice of a list, the first or one that follows; raises as `replaced`."""
        named = self._named.setdefault(kind, set())
        if is_first:
            named.clear()
        for item in objects:
            named.add(item.metadata.uid if kind == "Pod" else (item.metadata.namespace, item.metadata.name))
            self.changed("MODIFIED", item, now_s)

    def unlisted(self, kind: str) -> list[Callable[[float], None]]:
        """Return, of a list that is complete, what deletes each object that it has not named, at a given time.

        It is as of now: no other change to objects of the kind may come in between.
        """
        named = self._named.pop(kind, set())
        if kind == "Pod":
            return [partial(self._pod_gone, uid, key) for key, uid in self._uid_of.items() if uid not in named]
        if kind == "Node":
            nodes = (node for node in self._cache.nodes() if ("", node.metadata.name) not in named)
            unreadable = (name for name in self._cache.unreadable_nodes if ("", name) not in named)
            return [
                *(partial(self.changed, DELETED, node) for node in nodes),
                *(partial(self._node_deleted, name) for name in unreadable),
            ]
        return self.catalog.unlisted(kind, named)

    def ended(self, pods: Iterable[Pod | UnreadablePod], now_s: float) -> None:
        """Take Pods that had ended before anything of them was watched; one that is placed ends with its own event."""
        for pod in pods:
            if not self._cache.is_placed(pod.metadata.uid):
                self._remember(_info(pod)[0], now_s)

    def changed(self, type_: str, item: Object, now_s: float) -> None:
        """Take one watch event: `type_` is ADDED, MODIFIED or DELETED, of which the first two are one thing here.

        An object that cannot be applied is set aside, and all others go on.

        Raises
        ------
        CacheCorruptedError
            As `Cache.add_pod`.
        """
        try:
            self._apply(type_, item, now_s)
        except CacheCorruptedError:
            raise
        except Exception as error:  # noqa: BLE001 - whoever wrote the object must not end the process with it
            self._set_aside(type_, item, error, now_s)

    def _apply(self, type_: str, item: Object, now_s: float) -> None:
        if not isinstance(item, Pod | UnreadablePod | Node | UnreadableNode):
            (self.catalog.deleted if type_ == DELETED else self.catalog.set)(item, now_s)
            return
        if isinstance(item, Node | UnreadableNode):
            if type_ == DELETED:
                self._node_deleted(item.metadata.name, now_s)
            elif isinstance(item, Node):
                self._node_set(item, now_s)
            else:
                self._node_unreadable(item, now_s)
            self._object_changed(("Node", "", item.metadata.name))
            return
        pod, problem = _info(item)
        if problem and type_ != DELETED:
            text = f"counts without what cannot be read: {problem}"
            self._cache.bad_input.note("Pod", pod.key, BadReason.SCHEMA, text)
        self._pod(type_, pod, problem, now_s)

    def _pod(self, type_: str, pod: PodInfo, problem: str, now_s: float) -> None:
        uid, key = pod.uid, pod.key
        namesake = self._uid_of.get(key, uid)
        if namesake != uid and type_ != DELETED:
            # Its deletion fell into a gap of the watch.
            self._pod_gone(namesake, key, now_s)
        if type_ == DELETED or pod.pod.status.phase in _TERMINAL:
            self._pod_gone(uid, key, now_s)
            self._remember(pod, now_s)
        elif pod.pod.spec.node_name:
            self._assigned(pod, problem, now_s)
        elif pod.pod.spec.scheduler_name in self._scheduler_names:
            self._pending(pod, problem, now_s)
        elif not self._cache.is_placed(uid):
            self._uid_of[key] = uid
            self._queue.set_other(pod)

    def _set_aside(self, type_: str, item: Object, error: Exception, now_s: float) -> None:
        """Do without an object that raised when it was applied, or with less of it."""
        problem, metadata = f"{type(error).__name__}: {error}", item.metadata
        if isinstance(item, Node | UnreadableNode):
            self._cache.set_node_aside(metadata.name, BadReason.FAULT, problem, error)
        elif isinstance(item, Pod | UnreadablePod):
            text = f"counts with its containers only: {problem}"
            self._cache.bad_input.note("Pod", _name(metadata), BadReason.FAULT, text, error)
            for bare in _bare(_info(item)[0].pod):
                try:
                    self._pod(type_, PodInfo(bare), problem, now_s)
                    return
                except CacheCorruptedError:
                    raise
                except Exception:  # noqa: BLE001 - the first has been told, and less may do
                    continue
        else:
            kind = item.kind if isinstance(item, UnreadableObject) else type(item).__name__
            spoilt = UnreadableObject(kind=kind, metadata=metadata, problem=problem)
            try:
                self.catalog.set_aside(spoilt, now_s, BadReason.FAULT, error)
            except Exception:  # noqa: BLE001 - as above
                _log.exception("%s %s is neither applied nor taken out", kind, _name(metadata))

    # -- nodes ----------------------------------------------------------------------------------------------

    def _node_set(self, node: Node, now_s: float) -> None:
        name = node.metadata.name
        known = self._cache.node(name)
        if known is not None and known.metadata.uid != node.metadata.uid:
            self._node_deleted(name, now_s)
        old = self._cache.set_node(node)
        if name in self._cache.unreadable_nodes:
            events = [] if old is None else [ClusterEvent.of(Resource.NODE, Action.DELETE, old)]
        elif old is None:
            events = [ClusterEvent.of(Resource.NODE, Action.ADD, None, node)]
        else:
            events = node_changes(old, node)
        for event in events:
            self._queue.on_event(event, now_s)

    def _node_unreadable(self, node: UnreadableNode, now_s: float) -> None:
        old = self._cache.set_node_aside(node.metadata.name, BadReason.SCHEMA, node.problem)
        if old is not None:
            self._queue.on_event(ClusterEvent.of(Resource.NODE, Action.DELETE, old), now_s)

    def _node_deleted(self, name: str, now_s: float) -> None:
        old = self._cache.remove_node(name)
        if old is not None:
            self._queue.on_event(ClusterEvent.of(Resource.NODE, Action.DELETE, old), now_s)

    # -- Pods -----------------------------------------------------------------------------------------------

    def _assigned(self, pod: PodInfo, problem: str, now_s: float) -> None:
        known = self._cache.get(pod.uid)
        if not self._cache.add_pod(pod, problem):
            return
        self._uid_of[pod.key] = pod.uid
        self._cache.state.history.come_back(pod.uid)
        if known is not None and not known.is_assumed:
            for event in pod_changes(known.pod, pod, Resource.ASSIGNED_POD):
                self._queue.on_event(event, now_s)
            return
        self._queue.delete(pod.uid)
        if known is not None and known.node_name != pod.pod.spec.node_name:
            self._left(known, now_s)
        self._queue.on_event(pod_added(pod), now_s)

    def _pending(self, pod: PodInfo, problem: str, now_s: float) -> None:
        placed = self._cache.get(pod.uid)
        if placed is not None and not placed.is_assumed:
            _log.warning("Pod %s is on %s; an older version without a node is ignored", pod, placed.node_name)
            return
        known = self._queue.get(pod.uid)
        if known is not None and is_same_version(known.pod, pod.pod):
            return
        self._uid_of[pod.key] = pod.uid
        if placed is not None:
            if known is not None:
                self._queue.update(known, pod, now_s, problem)
            if pod.pod.metadata.deletion_timestamp is not None:
                self._assumption_ends(placed, now_s)
            else:
                self._assumed_changed(pod)
        elif known is None:
            self._queue.add(pod, now_s, problem)
        else:
            self._queue.update(known, pod, now_s, problem)
            nominated = known.pod.status.nominated_node_name
            if nominated and nominated != pod.pod.status.nominated_node_name:
                self._queue.on_event(pod_deleted(known), now_s, max_priority=known.priority)

    def _pod_gone(self, uid: str, key: str, now_s: float) -> None:
        """Let go of a Pod wherever it is, and let others use its place."""
        pending = self._queue.get(uid)
        nominated = self._cache.nominator.node_of(uid)
        self._queue.delete(uid)
        placed = self._cache.get(uid)
        if self._uid_of.get(key) == uid:
            del self._uid_of[key]
        if placed is None:
            if pending is not None and (nominated or pending.pod.status.nominated_node_name):
                self._queue.on_event(pod_deleted(pending), now_s, max_priority=pending.priority)
        elif placed.is_assumed:
            self._assumption_ends(placed, now_s)
        else:
            self._cache.remove_pod(uid)
            self._remember(bound_to(placed.pod, placed.node_name), now_s)
            self._left(placed, now_s)

    def _remember(self, pod: PodInfo, now_s: float) -> None:
        """Keep it in the history that a Pod was on its node, if anybody counts such; one without a node never was."""
        if pod.pod.spec.node_name and self._counts_gone():
            self._cache.state.remember(pod, pod.pod.spec.node_name, now_s)

    def _assumption_ends(self, placed: CachedPod, now_s: float) -> None:
        """Free the place of a Pod that can't be bound any more; its bind is expected to fail."""
        self._cache.forget(placed.pod.uid)
        self._left(placed, now_s)
        self._assumed_gone(placed.pod.uid)

    def _left(self, placed: CachedPod, now_s: float) -> None:
        self._queue.on_event(pod_deleted(bound_to(placed.pod, placed.node_name)), now_s)


def _info(pod: Pod | UnreadablePod) -> tuple[PodInfo, str]:
    """Return the Pod and what keeps it from being read; of an unreadable one only what is known of it."""
    if isinstance(pod, Pod):
        return PodInfo(pod), ""
    if pod.rest is not None:
        return PodInfo(pod.rest), pod.problem
    spec = PodSpec(node_name=pod.node_name, scheduler_name=pod.scheduler_name)
    return PodInfo(Pod(metadata=pod.metadata, spec=spec)), pod.problem


def _bare(pod: Pod) -> Iterator[Pod]:
    """Yield the Pod with ever less of what may have been why it could not be applied."""
    whose = PodSpec(node_name=pod.spec.node_name, scheduler_name=pod.spec.scheduler_name, priority=pod.spec.priority)
    status = PodStatus(phase=pod.status.phase)
    spec = replace(whose, containers=pod.spec.containers)
    metadata = replace(pod.metadata, labels=None, annotations=None, owner_references=None)
    yield Pod(metadata=pod.metadata, spec=spec, status=status)
    yield Pod(metadata=metadata, spec=spec, status=status)
    yield Pod(metadata=metadata, spec=replace(whose, priority=None), status=status)


def _name(metadata: ObjectMeta) -> str:
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
