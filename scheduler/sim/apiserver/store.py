"""ObjectStore: all objects, their versions, and what may be done to them; without HTTP.

It belongs to one thread, that of the event loop. It copies what it takes and gives, so nobody else holds its objects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from scheduler.sim.apiserver import metadata
from scheduler.sim.apiserver.failures import already_exists, bad_request, conflict, invalid, invalid_value, not_found
from scheduler.sim.apiserver.history import Change, ChangeType, History, Key, Stored
from scheduler.sim.apiserver.kinds import kind_of
from scheduler.sim.apiserver.metadata import time_text
from scheduler.sim.apiserver.patches import apply_patch
from scheduler.sim.apiserver.resources import EVENTS, NAMESPACES, PODS, RESOURCES, Json, ServedResource
from scheduler.sim.apiserver.shapes import check_shape

FIRST_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
EVENT_LIFETIME_S: Final = 3600.0

ObjectCallback = Callable[[ChangeType, Json], None]


class ObjectStore:
    """Creates, reads, updates, patches, deletes and binds; all of it raises StatusError and nothing else.

    Parameters
    ----------
    now
        The wall clock, in seconds since 1970.
    uid
        Makes a new object's uid; the suffix of a generated name comes from it, too.
    window
        How many changes of each kind of object are remembered; a watch from an older version gets 410.
    """

    def __init__(self, now: Callable[[], float], uid: Callable[[], str], window: int = 1000) -> None:
        self.now = now
        self._uid = uid
        self._version = 0
        self._histories = {one.stored_as: History(window) for one in RESOURCES}
        for name in FIRST_NAMESPACES:
            self.create(NAMESPACES, {"metadata": {"name": name}})

    @property
    def version(self) -> int:
        """The version of the last change of any object: one counter for all, as etcd's revision."""
        return self._version

    def history(self, resource: ServedResource) -> History:
        """Return the stored objects of a kind and their changes; for reading."""
        return self._histories[resource.stored_as]

    def create(self, resource: ServedResource, obj: Json, namespace: str = "") -> Json:
        """Add an object and return it as stored; `namespace` is that of the object unless given."""
        kind = kind_of(resource)
        new = _copy(obj)
        check_shape(resource, new)
        namespace = namespace or new["metadata"].get("namespace") or ""
        if resource.is_namespaced:
            namespace = namespace or "default"
            if ("", namespace) not in self._histories[NAMESPACES.stored_as].objects:
                raise not_found(NAMESPACES, namespace)
        metadata.fill(resource, new, namespace, self.now(), self._uid())
        stored_form = kind.to_stored(resource, new)
        kind.default(stored_form)
        causes = metadata.problems(resource, stored_form) + kind.problems(resource, stored_form)
        name = stored_form["metadata"].get("name") or ""
        if causes:
            raise invalid(resource, name, causes)
        if resource.stored_as == EVENTS.stored_as:
            self._expire_events()
        key = (namespace if resource.is_namespaced else "", name)
        if key in self.history(resource).objects:
            raise already_exists(resource, name)
        return self._give(resource, self._record("ADDED", resource, key, stored_form, None))

    def get(self, resource: ServedResource, namespace: str, name: str) -> Json:
        return self._give(resource, self.stored(resource, namespace, name))

    def list(self, resource: ServedResource, namespace: str | None = None) -> list[Json]:
        """Return the objects of a namespace, or of all, in the order of namespace and name."""
        return [
            self._give(resource, stored)
            for key, stored in self.history(resource).sorted()
            if namespace in (None, key[0])
        ]

    def update(self, resource: ServedResource, obj: Json, subresource: str = "") -> Json:
        """Replace an object; with a resourceVersion in it, only if that is the stored one's."""
        new = _copy(obj)
        name, namespace = new["metadata"].get("name") or "", new["metadata"].get("namespace") or ""
        old = self.stored(resource, namespace, name)
        _check(resource, old, new["metadata"].get("uid") or "", "")
        if kind_of(resource).needs_version and not new["metadata"].get("resourceVersion"):
            cause = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
            raise invalid(resource, name, [cause])
        return self._replace(resource, old, new, subresource)

    def patch(
        self,
        resource: ServedResource,
        namespace: str,
        name: str,
        patch: Json,
        *,
        subresource: str = "",
        is_strategic: bool = True,
    ) -> Json:
        """Change an object by a strategic merge patch, or by a JSON merge patch."""
        old = self.stored(resource, namespace, name)
        patched = apply_patch(self._give(resource, old), patch, is_strategic)
        return self._replace(resource, old, _copy(patched), subresource)

    def delete(
        self,
        resource: ServedResource,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        version: str = "",
        grace_s: int | None = None,
    ) -> Json:
        """Delete an object at once; `uid` and `version` are preconditions where given.

        A Pod goes through the states of its deletion as if its kubelet took no time: first, if it runs and `grace_s`
        (None: its own) isn't 0, with that grace, then with none, then it is gone. What is returned is the first of
        these states, which is what the real API server answers. Finalizers are kept, but nothing waits for them.
        """
        old = self.stored(resource, namespace, name)
        _check(resource, old, uid, version)
        key = _key(resource, namespace, name)
        answer: Stored | None = None
        for seconds in kind_of(resource).graces_s(old.object, grace_s):
            last = old.copy()
            if "deletionTimestamp" not in last["metadata"]:
                last["metadata"]["generation"] = last["metadata"].get("generation", 0) + 1
            deletion_s = self.now() + seconds
            last["metadata"] |= {"deletionTimestamp": time_text(deletion_s), "deletionGracePeriodSeconds": seconds}
            old = self._record("MODIFIED", resource, key, last, old)
            answer = answer or old
        gone = self._record("DELETED", resource, key, old.copy(), old)
        return self._give(resource, answer or gone)

    def bind(
        self, namespace: str, name: str, node: str, uid: str = "", annotations: dict[str, str] | None = None
    ) -> None:
        """Put a Pod on a node, for good; whether there is such a node isn't looked at, as in the real API server."""
        old = self.stored(PODS, namespace, name)
        if uid:
            _check(PODS, old, uid, "")
        pod = old.copy()
        if pod["metadata"].get("deletionTimestamp"):
            raise conflict(PODS, name, f"pod {name} is being deleted, cannot be assigned to a host", "binding")
        if pod["spec"].get("nodeName"):
            why = f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"'
            raise conflict(PODS, name, why, "binding")
        if pod["spec"].get("schedulingGates"):
            raise conflict(PODS, name, f"pod {name} has non-empty .spec.schedulingGates", "binding")
        pod["spec"]["nodeName"] = node
        pod["status"].pop("nominatedNodeName", None)
        if annotations:
            pod["metadata"].setdefault("annotations", {}).update(annotations)
        scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
        scheduled["lastTransitionTime"] = time_text(self.now())
        others = [one for one in pod["status"].get("conditions", ()) if one.get("type") != "PodScheduled"]
        pod["status"]["conditions"] = [*others, scheduled]
        self._record("MODIFIED", PODS, (namespace, name), pod, old)

    def subscribe(self, resource: ServedResource, callback: ObjectCallback) -> Callable[[], None]:
        """Call back at every change from now on, before the call that made it returns; what is returned ends that."""
        return self.history(resource).listen(lambda change: callback(change.type, self._give(resource, change.stored)))

    def stored(self, resource: ServedResource, namespace: str, name: str) -> Stored:
        """Return an object as it is kept; for reading."""
        found = self.history(resource).objects.get(_key(resource, namespace, name))
        if found is None:
            raise not_found(resource, name)
        return found

    def _replace(self, resource: ServedResource, old: Stored, new: Json, subresource: str) -> Json:
        check_shape(resource, new)
        kind = kind_of(resource)
        before = old.copy()
        name = before["metadata"]["name"]
        given = new["metadata"].get("name", name)
        if given != name:
            raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")
        version = new["metadata"].get("resourceVersion") or ""
        if version and version != str(old.version):
            raise conflict(resource, name)
        after = kind.to_stored(resource, new)
        causes = metadata.keep(after, before)
        causes = causes or kind.update(resource, after, before, subresource) or metadata.problems(resource, after)
        if causes:
            raise invalid(resource, name, causes)
        after["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"]
        if after == before:
            return self._give(resource, old)
        key = _key(resource, before["metadata"].get("namespace", ""), name)
        return self._give(resource, self._record("MODIFIED", resource, key, after, old))

    def _record(
        self, type_: ChangeType, resource: ServedResource, key: Key, obj: Json, before: Stored | None
    ) -> Stored:
        self._version += 1
        obj["metadata"]["resourceVersion"] = str(self._version)
        stored = Stored(obj, self._version, self.now())
        self.history(resource).record(Change(type_, key, stored, before, self._version))
        return stored

    def _expire_events(self) -> None:
        """Drop what has not been written to for an hour, as etcd does."""
        objects, oldest_s = self.history(EVENTS).objects, self.now() - EVENT_LIFETIME_S
        while objects:
            key, first = next(iter(objects.items()))
            if first.written_s >= oldest_s:
                break
            self._record("DELETED", EVENTS, key, first.copy(), first)

    def _give(self, resource: ServedResource, stored: Stored) -> Json:
        obj = kind_of(resource).from_stored(resource, stored.copy())
        return {"kind": resource.kind, "apiVersion": resource.api_version, **obj}


def _key(resource: ServedResource, namespace: str, name: str) -> Key:
    return (namespace if resource.is_namespaced else "", name)


def _check(resource: ServedResource, stored: Stored, uid: str, version: str) -> None:
    """Raise 409 where a precondition does not hold."""
    own = stored.object["metadata"]
    for field, asked, found in (("UID", uid, own["uid"]), ("ResourceVersion", version, own["resourceVersion"])):
        if asked and asked != found:
            why = f"Precondition failed: {field} in precondition: {asked}, {field} in object meta: {found}"
            raise conflict(resource, own["name"], why)


def _copy(obj: Json) -> Json:
    """Return an object of our own, without what every object of its kind says and without nulls, which say nothing."""
    copied: Json = _without_nulls(msgspec.json.decode(msgspec.json.encode(obj)))
    copied.pop("kind", None)
    copied.pop("apiVersion", None)
    if not isinstance(copied.setdefault("metadata", {}), dict):
        raise bad_request("metadata must be an object")
    return copied


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {field: _without_nulls(inner) for field, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value
