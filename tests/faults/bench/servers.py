"""The servers of the bench, each behind a proxy; they are started once for all rows."""

from __future__ import annotations

import contextlib
import json
import ssl
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import urllib3

from tests.e2e.world import CPU_EXPR
from tests.faults.proxy.http import HttpProxy
from tests.faults.proxy.tcp import ProxyLoop, TcpProxy
from tests.support.audit import AuditLog
from tests.support.controlplane import ControlPlane, as_kubeconfig
from tests.support.exporter import NodeExporter
from tests.support.fault_proxy import FaultProxy
from tests.support.kubeapi import ApiError, KubeApi
from tests.support.manifests import Json
from tests.support.ports import free_port
from tests.support.process import Process
from tests.support.prometheus import PrometheusServer
from tests.support.waiting import wait_until

NODES = tuple(f"node-{i:02}" for i in range(16))


class TwoApiServers(ControlPlane):
    """One etcd, two API servers: the second without a watch cache, so that its watches are etcd's own."""

    def __init__(self, programs: Path, folder: Path, loop: ProxyLoop) -> None:
        super().__init__(programs, folder)
        self._loop = loop
        self.second_port = free_port()
        self.second_audit = AuditLog(folder / "second-audit.log")
        self.etcd_lines: list[TcpProxy] = []
        self.apiservers: list[Process] = []
        self._etcd_url = ""

    @property
    def ports(self) -> list[int]:
        return [self.port, self.second_port]

    @property
    def etcd(self) -> Process:
        assert self._etcd is not None
        return self._etcd

    def tls(self) -> ssl.SSLContext:
        """Return what a proxy needs to pass for an API server."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self._serving)
        return context

    def present(self, context: ssl.SSLContext, pem: Path | None) -> None:
        """Let new connections see another certificate, with its key in the same file, or that of the API servers."""
        context.load_cert_chain(*((pem,) if pem else self._serving))

    def clients(self) -> list[KubeApi]:
        """Return the admin's clients of both, past all proxies."""
        token = self.token()
        return [KubeApi(f"https://127.0.0.1:{port}", self.ca_path, token=token) for port in self.ports]

    def audit_events(self, logs: list[AuditLog]) -> list[Json]:
        return [event for log in logs for event in log.events()]

    def audits_from_now(self) -> list[AuditLog]:
        return [self.audit.from_now(), self.second_audit.from_now()]

    def compact(self) -> int:
        """Compact etcd up to now, as it does by itself every few minutes; return the revision."""
        revision = int(self._ask_etcd("kv/range", {"key": "AA=="})["header"]["revision"])
        with contextlib.suppress(OSError):  # it has been compacted up to there
            self._ask_etcd("kv/compaction", {"revision": str(revision), "physical": True})
        return revision

    def restart_etcd(self, between_s: float = 0.0) -> None:
        """Kill etcd, and start it again on the same data."""
        self.etcd.kill()
        time.sleep(between_s)
        self.etcd.start()
        wait_until(self._etcd_answers, 30.0, "etcd")

    def wait_well(self) -> None:
        """Wait until both API servers are ready."""
        for client in self.clients():
            with contextlib.closing(client):
                wait_until(lambda client=client: _is_ready(client), 60.0, "both API servers")  # type: ignore[misc]

    def stop(self) -> None:
        for process in self.apiservers[1:]:
            process.stop()
        super().stop()

    def _start_apiserver(self, etcd_url: str) -> None:
        self._etcd_url = etcd_url
        for _ in range(2):
            line = TcpProxy(self._loop, [int(etcd_url.rpartition(":")[2])])
            line.start()
            self.etcd_lines.append(line)
        urls = [f"http://127.0.0.1:{line.port}" for line in self.etcd_lines]
        super()._start_apiserver(urls[0])
        assert self._apiserver is not None
        uncached = {"watch-cache": "false", "etcd-compaction-interval": "0"}
        second = self._new_apiserver(
            urls[1], self.second_port, self.second_audit.path, "second-apiserver.log", uncached
        )
        second.start()
        self.apiservers = [self._apiserver, second]
        self.wait_well()

    def _ask_etcd(self, path: str, body: Json) -> Json:
        request = urllib.request.Request(f"{self._etcd_url}/v3/{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=10) as answer:
            said: Json = json.load(answer)
            return said

    def _etcd_answers(self) -> bool:
        try:
            self._ask_etcd("kv/range", {"key": "AA=="})
        except OSError:
            return False
        return True


def _is_ready(client: KubeApi) -> bool:
    try:
        client.get("/readyz")
    except (urllib3.exceptions.HTTPError, OSError, ApiError):
        return False
    return True


class Servers:
    """Everything that stands before a row begins.

    A request of a replica goes by its own line (`bench.replicas`) to `front`, where answers are broken, by `balancer`
    to one of the API servers, and by that one's line to etcd.
    """

    def __init__(self, programs: Path, folder: Path) -> None:
        self.folder = folder
        self.loop = ProxyLoop()
        self.control_plane = TwoApiServers(programs, folder / "control-plane", self.loop)
        self.exporter = NodeExporter(NODES)
        for i, name in enumerate(NODES):
            self.exporter.set_cpu(name, 0.1 + 0.02 * i)
        scrapes = [self.exporter.scrape_config()]
        self.prometheus = PrometheusServer(programs, folder / "prometheus", scrapes, scrape_interval="1s")
        self.prometheus_proxy = FaultProxy(self.prometheus.url)

    def start(self) -> None:
        self.loop.start()
        self.control_plane.start()
        self.balancer = TcpProxy(self.loop, self.control_plane.ports)
        self.balancer.start()
        upstream = f"https://127.0.0.1:{self.balancer.port}"
        self.front = HttpProxy(self.loop, upstream, self.control_plane.tls())
        self.front.start()
        self.exporter.start()
        self.prometheus.start()
        self.prometheus_proxy.start()
        wait_until(lambda: len(self.prometheus.query(CPU_EXPR)) == len(NODES), 20.0, "the load of all nodes")

    def stop(self) -> None:
        self.prometheus_proxy.stop()
        self.prometheus.stop()
        self.exporter.stop()
        self.front.stop()
        self.balancer.stop()
        self.control_plane.stop()
        for line in self.control_plane.etcd_lines:
            line.stop()
        self.loop.stop()

    def mend(self) -> None:
        """Let everything be well again; what was stopped runs."""
        self.front.mend()
        self.show_certificate(None)
        self.balancer.upstreams = self.control_plane.ports
        for line in (self.balancer, *self.control_plane.etcd_lines):
            line.heal()
        self.prometheus_proxy.mend()
        if not self.prometheus.process.running:
            self.prometheus.start()
        for process in (self.control_plane.etcd, *self.control_plane.apiservers):
            if not process.running:
                process.start()
        self.control_plane.wait_well()

    def show_certificate(self, pem: Path | None) -> None:
        """Let `front` pass for an API server with another certificate (PEM, with its key); None for its own."""
        assert self.front.tls is not None
        self.control_plane.present(self.front.tls, pem)

    def write_kubeconfig(
        self,
        path: Path,
        port: int,
        token: str | None = None,
        token_file: Path | None = None,
        ca_file: Path | None = None,
    ) -> Path:
        """Write how a replica finds the API server: through the line that listens at a port."""
        user = {"tokenFile": str(token_file)} if token_file else {"token": token or self.control_plane.token("vane")}
        authorities = ca_file or self.control_plane.ca_path
        cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(authorities)}
        path.write_text(as_kubeconfig(cluster, user))
        return path


@contextlib.contextmanager
def started(programs: Path, folder: Path) -> Iterator[Servers]:
    servers = Servers(programs, folder)
    try:
        servers.start()
        yield servers
    finally:
        servers.stop()
