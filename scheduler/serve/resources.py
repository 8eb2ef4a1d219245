"""The page /metrics/resources: what every Pod requests and may use, summed as the scheduler and kubelet do.

Source: kube-scheduler v1.37 metrics/resources/resources.go (behaviour).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Final, Self

import msgspec

from scheduler.errors import InvalidObjectError
from scheduler.exposition import CONTENT_TYPE
from scheduler.loop.pages.resources import ContainerFigures, PodFigures, ResourcesQuery, SpecFigures
from scheduler.model.objects import Container, Pod, PodSpec, ResourceRequirements
from scheduler.model.requests import CPU, EPHEMERAL_STORAGE, MEMORY, Amounts, described_resources
from scheduler.serve.answered_page import OwnFigures, RoutedPage

_NANO: Final = 10**9
_SHOWS: Final = (
    "This shows the resource usage the scheduler and kubelet expect per Pod for resources along with the unit"
    " for the resource if any."
)
_TEXTS: Final = {
    "kube_pod_resource_limit": f"Resources limit for workloads on the cluster, broken down by Pod. {_SHOWS}",
    "kube_pod_resource_request": f"Resources requested by workloads on the cluster, broken down by Pod. {_SHOWS}",
}

_pods: msgspec.msgpack.Decoder[list[PodFigures]] = msgspec.msgpack.Decoder(list[PodFigures])
_specs: msgspec.msgpack.Decoder[SpecFigures] = msgspec.msgpack.Decoder(SpecFigures)


class ResourcesPage(RoutedPage[ResourcesQuery, Sequence[bytes]]):
    """Its text is kept in pieces, as it may be 100 MB."""

    path = "/metrics/resources"
    content_type = CONTENT_TYPE
    limit_s = 30.0
    shared_s = 0.0

    def __init__(self, query: ResourcesQuery) -> None:
        super().__init__(query)
        self._limits: list[bytes] = []
        self._requests: list[bytes] = []
        self._seen: set[tuple[str, str]] = set()

    @classmethod
    def read(cls, parameters: Mapping[str, str]) -> Self:
        return cls(ResourcesQuery())

    def add(self, slice_: bytes) -> None:
        limits: list[str] = []
        requests: list[str] = []
        for pod in _pods.decode(slice_):
            key = (pod.namespace, pod.name)
            if key in self._seen:
                continue
            self._seen.add(key)
            labels = _labels(pod)
            requested, limited = _endings(bytes(pod.spec))
            requests += [f"kube_pod_resource_request{labels}{ending}" for ending in requested]
            limits += [f"kube_pod_resource_limit{labels}{ending}" for ending in limited]
        self._limits.append("".join(limits).encode())
        self._requests.append("".join(requests).encode())

    def body(self, own: OwnFigures) -> Sequence[bytes]:
        """Return the pieces in Prometheus' text format; nothing at all if no Pod has a resource."""
        pieces: list[bytes] = []
        for name, samples in (("kube_pod_resource_limit", self._limits), ("kube_pod_resource_request", self._requests)):
            if any(samples):
                pieces += [f"# HELP {name} {_TEXTS[name]}\n# TYPE {name} gauge\n".encode(), *filter(None, samples)]
        return pieces


def _labels(pod: PodFigures) -> str:
    priority = "" if pod.priority is None else pod.priority
    return (
        f'{{namespace="{pod.namespace}",node="{pod.node_name}",pod="{pod.name}",priority="{priority}",'
        f'scheduler="{_escaped(pod.scheduler_name)}"'
    )


@functools.lru_cache(maxsize=16_384)
def _endings(spec: bytes) -> tuple[Sequence[str], Sequence[str]]:
    """Return what stands behind a Pod's own labels, for its requests and for its limits.

    Kept, because the Pods of one workload share it. What cannot be read is not shown: it is counted as unreadable.
    """
    figures = _specs.decode(spec)
    try:
        requests, limits = described_resources(_pod(figures))
    except InvalidObjectError:
        return (), ()
    return _lines(requests), _lines(limits)


def _pod(figures: SpecFigures) -> Pod:
    return Pod(
        spec=PodSpec(
            containers=[_container(container) for container in figures.containers],
            init_containers=[_container(container) for container in figures.init_containers],
            overhead=figures.overhead,
            resources=ResourceRequirements(requests=figures.requests, limits=figures.limits),
        )
    )


def _container(figures: ContainerFigures) -> Container:
    requests, limits, restart_policy = figures
    return Container(resources=ResourceRequirements(requests=requests, limits=limits), restart_policy=restart_policy)


def _lines(amounts: Amounts) -> Sequence[str]:
    return tuple(
        f',resource="{_escaped(name)}",unit="{_unit(name)}"}} {amount / _NANO!r}\n'
        for name, amount in sorted(amounts.items())
        if amount
    )


def _unit(resource: str) -> str:
    if resource == CPU:
        return "cores"
    if resource in (MEMORY, "storage", EPHEMERAL_STORAGE) or resource.startswith("hugepages-"):
        return "bytes"
    return "integer" if resource.startswith("attachable-volumes-") else ""


def _escaped(value: str) -> str:
    """Return a label's value as the text format wants it; names of namespaces, Pods and nodes need no care."""
    if value.isidentifier():
        return value
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
