"""Makes `data/<pack>.om`: `python -m tests.packs.record`.

Each file holds what the exporters of a pack expose, with their names, labels and units, as Prometheus stores it
after the usual relabelling; long label values are shortened. The loads are chosen so that every verdict of the pack
occurs: `test_verdicts` says which. What another pack has recorded already a pack reads there (`READS`). The docstrings
name the versions that were read; `tests/exporters` scrapes those that are programs of one file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.packs.dcgm import dcgm_labels
from tests.packs.recording import Recording, Values

DATA = Path(__file__).parent / "data"
GIB = 2.0**30

# Node, zone, address. Nobody measures node-6 itself.
NODES = (
    ("node-1", "zone-a", "10.0.0.1"),
    ("node-2", "zone-a", "10.0.0.2"),
    ("node-3", "zone-b", "10.0.0.3"),
    ("node-4", "zone-b", "10.0.0.4"),
    ("node-5", "zone-c", "10.0.0.5"),
    ("node-6", "zone-c", "10.0.0.6"),
)

# By `instance`, in both ways that a node is named there: parts of the CPU time and of 16 GiB in use.
UTILISATION = {
    "node-1": (0.25, 0.25),
    "node-2": (0.85, 0.4),
    "node-3": (0.0, 0.85),
    "10.0.0.4:9100": (0.5, 0.5),
    "node-5": (0.78, 0.1),
}
# How the busy part of the CPU time is spent.
MODES = {"user": 0.7, "system": 0.2, "softirq": 0.06, "iowait": 0.03, "irq": 0.01, "nice": 0.0, "steal": 0.0}

# Envoy's and Linkerd's buckets in milliseconds, and those that OpenTelemetry recommends in seconds.
ISTIO_MS = "0.5 1 5 10 25 50 100 250 500 1000 2500 5000 10000 30000 60000 300000 600000 1800000 3600000".split()
LINKERD_MS = "1 2 3 4 5 10 20 30 40 50 100 200 300 400 500 1000 2000 3000 4000 5000 10000 20000 30000".split()
OTEL_S = "0.005 0.01 0.025 0.05 0.075 0.1 0.25 0.5 0.75 1 2.5 5 7.5 10".split()
# Requests a second by the bucket that they end in: the 99th percentile lies in the middle of the slower one.
ISTIO_REQUESTS = {
    "zone-a": {"50": 98.0, "100": 2.0},
    "zone-b": {"250": 98.0, "500": 2.0},
    "zone-c": {"1000": 98.0, "2500": 2.0},
}
OTEL_REQUESTS: dict[str, dict[str, float]] = {
    "zone-a": {"0.075": 98.0, "0.1": 2.0},
    "zone-b": {"0.25": 98.0, "0.5": 2.0},
    "zone-c": {},
}

# Where the one Pod of each zone runs, and what a Deployment of Linkerd's serves on other nodes.
SERVING = {"zone-a": "node-1", "zone-b": "node-3", "zone-c": "node-5"}
LINKERD_REQUESTS = {
    "node-2": {"40": 98.0, "50": 2.0},
    "node-4": {"200": 98.0, "300": 2.0},
    "node-6": {"500": 98.0, "1000": 2.0},
}

# Seconds from zone to zone; 0 is a probe without an answer.
ROUND_TRIPS = {
    ("zone-a", "zone-a"): 0.0005,
    ("zone-b", "zone-a"): 0.01,
    ("zone-c", "zone-a"): 0.055,
    ("zone-a", "zone-b"): 0.01,
    ("zone-b", "zone-b"): 0.0004,
    ("zone-c", "zone-b"): 0.0,
}

# Cores that Pods on a node of 4 ask for; those of Pods that have ended are told apart by their phase alone.
REQUESTED_CORES = {"node-1": 2.6, "node-2": 3.4, "node-3": 2.4, "node-4": 3.2, "node-5": 2.4}

# Node, the label that names it, and its cards: utilisation in percent, framebuffer used and free in MiB.
GPUS = (
    ("node-1", "Hostname", ((0, 4, 81_033), (0, 4, 81_033))),
    ("node-2", "node", ((91, 60_000, 21_037), (91, 60_000, 21_037))),
    ("node-3", "instance", ((100, 40_000, 41_037), (0, 4, 81_033), (0, 4, 81_033), (0, 4, 81_033))),
    ("node-4", "hostname", ((90, 80_537, 500), (90, 80_537, 500))),
    ("node-5", "hostname", ((0, 1, 22_563),)),
)

# Watts of the package; the other zones of the processor overlap with it.
WATTS = {"node-1": 100.0, "node-2": 300.0, "node-3": 450.0, "node-4": 40.0}

# By `instance`: chip, sensor, degrees.
SENSORS = {
    "node-1": (
        ("platform_coretemp_0", "temp1", 65.0),
        ("platform_coretemp_0", "temp2", 61.0),
        ("nvme_nvme0", "temp1", 95.0),
    ),
    "node-2": (("platform_coretemp_0", "temp1", 92.0), ("platform_coretemp_1", "temp1", 70.0)),
    "node-3": (("pci0000:00_0000:00:18_3", "temp1", 40.0),),
    "10.0.0.4:9100": (("pci0000:00_0000:00:18_3", "temp1", 60.0), ("pci0000:00_0000:00:19_3", "temp1", 85.0)),
}
BLANK = 9_223_372_036_854_775_794.0
"""What DCGM shows where a card does not answer."""
GPU_DEGREES = (
    ("node-1", "Hostname", (62.5, 55.0)),
    ("node-2", "node", (70.0, 86.0)),
    ("node-3", "Hostname", (BLANK,)),
    ("node-4", "hostname", (40.0,)),
)

# Share of good probes by target: nodes by address or name, and what is no node.
PROBES = {
    "http://10.0.0.1:10256/healthz": 1.0,
    "http://10.0.0.2:10256/healthz": 1.0,
    "10.0.0.2:10250": 0.0,
    "10.0.0.3:10250": 0.75,
    "node-4": 1.0,
    "https://shop.example.com/": 0.0,
}
CONSUL_NODES = {"node-1": "passing", "node-2": "passing", "node-3": "critical", "node-4": "warning"}
CONSUL_SERVICES = {
    "node-1": (1, 1, 1, 1),
    "node-2": (1, 1, 1, 0),
    "node-4": (1, 0, 0, 0),
    "node-5-virtual": (1, 0),
}

PHASE_S = 330.0
BURN_RATES = (0.5, 6.0, 10.2, 30.0)
"""How fast the error budget burns in one phase after the other; the last one ends with the recording."""
ERROR_SHARES = {"zone-a": 0.0, "zone-b": 0.2, "zone-c": 0.8}
"""Which part of the errors each zone makes; each has 100 of the 300 requests a second."""
BUDGET = 0.001


def node_utilisation() -> Recording:
    """node_exporter 1.12.1: five minutes of CPU times and memory, two CPUs a node."""
    recording = Recording(length_s=300)
    for instance, (cpu_use, memory_use) in UTILISATION.items():
        target = {"instance": instance, "job": "node-exporter"}
        for cpu in ("0", "1"):
            shares = {mode: cpu_use * share for mode, share in MODES.items()} | {"idle": 1.0 - cpu_use}
            for mode, share in shares.items():
                labels = {"cpu": cpu, **target, "mode": mode}
                recording.counter("node_cpu_seconds_total", labels, share, start=1_000.0 * share)
        recording.gauge("node_memory_MemTotal_bytes", target, 16 * GIB)
        recording.gauge("node_memory_MemAvailable_bytes", target, 16 * GIB * (1.0 - memory_use))
    return recording


def service_latency() -> Recording:
    """Istio's and OpenTelemetry's histograms of one Pod in each zone, five minutes, one sample each."""
    recording = Recording(length_s=300, step_s=60)
    for zone, requests in ISTIO_REQUESTS.items():
        labels = istio_labels(zone, "200")
        recording.histogram("istio_request_duration_milliseconds", labels, ISTIO_MS, requests)
    for zone, requests in OTEL_REQUESTS.items():
        labels = {
            "cloud_availability_zone": zone,
            "http_request_method": "GET",
            "http_response_status_code": "200",
            "http_route": "/cart",
            "instance": f"checkout-{zone}",
            "job": "shop/checkout",
            "k8s_namespace_name": "shop",
            "k8s_node_name": SERVING[zone],
            "service_name": "checkout",
            "url_scheme": "http",
        }
        recording.histogram("http_server_request_duration_seconds", labels, OTEL_S, requests)
    return recording


def istio_labels(zone: str, code: str) -> dict[str, str]:
    """Return the labels of a sidecar's metrics; the zone and the node were added when it was scraped."""
    return {
        "connection_security_policy": "mutual_tls",
        "destination_canonical_service": "checkout",
        "destination_service": "checkout.shop.svc.cluster.local",
        "destination_service_name": "checkout",
        "destination_service_namespace": "shop",
        "destination_workload": "checkout",
        "destination_workload_namespace": "shop",
        "node": SERVING[zone],
        "pod": f"checkout-{zone}",
        "reporter": "destination",
        "request_protocol": "http",
        "response_code": code,
        "response_flags": "-",
        "topology_kubernetes_io_zone": zone,
    }


