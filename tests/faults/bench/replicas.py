"""Replicas of Vane, each with a line of its own to the API server; one that ends is started again, as by a kubelet."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.faults.bench.servers import Servers
from tests.faults.proxy.tcp import TcpProxy
from tests.support.vane import VaneProcess

LEASE_PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/vane"
ROLES = {"binder": "binder", "refresher_process": "refresher"}


@dataclass
class Replica:
    """One place in the Deployment: its process changes, its line stays."""

    name: str
    vane: VaneProcess
    line: TcpProxy
    is_kept_down: bool = False

    def pids(self) -> list[tuple[str, int]]:
        """Return the role and the process ID of each process."""
        return [(f"{self.name} {_role(pid, self.vane.process.pid)}", pid) for pid in self.vane.pids()]

    def pid(self, role: str) -> int:
        """Return the process of a role: deciding, binder, refresher."""
        return next(pid for name, pid in self.pids() if name.endswith(role))

    def signal(self, number: signal.Signals, *roles: str) -> None:
        """Send a signal to the processes of these roles, to all if none is given."""
        for name, pid in self.pids():
            if not roles or name.rpartition(" ")[2] in roles:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass  # it has ended


@dataclass(frozen=True)
class Ended:
    """A process that ended while nobody had asked the bench to stop it."""

    replica: str
    identity: str
    code: int
    at_s: float


def _role(pid: int, parent: int) -> str:
    if pid == parent:
        return "deciding"
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return "ended"
    return next((role for word, role in ROLES.items() if word in command), "other")


class Replicas:
    """Two replicas, or as many as are asked for."""

    def __init__(
        self,
        servers: Servers,
        folder: Path,
        rules: Sequence[Path],
        flags: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._servers = servers
        self._folder = folder
        self._rules = rules
        self._flags = flags
        self._env = env
        self._api = servers.control_plane.clients()
        self.all: list[Replica] = []
        self.ended: list[Ended] = []
        self.token_file: Path | None = None
        self.ca_file: Path | None = None
        self.own_env: Callable[[str], Mapping[str, str]] = lambda _name: {}
        self._n_started = 0

    def start_one(self) -> Replica:
        line = TcpProxy(self._servers.loop, [self._servers.front.port])
        line.start()
        name = f"replica-{len(self.all)}"
        kubeconfig = self._folder / f"{name}.kubeconfig"
        self._servers.write_kubeconfig(kubeconfig, line.port, token_file=self.token_file, ca_file=self.ca_file)
        replica = Replica(name, self._new(name), line)
        self.all.append(replica)
        replica.vane.start()
        return replica

    def stop(self) -> None:
        for replica in self.all:
            replica.signal(signal.SIGCONT)
            replica.vane.process.kill()
            replica.line.stop()
        for api in self._api:
            api.close()

    def tend(self) -> None:
        """Note who has ended, and start another one in its place."""
        for replica in self.all:
            code = replica.vane.process.returncode
            if code is None or replica.is_kept_down:
                continue
            self.ended.append(Ended(replica.name, replica.vane.identity, code, time.monotonic()))
            replica.vane = self._new(replica.name)
            replica.vane.process.start()

    @property
    def holder(self) -> str:
        """The identity that holds the Lease, "" while nobody does or no API server says so."""
        for api in self._api:
            try:
                return str(api.get(LEASE_PATH)["spec"].get("holderIdentity") or "")
            except Exception:  # noqa: BLE001 - whatever it is, the next one is asked
                continue
        return ""

    def leader(self) -> Replica | None:
        holder = self.holder
        running = (one for one in self.all if one.vane.process.running)
        return next((one for one in running if holder and one.vane.identity == holder), None)

    def logs(self) -> dict[str, str]:
        """Return what each process has written, by its folder."""
        return {path.parent.name: path.read_text(errors="replace") for path in self._folder.glob("*/vane.log")}

    def pids(self) -> list[tuple[str, int]]:
        """Return the role and the process ID of each process of those that run."""
        return [pair for replica in self.all if replica.vane.process.running for pair in replica.pids()]

    def _new(self, name: str) -> VaneProcess:
        folder = self._folder / f"{name}-{self._n_started}"
        self._n_started += 1
        folder.mkdir()
        return VaneProcess(
            folder,
            self._folder / f"{name}.kubeconfig",
            rules=self._rules,
            prometheus=self._servers.prometheus_proxy.url,
            flags=self._flags,
            env={**(self._env or {}), **self.own_env(name)},
            is_audited=False,
        )
