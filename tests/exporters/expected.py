"""What each pack should find on the cluster of `programs`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.exporters.programs import NODES

EVERY: Final = frozenset(NODES)

PACKS: Final[Mapping[str, Mapping[str, frozenset[str]]]] = {
    "node-utilisation": {"node_cpu_use": EVERY, "node_memory_use": EVERY},
    "temperature": {"node_cpu_temperature": EVERY},
    "service-health": {"node_probe_success": EVERY, "consul_node_critical": EVERY, "consul_services_healthy": EVERY},
    "kubelet": {"kubelet_cpu_use": EVERY, "kubelet_memory_use": EVERY},
    "batch-on-slack": {"batch_cpu_use": EVERY, "batch_memory_use": EVERY, "batch_cpu_beyond_requests": EVERY},
}
"""Pack -> signal -> nodes with a value; a signal that is not named here is of an exporter that is not run."""

KUBELETS: Final = ("kubelet", "batch-on-slack")
"""The packs that read the kubelets."""

UNMAPPED: Final = {"node_probe_success": 1}
"""Series that name no node, as the pack's header says: a probe of something else."""

_ROOT_CPU: Final = 'container_cpu_usage_seconds_total{id="/", node!=""}'
_ROOT_MEMORY: Final = 'container_memory_working_set_bytes{id="/", node!=""}'
_CPU: Final = {_ROOT_CPU, 'container_cpu_usage_seconds_total{image!="", node!=""}', "id", "image"}
_MEMORY: Final = {_ROOT_MEMORY, 'container_memory_working_set_bytes{image!="", node!=""}', "id", "image"}
ABSENT: Final = {
    "kubelet_cpu_use": _CPU,
    "kubelet_memory_use": _MEMORY,
    "batch_cpu_use": _CPU,
    "batch_memory_use": _MEMORY,
    "batch_cpu_beyond_requests": _CPU,
}
"""What the chart drops, and containers, which these kubelets have none of: /metrics/resource stands in for both."""
