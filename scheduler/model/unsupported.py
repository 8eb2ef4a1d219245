"""What a Pod may ask for that is not built: refused by name, never guessed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

from scheduler.model.objects import Container, Pod

NOT_BUILT = "not built yet in Vane 0.1"
"""The version named is the latest that still refuses; the line goes when the thing is built."""


@dataclass(frozen=True, slots=True)
class Unsupported:
    """One need: where it stands in the Pod, why it is refused, and how to see it."""

    path: str
    reason: str
    is_needed: Callable[[Pod], bool]


def unsupported(pod: Pod) -> tuple[str, ...]:
    """Return `path: reason` of everything that the Pod needs and Vane does not have, empty for most Pods."""
    return tuple(f"{row.path}: {row.reason}" for row in UNSUPPORTED if row.is_needed(pod))


def _containers(pod: Pod) -> Iterator[Container]:
    spec = pod.spec
    return chain(spec.init_containers or (), spec.containers or (), spec.ephemeral_containers or ())


def _claims_devices(pod: Pod) -> bool:
    return any(container.resources.claims for container in _containers(pod))


UNSUPPORTED: tuple[Unsupported, ...] = (
    Unsupported("spec.resourceClaims", NOT_BUILT, lambda pod: bool(pod.spec.resource_claims)),
    Unsupported("spec.containers.resources.claims", NOT_BUILT, _claims_devices),
    Unsupported("spec.schedulingGroup", NOT_BUILT, lambda pod: pod.spec.scheduling_group is not None),
)
"""Everything that `decide` refuses to guess about."""
