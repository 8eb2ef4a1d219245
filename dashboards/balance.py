"""Is the cluster in balance? What nodes and GPUs really do, from node_exporter and DCGM, beside what Pods request."""

from __future__ import annotations

from typing import Final

from dashboards.panels import CLUSTER, Bars, Dashboard, Line, Panel, Query, Stat, choice, replica_variables

_RATE: Final = "[$__rate_interval]"
_NODE: Final = f'{CLUSTER}, instance=~"$node"'
_BY_NODE: Final = "by (cluster, instance)"

_CPU_USE: Final = f'(1 - avg {_BY_NODE} (rate(node_cpu_seconds_total{{mode="idle", {_NODE}}}{_RATE})))'
_MEMORY_TOTAL: Final = f"sum {_BY_NODE} (node_memory_MemTotal_bytes{{{_NODE}}})"
_MEMORY_USE: Final = f"(1 - sum {_BY_NODE} (node_memory_MemAvailable_bytes{{{_NODE}}}) / {_MEMORY_TOTAL})"
_CORES: Final = f'count(rate(node_cpu_seconds_total{{mode="idle", {_NODE}}}{_RATE}))'
_CORES_USED: Final = f'sum(rate(node_cpu_seconds_total{{mode!~"idle|iowait|steal", {_NODE}}}{_RATE}))'
_MEMORY_USED: Final = f"sum(node_memory_MemTotal_bytes{{{_NODE}}} - node_memory_MemAvailable_bytes{{{_NODE}}})"

# Releases of the exporter name the node `Hostname` or `hostname`.
_GPU_NODE: Final = "cluster, Hostname, hostname"
_GPU_LEGEND: Final = "{{cluster}} {{Hostname}}{{hostname}}"


def _dcgm(metric: str) -> str:
    return f"DCGM_FI_DEV_{metric}{{{CLUSTER}}}"


_FREE: Final = _dcgm("FB_FREE")
_FREE_BESIDE_USERS: Final = f"({_FREE} * ({_dcgm('FB_USED')} > bool 512))"


def _requested(resource: str, by: str = "") -> str:
    """Return what Pods on nodes request of a resource, as Vane's /metrics/resources shows it."""
    return f'sum{by} (kube_pod_resource_request{{<vane>, resource="{resource}", node!=""}})'


def _spread(by_node: str) -> list[Query]:
    return [(f"max({by_node})", "highest"), (f"avg({by_node})", "mean"), (f"min({by_node})", "lowest")]


_NOW: Final[list[Panel]] = [
    Stat(
        "Nodes measured",
        "Nodes for which node_exporter has series.",
        "none",
        [(f"count({_CPU_USE})", "nodes")],
        width=4,
    ),
    Stat(
        "CPU in use",
        "CPU in use as a share of all cores.",
        "percentunit",
        [(f"{_CORES_USED} / {_CORES}", "used")],
        width=4,
    ),
    Stat(
        "CPU requested",
        "CPU requested by Pods on nodes, as a share of all cores.",
        "percentunit",
        [(f"{_requested('cpu')} / {_CORES}", "requested")],
        width=4,
    ),
    Stat(
        "Memory in use",
        "Memory in use as a share of all memory.",
        "percentunit",
        [(f"{_MEMORY_USED} / sum(node_memory_MemTotal_bytes{{{_NODE}}})", "used")],
        width=4,
    ),
    Stat(
        "Memory requested",
        "Memory requested by Pods on nodes, as a share of all memory.",
        "percentunit",
        [(f"{_requested('memory')} / sum(node_memory_MemTotal_bytes{{{_NODE}}})", "requested")],
        width=4,
    ),
    Stat(
        "Hot nodes",
        "Nodes with more than 80 % of their CPU in use.",
        "none",
        [(f"count({_CPU_USE} > 0.8) or vector(0)", "nodes")],
        width=4,
        steps=[(None, "green"), (1, "orange")],
    ),
]

