"""The nodes of the simulated cluster: three zones, in each three plain nodes and one with graphics cards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

Json = dict[str, Any]

ZONES: Final = ("zone-a", "zone-b", "zone-c")
DISTANCE_MS: Final = {"zone-a": 2.0, "zone-b": 6.0, "zone-c": 14.0}
"""What the way from the users to a zone and back adds to every request."""

GPU_RESOURCE: Final = "nvidia.com/gpu.shared"
"""A quarter of a card, as NVIDIA's device plugin advertises time slices that are renamed."""
SLICES_PER_CARD: Final = 4
FRAMEBUFFER_MIB: Final = 40_960.0

_CORES: Final = 8
_MEMORY_GIB: Final = 32
_CARDS: Final = 4
_PLAIN_PER_ZONE: Final = 3


@dataclass(frozen=True, slots=True)
class SimNode:
    """What a node has; `memory_bytes` is what its Pods may ask for, and all there is."""

    name: str
    zone: str
    address: str
    cores: int
    memory_bytes: float
    cards: int

    @property
    def distance_ms(self) -> float:
        return DISTANCE_MS[self.zone]


def make_nodes() -> tuple[SimNode, ...]:
    """Return the twelve nodes, by zone; in each the last one has cards."""
    specs = []
    for i, zone in enumerate(ZONES):
        for number in range(1, _PLAIN_PER_ZONE + 2):
            cards = _CARDS if number > _PLAIN_PER_ZONE else 0
            letter = zone[-1]
            name = f"gpu-{letter}1" if cards else f"node-{letter}{number}"
            specs.append(SimNode(name, zone, f"10.0.{i}.{number}", _CORES, _MEMORY_GIB * 2.0**30, cards))
    return tuple(specs)


def manifest(node: SimNode) -> Json:
    """Return the Node object, as its kubelet would register it."""
    resources = {"cpu": str(node.cores), "memory": f"{_MEMORY_GIB}Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    if node.cards:
        resources[GPU_RESOURCE] = str(node.cards * SLICES_PER_CARD)
    labels = {
        "kubernetes.io/hostname": node.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": node.zone,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": labels},
        "spec": {},
        "status": {
            "capacity": dict(resources),
            "allocatable": dict(resources),
            "addresses": [
                {"type": "InternalIP", "address": node.address},
                {"type": "Hostname", "address": node.name},
            ],
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated by vane demo"}
            ],
            "nodeInfo": {
                "kubeletVersion": "v1.37.0-sim",
                "osImage": "simulated",
                "kernelVersion": "simulated",
                "containerRuntimeVersion": "simulated://1",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
        },
    }
