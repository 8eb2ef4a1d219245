"""Catalog: the objects that are neither Pods nor Nodes, for plugins to look up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, get_args

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

CATALOG_KINDS: Mapping[str, type[CatalogObject]] = {kind.__name__: kind for kind in get_args(CatalogObject)}
"""The type of each kind of object that a Catalog holds, by the kind's name."""

T = TypeVar("T", bound=CatalogObject)
D = TypeVar("D")

Key = tuple[str, str]
"""Namespace and name of an object."""

ObjectKey = tuple[str, str, str]
"""Kind, namespace ("" where it has none) and name of an object, Nodes among them."""

_JOURNAL = 8_192
"""Changes of one kind that are remembered at least; a caller that asks less often has to look at all objects again."""


def key_of(item: CatalogObject) -> ObjectKey:
    return type(item).__name__, item.metadata.namespace, item.metadata.name


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
        self._journals: dict[type[Any], list[Key]] = {}
        self._derived: dict[type[Any], Any] = {}

    def set(self, item: T) -> T | None:
        """Add or replace an object; return the one before."""
        kind, metadata = type(item), item.metadata
        here = self._by_namespace.setdefault(kind, {}).setdefault(metadata.namespace, {})
        old: T | None = here.get(metadata.name)
        here[metadata.name] = item
        self._touch(kind, metadata.namespace, metadata.name)
        return old

    def remove(self, kind: type[T], namespace: str, name: str) -> T | None:
        """Remove an object; return it if it was known."""
        old: T | None = self._by_namespace.get(kind, {}).get(namespace, {}).pop(name, None)
        if old is not None:
            self._touch(kind, namespace, name)
        return old

    def get(self, kind: type[T], name: str, namespace: str = "") -> T | None:
        found: T | None = self._by_namespace.get(kind, {}).get(namespace, {}).get(name)
        return found

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        """Return the labels of a Namespace, none where there is no such object."""
        namespace = self.get(Namespace, name)
        return {} if namespace is None else namespace.metadata.labels or {}

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

    def changed_since(self, kind: type[CatalogObject], generation: int) -> Sequence[Key] | None:
        """Return who was set or removed after `generation`, maybe repeatedly; None where that is too long ago."""
        n_changes = self.generation(kind) - generation
        journal = self._journals.get(kind, [])
        return None if n_changes > len(journal) else journal[len(journal) - n_changes :]

    def derived(self, kind: type[D]) -> D:
        """Return the one instance of `kind`, made at the first question.

        For tables that plugins keep up to date by `changed_since`: what they answer follows from the objects alone.
        """
        found: D | None = self._derived.get(kind)
        if found is None:
            found = self._derived[kind] = kind()
        return found

    def _touch(self, kind: type[Any], namespace: str, name: str) -> None:
        self._generations[kind] = self._generations.get(kind, 0) + 1
        journal = self._journals.setdefault(kind, [])
        journal.append((namespace, name))
        if len(journal) > 2 * _JOURNAL:
            del journal[:_JOURNAL]
