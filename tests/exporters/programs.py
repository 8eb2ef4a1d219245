"""The exporters of a cluster of a few nodes, all on this machine: each node has a loopback address of its own."""

from __future__ import annotations

import contextlib
import functools
import os
import shlex
import shutil
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.exporters import chart, sensors
from tests.exporters.consul import ConsulApi
from tests.support.controlplane import ControlPlane
from tests.support.ports import free_port
from tests.support.process import Process

NODES = {"node-1": "127.0.0.2", "node-2": "127.0.0.3", "node-3": "127.0.0.4"}
"""Node -> address."""
SENSORS = {
    "node-1": {sensors.INTEL: ("coretemp", 52.0), sensors.DISK: ("nvme", 95.0)},
    "node-2": {sensors.AMD: ("k10temp", 61.0)},
    "node-3": {sensors.INTEL: ("coretemp", 91.0)},
}
CHECKS = {"node-1": "passing", "node-2": "critical", "node-3": "passing"}
SERVICES = {
    "node-1": {"cart": True, "shop": True},
    "node-2": {"cart": False, "shop": True},
    "node-3-virtual": {"shop": True},
}
FAR_AWAY = "http://127.0.0.9:1/healthz"
"""A probed endpoint of no node, which nobody answers."""

_OWN_MOUNTS = (shutil.which("unshare") or "unshare", "--mount", "--propagation", "private")
# What the kubelet would set for the whole machine: it writes to copies of these.
_KERNEL_SETTINGS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)


@dataclass(frozen=True)
class Exporters:
    """What runs, and where it is scraped: address and port by node, or of the one that serves all."""

    nodes: Mapping[str, str]
    kubelets: Mapping[str, str]
    state_metrics: str
    prober: str
    consul: str
    pushgateway: str

    def scrape_configs(self) -> list[chart.Config]:
        """Return what kube-prometheus-stack would have scraped, with /metrics/resource of the kubelets."""
        pages = [f"http://{address}/" for address in self.nodes.values()]
        return [
            chart.node_exporters(self.nodes),
            *([chart.kubelets(self.kubelets, "/metrics/cadvisor", chart.CADVISOR_DROPS)] if self.kubelets else []),
            *([chart.kubelets(self.kubelets, "/metrics/resource")] if self.kubelets else []),
            chart.state_metrics(self.state_metrics),
            chart.probes(self.prober, "http_2xx", [*pages, FAR_AWAY]),
            chart.probes(self.prober, "tcp_connect", list(self.nodes.values())),
            chart.consul_exporter(self.consul),
            chart.pushgateway(self.pushgateway),
        ]


def may_run_kubelets() -> bool:
    """Whether mounts may be made that only the kubelet sees, and what it cannot do without is there."""
    needed = ("/sys/fs/cgroup", "/dev/kmsg")
    if os.geteuid() != 0 or shutil.which("unshare") is None or not all(Path(one).exists() for one in needed):
        return False
    return subprocess.run([*_OWN_MOUNTS, "true"], stderr=subprocess.DEVNULL).returncode == 0


@contextlib.contextmanager
def running_exporters(
    folder: Path, programs: Path, control_plane: ControlPlane, housekeeping: str
) -> Iterator[Exporters]:
    """Run one of each kind, of node_exporter and the kubelet one a node; they end with the block.

    `housekeeping` is how often the kubelet measures; by default 10 s.
    """
    with ExitStack() as stack:
        run = _Runner(folder, programs, stack)
        consul_api = ConsulApi(CHECKS, SERVICES)
        consul_api.start()
        stack.callback(consul_api.stop)
        kubelets = run.kubelets(housekeeping) if may_run_kubelets() else {}
        exporters = Exporters(
            nodes=run.node_exporters(),
            kubelets=kubelets,
            state_metrics=run.state_metrics(control_plane),
            prober=run.server("blackbox_exporter", f"--config.file={_modules(folder)}"),
            consul=run.server("consul_exporter", f"--consul.server={consul_api.url}"),
            pushgateway=run.server("pushgateway"),
        )
        run.wait_ready()
        yield exporters


