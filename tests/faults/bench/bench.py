"""One row's run: it begins with two well replicas under churn, and ends with a verdict."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tests.faults.bench.churn import Churn
from tests.faults.bench.disk import SmallDisk
from tests.faults.bench.replicas import Replica, Replicas
from tests.faults.bench.servers import Servers
from tests.faults.checker.evidence import UNPLACEABLE, Allowance, Evidence
from tests.faults.checker.judge import Verdict, judge
from tests.faults.checker.processes import Sampler
from tests.faults.checker.requests import Asked, asked_in
from tests.faults.checker.watcher import Watcher
from tests.support.cleanup import clean
from tests.support.manifests import Json
from tests.support.vane import grant_vane

T = TypeVar("T")

PLACED_AFTER_S = 10.0
_LOOK_S = 0.05
_LONGEST_S = 90.0


@dataclass(frozen=True)
class Figure:
    """What was measured, and what it may be; a bound of None is told only."""

    name: str
    value: float
    at_most: float | None = None
    at_least: float | None = None

    @property
    def holds(self) -> bool:
        is_low = self.at_most is None or self.value <= self.at_most
        return is_low and (self.at_least is None or self.value >= self.at_least)

    def __str__(self) -> str:
        bounds = [f"≤ {self.at_most:g}"] if self.at_most is not None else []
        bounds += [f"≥ {self.at_least:g}"] if self.at_least is not None else []
        return f"{self.name}: {self.value:.4g}{' (' + ', '.join(bounds) + ')' if bounds else ''}"


@dataclass(frozen=True)
class Setting:
    """How a row wants its replicas and its churn, and what its fault excuses."""

    n_replicas: int = 2
    flags: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    pods_per_s: float = 10.0
    n_alive: int = 70
    node_every_s: float = 4.0
    allowance: Allowance = field(default_factory=Allowance)
    prepare: Callable[[Path], Mapping[str, str]] = lambda _folder: {}
    """Make what the replicas need in the row's folder, and return further variables of their environment."""
    own_env: Callable[[Path, str], Mapping[str, str]] = lambda _folder, _replica: {}
    """Return variables for one replica alone, by its name."""
    signals: str = ""
    rules: str = ""
    """Lines of the rule file besides those of every row."""
    is_elected: bool = True
    has_token_file: bool = False
    has_own_authorities: bool = False
    """The replicas' file of authorities is `ca.crt` in the row's folder."""
    disk_bytes: int = 0
    """The logs lie on a disk of this size."""
    exits: frozenset[int] = frozenset()
    """The codes with which a replica may end by itself under this fault."""


class RowError(AssertionError):
    """What a row waits for does not come about."""