def workload_latency() -> Recording:
    """Linkerd's histograms of the Pods of one Deployment, five minutes, inbound and outbound."""
    recording = Recording(length_s=300, step_s=60)
    for node, requests in LINKERD_REQUESTS.items():
        labels = {"deployment": "web", "job": "linkerd-proxy", "namespace": "shop", "node": node, "pod": f"web-{node}"}
        recording.histogram("response_latency_ms", {**labels, "direction": "inbound"}, LINKERD_MS, requests)
        recording.histogram("response_latency_ms", {**labels, "direction": "outbound"}, LINKERD_MS, {"1": 100.0})
    return recording


def zone_latency() -> Recording:
    """blackbox_exporter 0.27.0: pings from zone to zone, one minute."""
    recording = Recording(length_s=60)
    for (source, target), seconds in ROUND_TRIPS.items():
        labels = {
            "destination_zone": target,
            "instance": f"gateway-{target}",
            "job": f"zone-latency-{source}",
            "source_zone": source,
        }
        for phase, share in (("resolve", 0.1), ("rtt", 1.0), ("setup", 0.2)):
            recording.gauge("probe_icmp_duration_seconds", {**labels, "phase": phase}, seconds * share)
    return recording


# What cAdvisor tells of whole nodes, and of a Pod and its containers: labels, and the share of the node's load.
GROUPS = (({"id": "/"}, 1.0), ({"id": "/kubepods.slice"}, 0.8))
POD = {"id": "/kubepods.slice/pod1", "namespace": "shop", "pod": "web-1"}
CONTAINERS = (
    (POD, 1.0),
    ({**POD, "id": "/kubepods.slice/pod1/1", "container": "main", "image": "example.com/web:1"}, 0.75),
    ({**POD, "id": "/kubepods.slice/pod1/2", "container": "proxy", "image": "example.com/proxy:1"}, 0.25),
)


