"""AssumedObjects: objects of the catalog as we have decided them to be, until the API server shows them.

Source: kube-scheduler v1.37 volumebinding/passive_assume_cache.go (behaviour).
"""

from __future__ import annotations

from scheduler.errors import InvalidObjectError
from scheduler.model.catalog import CATALOG_KINDS, CatalogObject, ObjectKey, T, key_of
from scheduler.model.objects import Node
from scheduler.model.state import ClusterState


class AssumedObjects:
    """Puts objects into the catalog in place of what the API server has shown, and takes them out again.

    An assumption ends with any other version that the watch brings, or by `forget`. Of several about one object the
    last one counts.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        # The object as the API server has shown it, and as it is assumed.
        self._known: dict[ObjectKey, tuple[CatalogObject, CatalogObject]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def assume(self, item: CatalogObject) -> ObjectKey:
        """Show an object like this from now on; return its key.

        Raises
        ------
        InvalidObjectError
            The catalog has none of that name, or another version.
        """
        key, metadata = key_of(item), item.metadata
        there = self._state.catalog.get(type(item), metadata.name, metadata.namespace)
        found = None if there is None else there.metadata.resource_version
        if there is None or found != metadata.resource_version:
            what = f"{key[1]}/{key[2]}" if key[1] else key[2]
            raise InvalidObjectError(
                f'"{what}" is out of sync (stored: {found or ""}, assume: {metadata.resource_version})'
            )
        shown = self._known[key][0] if key in self._known else there
        self._known[key] = (shown, item)
        self._state.set_object(item)
        return key

    def forget(self, item: CatalogObject) -> CatalogObject | None:
        """Take an assumption back; return the object as it is again, None where something else has taken its place."""
        shown, assumed = self._known.get(key_of(item), (None, None))
        if shown is None or assumed is not item:
            return None
        del self._known[key_of(item)]
        self._state.set_object(shown)
        return shown

    def end(self, key: ObjectKey) -> CatalogObject | None:
        """Note that the watch brings another version or a deletion; return what it had shown if another was assumed."""
        return self._known.pop(key, (None, None))[0]

    def shown(self, key: ObjectKey) -> CatalogObject | None:
        """Return an object as the API server has shown it last."""
        if key in self._known:
            return self._known[key][0]
        kind, namespace, name = key
        return self._state.catalog.get(CATALOG_KINDS[kind], name, namespace)


class ApiObjects:
    """Objects as the API server has shown them last, for plugins: a `framework.plugin.ApiView`."""

    def __init__(self, state: ClusterState, assumed: AssumedObjects) -> None:
        self._state = state
        self._assumed = assumed

    def node(self, name: str) -> Node | None:
        row = self._state.nodes.row_of(name)
        return None if row is None else self._state.nodes.objects[row]

    def get(self, kind: type[T], name: str, namespace: str = "") -> T | None:
        found = self._assumed.shown((kind.__name__, namespace, name))
        return found if isinstance(found, kind) else None
