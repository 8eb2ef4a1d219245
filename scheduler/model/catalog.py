"""Catalog: the objects that are neither Pods nor Nodes, for plugins to look up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from scheduler.model.structs import MALFORMED_JSON, ObjectMeta, Struct, what_can_be_read
from scheduler.model.volumes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from scheduler.model.workloads import (
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)

CatalogObject = (
    CSIDriver
    | CSINode
    | CSIStorageCapacity
    | Namespace
    | PersistentVolume
    | PersistentVolumeClaim
    | PodDisruptionBudget
    | ReplicaSet
    | ReplicationController
    | Service
    | StatefulSet
    | StorageClass
    | VolumeAttachment
)

T = TypeVar("T", bound=CatalogObject)


class UnreadableObject(Struct, frozen=True):
    """What could be read of such an object that does not decode: enough to take the version before out of use."""

    kind: str
    metadata: ObjectMeta
    problem: str


def catalog_decoder(kind: type[T]) -> Callable[[bytes | msgspec.Raw], T | UnreadableObject]:
    """Return a function that decodes one object from JSON; InvalidObjectError where not even its metadata fits."""
    decoder = msgspec.json.Decoder(kind)

    def decode(raw: bytes | msgspec.Raw) -> T | UnreadableObject:
        try:
            return decoder.decode(raw)
        except MALFORMED_JSON as error:
            return UnreadableObject(kind=kind.__name__, metadata=what_can_be_read(raw)[0], problem=str(error))

    return decode


class Catalog:
    """Objects by type, namespace ("" where a kind has none) and name; only the owner thread may change it."""

    def __init__(self) -> None:
        self._by_namespace: dict[type[Any], dict[str, dict[str, Any]]] = {}
        self._generations: dict[type[Any], int] = {}

    def set(self, item: T) -> T | None:
        """Add or replace an object; return the one before."""
        kind, metadata = type(item), item.metadata
        here = self._by_namespace.setdefault(kind, {}).setdefault(metadata.namespace, {})
        old: T | None = here.get(metadata.name)
        here[metadata.name] = item
        self._touch(kind)
        return old

    def remove(self, kind: type[T], namespace: str, name: str) -> T | None:
        """Remove an object; return it if it was known."""
        old: T | None = self._by_namespace.get(kind, {}).get(namespace, {}).pop(name, None)
        if old is not None:
            self._touch(kind)
        return old

    def get(self, kind: type[T], name: str, namespace: str = "") -> T | None:
        found: T | None = self._by_namespace.get(kind, {}).get(namespace, {}).get(name)
        return found

    def within(self, kind: type[T], namespace: str) -> Iterable[T]:
        """Return the objects of one namespace, in order of arrival."""
        return self._by_namespace.get(kind, {}).get(namespace, {}).values()

    def all(self, kind: type[T]) -> Iterator[T]:
        """Yield all objects of a kind, namespace by namespace."""
        for here in self._by_namespace.get(kind, {}).values():
            yield from here.values()

    def generation(self, kind: type[CatalogObject]) -> int:
        """Return a number that grows with every change to an object of this kind."""
        return self._generations.get(kind, 0)

    def _touch(self, kind: type[Any]) -> None:
        self._generations[kind] = self._generations.get(kind, 0) + 1