def kubelet() -> Recording:
    """The kubelet 1.37.1 and kube-state-metrics 2.15.0, four minutes: the loads of node_utilisation.

    Of node-4 there is /metrics/resource, and of node-5 what kube-prometheus-stack keeps of cAdvisor.
    """
    recording = Recording(length_s=240)
    for node, use in zip((name for name, _, _ in NODES), UTILISATION.values(), strict=False):
        cpu_use, memory_use = use
        target = {"instance": f"{node}:10250", "job": "kubelet", "metrics_path": "/metrics/cadvisor", "node": node}
        if node == "node-4":
            target |= {"metrics_path": "/metrics/resource"}
            recording.counter("node_cpu_usage_seconds_total", target, 4.0 * cpu_use)
            recording.gauge("node_memory_working_set_bytes", target, 16 * GIB * memory_use)
        for labels, share in () if node == "node-4" else CONTAINERS if node == "node-5" else GROUPS:
            said = {**target, **labels}
            recording.counter("container_cpu_usage_seconds_total", {**said, "cpu": "total"}, 4.0 * cpu_use * share)
            recording.gauge("container_memory_working_set_bytes", said, 16 * GIB * memory_use * share)
        for resource, unit, amount in (("cpu", "core", 4.0), ("memory", "byte", 16 * GIB)):
            labels = {"job": "kube-state-metrics", "node": node, "resource": resource, "unit": unit}
            recording.gauge("kube_node_status_capacity", labels, amount)
    return recording


