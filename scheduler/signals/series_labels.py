"""The series labels that name nodes, values of node labels, and cards."""

from __future__ import annotations

import re
from typing import Final


def spellings(name: str) -> tuple[str, ...]:
    """Return how Prometheus may write a name with dots, as OpenTelemetry has them: with `_`, as it is, or escaped.

    Source: Prometheus' documentation, escaping schemes (`underscores`, `allow-utf-8`, `dots`, `values`).
    """
    doubled = name.replace("_", "__")
    return (name.replace(".", "_"), name, doubled.replace(".", "_dot_"), f"U__{doubled.replace('.', '_2e_')}")


INSTANCE: Final = "instance"
"""What was scraped: a node's name or address, maybe with scheme, port and path."""

NODE_LABELS: Final = (
    "node",
    "node_name",
    "nodename",
    *spellings("k8s.node.name"),
    "kubernetes_node",
    "exported_node",
    "Hostname",
    "hostname",
    "kubernetes_io_hostname",
    INSTANCE,
    # Often the machine that a series speaks of, but to some exporters another one, with which they talk.
    "host",
    *spellings("host.name"),
    "internal_ip",
)
"""What may name a node, tried in this order; the value as it stands, but for that of `instance`."""

CARD_LABELS: Final = (
    "UUID",
    "uuid",
    "gpu_uuid",
    "serial_number",
    "pci_bus_id",
    "pci_bdf",
    "gpu",
    "gpu_id",
    "minor_number",
    "device",
)
"""Tried in this order: what names a card in dcgm-exporter, nvidia_gpu_exporter, AMD's and Intel's exporters."""

PART_LABELS: Final = ("GPU_I_ID", "gpu_partition_id")
"""What names a part of a card besides: an instance of MIG, a partition of AMD."""

_NOT_LETTERS: Final = re.compile(r"[^a-zA-Z0-9_]")

# OpenTelemetry's own names (semantic conventions, resource `cloud`).
_ALSO_CALLED: Final = {
    "topology.kubernetes.io/zone": ("cloud_availability_zone",),
    "topology.kubernetes.io/region": ("cloud_region",),
}


def domain_labels(node_label: str) -> tuple[str, ...]:
    """Return the series labels that may carry a node label's value, best first.

    `topology.kubernetes.io/zone` is `topology_kubernetes_io_zone` after relabelling by Prometheus,
    `label_topology_kubernetes_io_zone` from kube-state-metrics, `cloud_availability_zone` from OpenTelemetry, and
    `zone` from most exporters.
    """
    sanitised = _NOT_LETTERS.sub("_", node_label)
    short = _NOT_LETTERS.sub("_", node_label.rpartition("/")[2])
    known = _ALSO_CALLED.get(node_label, ())
    return tuple(dict.fromkeys((node_label, sanitised, f"label_{sanitised}", *known, short)))