class Bench:
    """What a row acts on."""

    def __init__(self, servers: Servers, folder: Path, setting: Setting, is_short: bool) -> None:
        self.servers = servers
        self.is_short = is_short
        self.setting = setting
        self.figures: list[Figure] = []
        self.folder = folder
        self.disk = _small_disk(folder, setting.disk_bytes) if setting.disk_bytes else None
        home = self.disk.folder if self.disk else folder
        self.rule_file = folder / "rules.yaml"
        self.admin = servers.control_plane.clients()
        self.api = self.admin[0]
        servers.front.token_of = lambda token: token
        servers.front.calls.clear()
        clean(self.api)
        grant_vane(self.api, "vane")
        self._audits = servers.control_plane.audits_from_now()
        self.churn = Churn(self.admin, self.rule_file, setting.pods_per_s, setting.n_alive, setting.node_every_s)
        self.churn.signals, self.churn.rules = setting.signals, setting.rules
        self.watcher = Watcher(self.admin)
        env = {**setting.env, **setting.prepare(folder)}
        self.replicas = Replicas(servers, home, [self.rule_file], setting.flags, env)
        self.replicas.own_env = lambda replica: setting.own_env(folder, replica)
        if setting.has_token_file:
            self.replicas.token_file = folder / "token"
            self.replicas.token_file.write_text(servers.control_plane.token("vane"))
        if setting.has_own_authorities:
            self.replicas.ca_file = folder / "ca.crt"
            self.replicas.ca_file.write_bytes(servers.control_plane.ca_path.read_bytes())
        self.strict_from_s = math.inf
        self.sampler = Sampler(self.replicas.pids)

    def begin(self) -> None:
        """Start everything, and wait until Pods are placed."""
        self.watcher.start()
        self.churn.prepare()
        for _ in range(self.setting.n_replicas):
            self.replicas.start_one()
        if self.setting.is_elected:
            self.until(self.replicas.leader, 30.0, "a leader")
        self.churn.start()
        self.sampler.start()
        self.until(lambda: len(self.bound()) >= 20, 30.0, "the first Pods")

    def end(self) -> None:
        self.churn.stop()
        self.sampler.stop()
        self.replicas.stop()
        self.watcher.stop()
        for client in self.admin:
            client.close()
        if self.disk is not None:
            self.disk.stop()

    def seconds(self, full: float, short: float) -> float:
        """Return how long something lasts in this form of the row."""
        return short if self.is_short else full

    def last(self, seconds: float) -> None:
        """Let a fault last, while replicas that end are started again."""
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            self.replicas.tend()
            time.sleep(_LOOK_S)

    def until(self, predicate: Callable[[], T], longest_s: float, what: str) -> T:
        """Wait for something true while replicas are tended.

        Raises
        ------
        RowError
            If it does not come about in time.
        """
        until_s = time.monotonic() + longest_s
        while True:
            if value := predicate():
                return value
            if time.monotonic() >= until_s:
                raise RowError(f"{what} did not come about in {longest_s:g} s")
            self.replicas.tend()
            time.sleep(_LOOK_S)

    def leader(self) -> Replica:
        replica = self.until(self.replicas.leader, 40.0, "a leader")
        assert replica is not None
        return replica

    def standby(self) -> Replica:
        leader = self.leader()
        return next(one for one in self.replicas.all if one is not leader)

    def figure(self, name: str, value: float, at_most: float | None = None, at_least: float | None = None) -> None:
        self.figures.append(Figure(name, value, at_most, at_least))

    def pods(self) -> list[Json]:
        """Return the Pods as they are, from the first API server that says so."""
        found = self.churn.ask(lambda server: server.pods("default"))
        return [] if found is None else found

    def placed(self, name: str) -> bool:
        """Whether a Pod has or had a node."""
        return name in self.watcher.bound

    def bound(self) -> list[str]:
        return [pod["metadata"]["name"] for pod in self.pods() if pod["spec"].get("nodeName")]

    def pending(self) -> set[str]:
        """Return the Pods that wait for a node and are not meant to."""
        return {
            pod["metadata"]["name"]
            for pod in self.pods()
            if not pod["spec"].get("nodeName") and UNPLACEABLE not in pod["metadata"].get("labels", {})
        }

    def measure_recovery(self, at_most: Callable[[], float] = lambda: PLACED_AFTER_S) -> None:
        """Wait until what waits now is placed, and hold the time against its bound, which is asked for afterwards."""
        begun_s = time.monotonic()
        waiting = self.pending()
        self.until(lambda: not waiting & self.pending(), _LONGEST_S, f"the placement of {len(waiting)} Pods")
        self.figure("all placed after, s", time.monotonic() - begun_s, at_most=at_most())

    def asked(self) -> list[Asked]:
        """Return what the API servers were asked since the row began."""
        return asked_in(self.servers.control_plane.audit_events(self._audits))

    def bindings(self) -> list[Json]:
        events = self.servers.control_plane.audit_events(self._audits)
        return [event for event in events if event.get("objectRef", {}).get("subresource") == "binding"]

    def settle(self) -> None:
        """Stop the churn, and wait until all is placed and seen."""
        self.churn.stop()
        with contextlib.suppress(RowError):  # the checker says which were forgotten
            self.until(lambda: not self.pending(), 30.0, "the last Pods")
        last = int(self.api.get("/api/v1/pods")["metadata"]["resourceVersion"])
        pods = {pod["metadata"]["name"] for pod in self.pods() if pod["spec"].get("nodeName")}
        with contextlib.suppress(RowError):
            self.until(
                lambda: self.watcher.reached(last) or self.watcher.bound >= pods, 15.0, "the watch of the checker"
            )
        self.last(1.0)  # Events come after their binds

    def verdict(self) -> tuple[Verdict, Evidence]:
        events = self.servers.control_plane.audit_events(self._audits)
        allowance, samples = self.setting.allowance, self.sampler.samples
        evidence = Evidence(self.watcher.history, events, samples, allowance, self.strict_from_s)
        return judge(evidence), evidence


def _small_disk(folder: Path, size_bytes: int) -> SmallDisk:
    try:
        return SmallDisk(folder, size_bytes)
    except TimeoutError as error:
        raise RowError(str(error)) from error


@contextlib.contextmanager
def running(servers: Servers, folder: Path, setting: Setting, is_short: bool) -> Iterator[Bench]:
    bench = Bench(servers, folder, setting, is_short)
    try:
        bench.begin()
        yield bench
    finally:
        servers.mend()
        bench.end()