def batch_on_slack() -> Recording:
    """kube-state-metrics 2.15.0, four minutes: two Pods on each node, one of which has ended."""
    recording = Recording(length_s=240)
    scraped = {"instance": "10.1.0.9:8080", "job": "kube-state-metrics"}
    for node, cores in REQUESTED_CORES.items():
        for resource, unit, amount in (("cpu", "core", 4.0), ("memory", "byte", 16 * GIB)):
            labels = {**scraped, "node": node, "resource": resource, "unit": unit}
            recording.gauge("kube_node_status_allocatable", labels, amount)
        for name, phase, shares in (("web", "Running", (0.75, 0.25)), ("migration", "Succeeded", (0.5,))):
            pod = {**scraped, "namespace": "shop", "pod": f"{name}-{node}"}
            for i, share in enumerate(shares):
                labels = {**pod, "container": f"c{i}", "node": node, "resource": "cpu", "unit": "core"}
                recording.gauge("kube_pod_container_resource_requests", labels, cores * share)
            for one in ("Failed", "Pending", "Running", "Succeeded", "Unknown"):
                recording.gauge("kube_pod_status_phase", {**pod, "phase": one}, float(one == phase))
    return recording


def gpu() -> Recording:
    """dcgm-exporter's default counters, two minutes; releases up to 4.5 say `Hostname`, later ones `hostname`.

    Where either is the name of the exporter's Pod, a label `node` or the address names the node.
    """
    recording = Recording(length_s=120)
    for node, label, cards in GPUS:
        for i, (utilisation, used_mib, free_mib) in enumerate(cards):
            labels = dcgm_labels(node, label, i)
            if used_mib > 512:
                labels |= {
                    "exported_container": "train",
                    "exported_namespace": "ml",
                    "exported_pod": f"train-{node}-{i}",
                }
            recording.gauge("DCGM_FI_DEV_GPU_UTIL", labels, utilisation)
            recording.gauge("DCGM_FI_DEV_FB_USED", labels, used_mib)
            recording.gauge("DCGM_FI_DEV_FB_FREE", labels, free_mib)
    return recording


def energy() -> Recording:
    """Kepler 0.10 and later, three minutes: the zones of the processor and what the node used of it.

    Names and labels are those of its docs/user/metrics.md at commit 1d73b32f70b9.
    """
    recording = Recording(length_s=180)
    for node, watts in WATTS.items():
        target = {"instance": f"kepler-{node}", "job": "kepler", "node_name": node}
        for zone, path, part in (("package", "", 1.0), ("core", ":0", 0.6), ("dram", ":1", 0.2)):
            labels = {**target, "path": f"/sys/class/powercap/intel-rapl:0{path}", "zone": zone}
            recording.gauge("kepler_node_cpu_watts", labels, watts * part)
            recording.counter("kepler_node_cpu_joules_total", labels, watts * part, start=10_000.0)
        recording.gauge("kepler_node_cpu_usage_ratio", target, watts / 500.0)
    return recording


