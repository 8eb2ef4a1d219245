"""How kube-prometheus-stack has the exporters of a cluster scraped: its endpoints as scrape configs.

Read from values.yaml of prometheus-community/helm-charts at commit 001f3a6d7d24, 2025; the file does not say the
chart's version, which is one of those that scrape cAdvisor every 10 s unless `kubelet.serviceMonitor.interval` is
written. As the packs ask, `kubelet.serviceMonitor.resource` is on. Where the chart finds targets by the API, here are
those that the tests name, with the labels that the operator gives them. blackbox_exporter, consul_exporter and
pushgateway are not in the chart: the first is scraped as the operator does it for a Probe, the others as their own
charts say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

Config = dict[str, Any]
Targets = Mapping[str, str]
"""Address and port by what the target is on: a node, or the Pod that serves there."""

_PATH_LABEL: Final = {"action": "replace", "source_labels": ["__metrics_path__"], "target_label": "metrics_path"}
_USELESS: Final = (
    "container_cpu_(cfs_throttled_seconds_total|load_average_10s|system_seconds_total|user_seconds_total)",
    "container_fs_(io_current|io_time_seconds_total|io_time_weighted_seconds_total|reads_merged_total"
    "|sector_reads_total|sector_writes_total|writes_merged_total)",
    "container_memory_(mapped_file|swap)",
    "container_(file_descriptors|tasks_state|threads_max)",
    "container_spec.*",
)
CADVISOR_DROPS: Final[tuple[Config, ...]] = (
    *({"action": "drop", "source_labels": ["__name__"], "regex": regex} for regex in _USELESS),
    {
        "action": "drop",
        "source_labels": ["__name__", "scope"],
        "regex": "container_memory_failures_total;hierarchy",
    },
    {
        "action": "drop",
        "source_labels": ["__name__", "interface"],
        "regex": "container_network_.*;(cali|cilium|cni|lxc|nodelocaldns|tunl).*",
    },
    # With this go the cgroups without a Pod, the root among them.
    {"action": "drop", "source_labels": ["id", "pod"], "regex": ".+;"},
)


def node_exporters(targets: Targets) -> Config:
    """A DaemonSet on the network of its nodes; `instance` is the node's address and port, no label names the node."""
    job = "node-exporter"
    static = [_served(address, job, "monitoring", f"{job}-{node}") for node, address in targets.items()]
    return {"job_name": job, "static_configs": static}


def kubelets(targets: Targets, path: str, dropped: Sequence[Config] = ()) -> Config:
    """A page of all kubelets; the operator keeps a Service of their nodes, so that `node` names them."""
    static = []
    for node, address in targets.items():
        labels = {"job": "kubelet", "namespace": "kube-system", "service": "kubelet", "endpoint": "https-metrics"}
        static.append({"targets": [address], "labels": {**labels, "node": node}})
    return {
        "job_name": f"kubelet{path}",
        "scheme": "https",
        "metrics_path": path,
        "honor_labels": True,
        "honor_timestamps": True,
        "track_timestamps_staleness": True,
        "tls_config": {"insecure_skip_verify": True},
        "static_configs": static,
        "relabel_configs": [_PATH_LABEL],
        "metric_relabel_configs": list(dropped),
    }


def state_metrics(address: str) -> Config:
    static = [_served(address, "kube-state-metrics", "monitoring", "kube-state-metrics-0")]
    return {"job_name": "kube-state-metrics", "honor_labels": True, "static_configs": static}


def probes(prober: str, module: str, targets: Sequence[str]) -> Config:
    """A Probe object with these targets, asked by blackbox_exporter at `prober`."""
    return {
        "job_name": f"probe/{module}",
        "metrics_path": "/probe",
        "params": {"module": [module]},
        "static_configs": [{"targets": list(targets), "labels": {"job": "nodes", "namespace": "monitoring"}}],
        "relabel_configs": [
            {"source_labels": ["__address__"], "target_label": "__param_target"},
            {"source_labels": ["__param_target"], "target_label": "instance"},
            {"target_label": "__address__", "replacement": prober},
        ],
    }


def consul_exporter(address: str) -> Config:
    return {
        "job_name": "consul",
        "static_configs": [_served(address, "consul-exporter", "consul", "consul-exporter-0")],
    }


def pushgateway(address: str) -> Config:
    static = [_served(address, "pushgateway", "monitoring", "pushgateway-0")]
    return {"job_name": "pushgateway", "honor_labels": True, "static_configs": static}


def n_targets(configs: Sequence[Config]) -> int:
    return sum(len(group["targets"]) for config in configs for group in config["static_configs"])


def _served(address: str, job: str, namespace: str, pod: str) -> Config:
    """A target behind a Service, with the labels that the operator gives to one of a ServiceMonitor."""
    where = {"namespace": namespace, "service": job, "endpoint": "http-metrics"}
    return {"targets": [address], "labels": {"job": job, **where, "pod": pod, "container": job}}