_NODES: Final[list[Panel]] = [
    Line(
        "CPU in use by node",
        "The busiest node, the mean and the idlest node: the closer together, the better the balance.",
        "percentunit",
        _spread(_CPU_USE),
        low=0,
        high=1,
    ),
    Line(
        "Memory in use by node",
        "The fullest node, the mean and the emptiest node.",
        "percentunit",
        _spread(_MEMORY_USE),
        low=0,
        high=1,
    ),
    Line(
        "Spread between nodes",
        "Standard deviation over the nodes: 0 is a perfect balance, 0.5 the worst there is.",
        "percentunit",
        [(f"stddev({_CPU_USE})", "CPU"), (f"stddev({_MEMORY_USE})", "memory")],
        low=0,
    ),
    Bars(
        "Busiest nodes",
        "The ten nodes with the highest CPU use.",
        "percentunit",
        [(f"topk(10, {_CPU_USE})", "{{cluster}} {{instance}}")],
        width=12,
        low=0,
        high=1,
        steps=[(None, "green"), (0.6, "orange"), (0.8, "red")],
    ),
    Bars(
        "Idlest nodes",
        "The ten nodes with the lowest CPU use.",
        "percentunit",
        [(f"bottomk(10, {_CPU_USE})", "{{cluster}} {{instance}}")],
        width=12,
        low=0,
        high=1,
    ),
]

_REQUESTS: Final[list[Panel]] = [
    Line(
        "CPU: total, requested, used",
        "Cores. The gap between requested and used is CPU that is requested but not used.",
        "none",
        [(_CORES, "cores"), (_requested("cpu"), "requested"), (_CORES_USED, "used")],
        low=0,
    ),
    Line(
        "Memory: total, requested, used",
        "The gap between requested and used is memory that is requested but not used.",
        "bytes",
        [
            (f"sum(node_memory_MemTotal_bytes{{{_NODE}}})", "memory"),
            (_requested("memory"), "requested"),
            (_MEMORY_USED, "used"),
        ],
        low=0,
    ),
    Line(
        "CPU requested by node",
        "Cores requested on the node with the most, the mean, and on the node with the least, of nodes with Pods.",
        "none",
        _spread(_requested("cpu", " by (cluster, node)")),
        low=0,
    ),
]

_GPU: Final[list[Panel]] = [
    Stat("GPUs", "Cards with series of the DCGM exporter.", "none", [(f"count({_dcgm('GPU_UTIL')})", "GPUs")], width=6),
    Stat(
        "GPU in use",
        "Mean utilisation of all cards.",
        "percent",
        [(f"avg({_dcgm('GPU_UTIL')})", "used")],
        width=6,
        low=0,
        high=100,
    ),
    Stat(
        "Idle GPUs",
        "Cards below 5 % utilisation.",
        "none",
        [(f"count({_dcgm('GPU_UTIL')} < 5) or vector(0)", "GPUs")],
        width=6,
    ),
    Stat(
        "Fragmentation",
        "The share of the free framebuffer that is on cards with more than 512 MiB in use: an idle card counts 0.",
        "percentunit",
        [(f"sum({_FREE_BESIDE_USERS}) / sum({_FREE})", "fragmented")],
        width=6,
        low=0,
        high=1,
    ),
    Line(
        "GPU in use by node",
        "Mean utilisation of a node's cards. The pack gpu refuses nodes above 90 %.",
        "percent",
        [(f"avg by ({_GPU_NODE}) ({_dcgm('GPU_UTIL')})", _GPU_LEGEND)],
        low=0,
        high=100,
    ),
    Line(
        "Free framebuffer by node",
        "Free framebuffer of all cards of a node together.",
        "mbytes",
        [(f"sum by ({_GPU_NODE}) ({_FREE})", _GPU_LEGEND)],
        low=0,
    ),
    Line(
        "Fragmentation by node",
        "The share of a node's free framebuffer that is on cards already in use. High: a Pod that wants a whole card "
        "finds none, although memory is free.",
        "percentunit",
        [(f"sum by ({_GPU_NODE}) {_FREE_BESIDE_USERS} / sum by ({_GPU_NODE}) ({_FREE})", _GPU_LEGEND)],
        low=0,
        high=1,
    ),
    Line(
        "Hottest GPU by node",
        "The highest core temperature of a node's cards.",
        "celsius",
        [(f"max by ({_GPU_NODE}) ({_dcgm('GPU_TEMP')})", _GPU_LEGEND)],
        width=12,
        low=0,
    ),
    Line(
        "GPU power by node",
        "Power of all cards of a node together.",
        "watt",
        [(f"sum by ({_GPU_NODE}) ({_dcgm('POWER_USAGE')})", _GPU_LEGEND)],
        width=12,
        low=0,
    ),
]

DASHBOARD: Final = Dashboard(
    "vane-balance",
    "Vane / Cluster balance and GPU",
    "Is the load balanced over nodes and GPUs, and do requests match what is used?",
    [*replica_variables(), choice("node", "Node", f"label_values(node_uname_info{{{CLUSTER}}}, instance)")],
    {"Now": _NOW, "Nodes": _NODES, "Requested and used": _REQUESTS, "GPU (DCGM exporter)": _GPU},
)