def temperature() -> Recording:
    """The sensors of node_exporter 1.12.1, and dcgm-exporter's cards as in `gpu`, one minute."""
    recording = Recording(length_s=60)
    for instance, sensors in SENSORS.items():
        for chip, sensor, degrees in sensors:
            labels = {"chip": chip, "instance": instance, "job": "node-exporter", "sensor": sensor}
            recording.gauge("node_hwmon_temp_celsius", labels, degrees)
    for node, label, cards in GPU_DEGREES:
        for i, degrees in enumerate(cards):
            recording.gauge("DCGM_FI_DEV_GPU_TEMP", dcgm_labels(node, label, i), degrees)
    return recording


def service_health() -> Recording:
    """The probes of blackbox_exporter 0.27.0 and the checks of consul_exporter 0.13.0, two minutes."""
    recording = Recording(length_s=120)
    for target, share in PROBES.items():
        labels = {"instance": target, "job": "blackbox"}
        recording.add("probe_success", labels, _succeeding(share))
        recording.gauge("probe_duration_seconds", labels, 0.012)
    scraped = {"instance": "consul-exporter:9107", "job": "consul-exporter"}
    for node, status in CONSUL_NODES.items():
        for one in ("critical", "maintenance", "passing", "warning"):
            labels = {**scraped, "check": "serfHealth", "node": node, "status": one}
            recording.gauge("consul_health_node_status", labels, float(one == status))
    for node, services in CONSUL_SERVICES.items():
        for i, is_healthy in enumerate(services):
            labels = {**scraped, "node": node, "service_id": f"shop-{node}-{i}", "service_name": "shop"}
            recording.gauge("consul_catalog_service_node_healthy", labels, is_healthy)
    return recording


def _succeeding(share: float) -> Values:
    """Return probes of which every fourth fails at a share of 0.75, and so on."""
    return lambda time: float(time / 15.0 % 4.0 < 4.0 * share)


def slo_burn() -> Recording:
    """Istio's requests of one Pod in each zone, while the error budget burns faster from phase to phase."""
    recording = Recording(length_s=PHASE_S * len(BURN_RATES), step_s=30)
    for zone, share in ERROR_SHARES.items():
        bad = [300.0 * BUDGET * rate * share for rate in BURN_RATES]
        recording.add("istio_requests_total", istio_labels(zone, "200"), _in_phases([100.0 - rate for rate in bad]))
        if share:
            recording.add("istio_requests_total", istio_labels(zone, "503"), _in_phases(bad))
    return recording


def _in_phases(rates: list[float]) -> Values:
    """Return a counter that grows at another rate in each phase."""
    return lambda time: sum(rate * min(max(time - i * PHASE_S, 0.0), PHASE_S) for i, rate in enumerate(rates))


RECORDINGS: dict[str, Callable[[], Recording]] = {
    "batch-on-slack": batch_on_slack,
    "energy": energy,
    "gpu": gpu,
    "kubelet": kubelet,
    "node-utilisation": node_utilisation,
    "service-health": service_health,
    "service-latency": service_latency,
    "slo-burn": slo_burn,
    "temperature": temperature,
    "workload-latency": workload_latency,
    "zone-latency": zone_latency,
}
READS = {
    "batch-on-slack": ("batch-on-slack", "kubelet"),
    "gpu-cards": ("gpu",),
    "workload-latency": ("workload-latency", "service-latency"),
}
"""What a pack reads where it is not just the recording of its name."""


def recordings_of(pack: str) -> tuple[str, ...]:
    """Return the names of the recordings that hold what a pack asks for; none where it asks for nothing."""
    return READS.get(pack, (pack,) if pack in RECORDINGS else ())


def main() -> None:
    DATA.mkdir(exist_ok=True)
    for pack, record in RECORDINGS.items():
        (DATA / f"{pack}.om").write_text(record().text())


if __name__ == "__main__":
    main()
