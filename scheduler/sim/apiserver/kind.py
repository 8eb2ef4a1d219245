"""What may differ between kinds of objects: defaults, what is refused, what an update may change."""

from __future__ import annotations

from scheduler.sim.apiserver.failures import Cause
from scheduler.sim.apiserver.resources import Json, ServedResource


class Kind:
    """A kind without any rule of its own; the others are made from it.

    All methods may change the objects they get: those are the store's own.
    """

    creates_on_update = False
    """Whether PUT to a name that isn't there creates it."""
    needs_version = False
    """Whether PUT must name the resourceVersion that it replaces."""
    is_returned_when_deleted = False
    """Whether DELETE answers with the object, and not only with its uid."""

    def default(self, obj: Json) -> None:
        """Fill in what a new object leaves open, and drop what only others may set."""

    def problems(self, resource: ServedResource, obj: Json) -> list[Cause]:
        """Return what is wrong with a new or updated object, beside its metadata."""
        del resource, obj
        return []

    def update(self, resource: ServedResource, new: Json, old: Json, subresource: str) -> list[Cause]:
        """Put back what an update of this subresource doesn't touch; return what is wrong with the rest."""
        del old, subresource
        return self.problems(resource, new)

    def graces_s(self, obj: Json, asked_s: int | None) -> list[int]:
        """Return the seconds of grace in each state that the object goes through before it is gone."""
        del obj, asked_s
        return []

    def to_stored(self, resource: ServedResource, obj: Json) -> Json:
        """Return the object as it is kept, from how this resource shows it."""
        del resource
        return obj

    def from_stored(self, resource: ServedResource, obj: Json) -> Json:
        """Return the object as this resource shows it."""
        del resource
        return obj


class KindWithStatus(Kind):
    """Spec and status are written by two ways, and each leaves the other's part alone."""

    def update(self, resource: ServedResource, new: Json, old: Json, subresource: str) -> list[Cause]:
        part = "spec" if subresource == "status" else "status"
        if part in old:
            new[part] = old[part]
        else:
            new.pop(part, None)
        return self.problems(resource, new)