class _Runner:
    def __init__(self, folder: Path, programs: Path, stack: ExitStack) -> None:
        self._folder, self._programs, self._stack = folder, programs, stack
        self._awaited: list[tuple[Process, str]] = []

    def server(self, name: str, *flags: str, host: str = "127.0.0.1", port: int | None = None) -> str:
        address = f"{host}:{port or free_port()}"
        self._start(name, [f"--web.listen-address={address}", *flags], f"http://{address}/metrics")
        return address

    def node_exporters(self) -> dict[str, str]:
        port = free_port()
        addresses = {}
        for node, host in NODES.items():
            made = sensors.make_sys(self._folder / f"sys-{node}", SENSORS[node])
            addresses[node] = self.server("node_exporter", f"--path.sysfs={made}", host=host, port=port)
        return addresses

    def state_metrics(self, control_plane: ControlPlane) -> str:
        port = free_port()
        flags = [f"--kubeconfig={control_plane.kubeconfig_path}", "--host=127.0.0.1", f"--port={port}"]
        flags += ["--telemetry-host=127.0.0.1", f"--telemetry-port={free_port()}", "--resources=nodes,pods"]
        self._start("kube-state-metrics", flags, f"http://127.0.0.1:{port}/metrics")
        return f"127.0.0.1:{port}"

    def kubelets(self, housekeeping: str) -> dict[str, str]:
        port = free_port()
        addresses = {}
        for node, host in NODES.items():
            home = self._folder / f"kubelet-{node}"
            for part in ("etc", "lib"):
                (home / part).mkdir(parents=True)
            runtime = f"unix://{home}/cri.sock"
            self._launch([self._programs / "container-runtime", runtime, home], f"runtime-{node}")
            (home / "etc" / "config.yaml").write_text(yaml.safe_dump(_kubelet_config(home, host, port, runtime)))
            command: list[str | Path] = [self._programs / "kubelet", f"--config={home}/etc/config.yaml"]
            command += [f"--root-dir={home}/root", f"--cert-dir={home}/pki", f"--hostname-override={node}"]
            command += [f"--housekeeping-interval={housekeeping}"]
            process = self._launch(_apart(home, command), f"kubelet-{node}")
            self._awaited.append((process, f"https://{host}:{port}/metrics/resource"))
            addresses[node] = f"{host}:{port}"
        return addresses

    def wait_ready(self) -> None:
        for process, url in self._awaited:
            process.wait_ready(functools.partial(_exposes, url), timeout=60.0)

    def _start(self, name: str, flags: list[str], url: str) -> None:
        self._awaited.append((self._launch([self._programs / name, *flags], name), url))

    def _launch(self, argv: list[str | Path], name: str) -> Process:
        process = Process(argv, self._folder / f"{name}.log")
        process.start()
        self._stack.callback(process.stop)
        return process


def _modules(folder: Path) -> Path:
    config = folder / "blackbox.yml"
    modules = {"http_2xx": {"prober": "http", "timeout": "1s"}, "tcp_connect": {"prober": "tcp", "timeout": "1s"}}
    config.write_text(yaml.safe_dump({"modules": modules}))
    return config


def _kubelet_config(home: Path, host: str, port: int, runtime: str) -> dict[str, object]:
    """Return the configuration of a kubelet without an API server, which leaves the machine's cgroups alone."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": host,
        "port": port,
        "healthzPort": 0,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "containerRuntimeEndpoint": runtime,
        "localStorageCapacityIsolation": False,
        "makeIPTablesUtilChains": False,
        "maxOpenFiles": 20000,
        "oomScoreAdj": 0,
        "podLogsDir": str(home / "logs"),
    }


def _apart(home: Path, command: list[str | Path]) -> list[str | Path]:
    """Return the command in mounts of its own, where the kernel's settings are files that it may write.

    So is /var/lib a folder of its own: there goes the socket for device plugins, whatever the kubelet's root is.
    """
    lines = ["set -e", f"mount --bind {shlex.quote(str(home / 'lib'))} /var/lib"]
    for setting in _KERNEL_SETTINGS:
        copy = shlex.quote(str(home / "etc" / setting.replace("/", "-")))
        real = f"/proc/sys/{setting}"
        lines.append(f"if [ -e {real} ]; then cat {real} >{copy}; mount --bind {copy} {real}; fi")
    lines.append(f"exec {shlex.join(map(str, command))}")
    return [*_OWN_MOUNTS, "/bin/sh", "-c", "\n".join(lines)]


def exposed(url: str) -> str:
    """Return a page of metrics.

    Raises
    ------
    OSError
        If it can't be had.
    """
    with urllib.request.urlopen(url, timeout=5, context=_UNVERIFIED) as reply:
        page: bytes = reply.read()
    return page.decode()


def _exposes(url: str) -> bool:
    """Whether a page is there; the kubelet's says whether it has measured yet."""
    try:
        return "resource_scrape_error 1" not in exposed(url)
    except OSError:
        return False


def _unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


_UNVERIFIED = _unverified()


def needs_kubelets(exporters: Exporters) -> None:
    """Skip the test where no kubelet can run."""
    if not exporters.kubelets:
        pytest.skip("kubelets run only as root where mounts may be made: they would set the machine's kernel settings")
