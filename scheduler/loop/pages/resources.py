"""What /metrics/resources asks: the Pods of one moment, returned by the deciding thread in slices.

The thread only encodes what the Pods' specs name; sums and text are made by the process that serves the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Final

import msgspec

from scheduler.cluster.cache import Cache
from scheduler.cluster.queue import SchedulingQueue
from scheduler.loop.pages.query import ListingQuery, PageContext
from scheduler.model.objects import Container, Pod
from scheduler.model.pods import PodInfo
from scheduler.model.structs import ResourceList

SLICE_PODS: Final = 200
"""Some 0.5 ms of the deciding thread's time."""

ContainerFigures = tuple[ResourceList | None, ResourceList | None, str | None]
"""Requests, limits, restart policy."""


class PodFigures(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One Pod's labels on the page, and its SpecFigures, raw: many Pods have the same."""

    namespace: str
    name: str
    node_name: str
    scheduler_name: str
    priority: int | None
    spec: msgspec.Raw


class SpecFigures(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What a Pod's spec says about resources; `requests` and `limits` are those of the Pod itself."""

    containers: list[ContainerFigures]
    init_containers: list[ContainerFigures]
    overhead: ResourceList | None
    requests: ResourceList | None
    limits: ResourceList | None


class ResourcesQuery(ListingQuery, frozen=True):
    """All Pods; none on a standby and before the first decision, as with kube-scheduler."""

    def slices(self, context: PageContext) -> Iterator[bytes]:
        if context.stage.is_standby or not context.stage.is_deciding:
            return iter(())
        return iter(PodListing(context.cache, context.queue).slice, b"")


class PodListing:
    """All Pods that are known and have not ended: pending, pending for other schedulers, placed.

    Each is handed out as it was at one moment between the start and its slice, so one that is bound or replaced
    meanwhile may come twice: its first figures count.
    """

    def __init__(self, cache: Cache, queue: SchedulingQueue) -> None:
        self._state = cache.state
        pending = queue.entities()
        self._pods = chain(
            (entity.pod for entity in pending), queue.in_flight(), queue.others(), self._placed(list(cache.state.pods))
        )
        self._encoder = msgspec.msgpack.Encoder()

    def _placed(self, rows: Sequence[int]) -> Iterator[PodInfo]:
        for row in rows:
            # A copy for each row, not of all: that is 3 ms at 150,000 Pods.
            yield from list(self._state.pods_on(row))

    def slice(self) -> bytes:
        """Return the PodFigures of the next SLICE_PODS Pods as a msgpack array, nothing after the last."""
        found = [_figures(info.pod) for info in islice(self._pods, SLICE_PODS)]
        return self._encoder.encode(found) if found else b""


def _figures(pod: Pod) -> tuple[str, str, str, str, int | None, SpecFigures]:
    """Return what decodes as PodFigures."""
    metadata, spec = pod.metadata, pod.spec
    own = spec.resources
    figures = SpecFigures(
        [_container(container) for container in spec.containers or ()],
        [_container(container) for container in spec.init_containers or ()],
        spec.overhead,
        None if own is None else own.requests,
        None if own is None else own.limits,
    )
    return metadata.namespace, metadata.name, spec.node_name, spec.scheduler_name, spec.priority, figures


def _container(container: Container) -> ContainerFigures:
    return container.resources.requests, container.resources.limits, container.restart_policy
