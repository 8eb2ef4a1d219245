"""What a Pod may ask for that is not built: refused by name, never guessed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

from scheduler.model.objects import Container, Pod
from scheduler.model.selector_sizes import SelectorSize, affinity_size, spread_size

NOT_BUILT = "not built yet in Vane 0.1"
"""The version named is the latest that still refuses; the line goes when the thing is built."""

MOST_TERMS = 2_000
MOST_CONSTRAINTS = 500
MOST_WORDS = 20_000
"""Of one Pod's terms about other Pods, of its spread constraints, and of the labels, requirements, values and
namespaces in either: hundreds of times what Pods ask for, and what a decision has time to read. kube-scheduler has no
such limit.
"""


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


def is_vast(size: SelectorSize) -> bool:
    """Return whether a Pod's terms about other Pods are more than is read: they count for nothing then."""
    return _is_beyond(size, MOST_TERMS)


def _has_vast_affinity(pod: Pod) -> bool:
    return pod.spec.affinity is not None and is_vast(affinity_size(pod))


def _is_beyond(size: SelectorSize, most: int) -> bool:
    return size.n_terms > most or size.n_words > MOST_WORDS


_VAST = "at most {:,} {} with {:,} labels, requirements, values and namespaces in all"

UNSUPPORTED: tuple[Unsupported, ...] = (
    Unsupported("spec.resourceClaims", NOT_BUILT, lambda pod: bool(pod.spec.resource_claims)),
    Unsupported("spec.containers.resources.claims", NOT_BUILT, _claims_devices),
    Unsupported("spec.schedulingGroup", NOT_BUILT, lambda pod: pod.spec.scheduling_group is not None),
    Unsupported("spec.affinity", _VAST.format(MOST_TERMS, "terms about other Pods", MOST_WORDS), _has_vast_affinity),
    Unsupported(
        "spec.topologySpreadConstraints",
        _VAST.format(MOST_CONSTRAINTS, "constraints", MOST_WORDS),
        lambda pod: _is_beyond(spread_size(pod), MOST_CONSTRAINTS),
    ),
)
"""Everything that `decide` refuses to guess about."""
