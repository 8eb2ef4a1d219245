"""How dcgm-exporter labels the series of a card, and in which ways it names the node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

_NAMING: Final[Mapping[str, Callable[[str], dict[str, str]]]] = {
    "Hostname": lambda node: {"Hostname": node},
    "hostname": lambda node: {"hostname": node},
    "node": lambda node: {"node": node, "Hostname": f"dcgm-{node}", "instance": "10.244.1.7:9400"},
    "instance": lambda node: {"hostname": f"dcgm-{node}", "instance": f"10.0.0.{node[-1]}:9400"},
}


def dcgm_labels(node: str, label: str, card: int) -> dict[str, str]:
    return {
        "DCGM_FI_DRIVER_VERSION": "580.105.08",
        **_NAMING[label](node),
        "UUID": f"GPU-{node}-{card}",
        "container": "nvidia-dcgm-exporter",
        "device": f"nvidia{card}",
        "gpu": str(card),
        "job": "nvidia-dcgm-exporter",
        "modelName": "NVIDIA H100 80GB HBM3",
        "namespace": "gpu-operator",
        "pci_bus_id": f"00000000:{0x19 + card:02X}:00.0",
        "pod": f"dcgm-{node}",
    }
