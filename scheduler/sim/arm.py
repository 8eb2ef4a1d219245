"""An arm: one embedded API server, one embedded Prometheus, one unmodified `vane run`, and the nodes of one world."""

from __future__ import annotations

import enum
import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from scheduler.evaluator.server import PrometheusServer
from scheduler.evaluator.store import SeriesStore
from scheduler.sim import nodes, workloads
from scheduler.sim.apiserver.resources import EVENTS, NAMESPACES, NODES, PODS
from scheduler.sim.apiserver.server import ApiServer, kubeconfig
from scheduler.sim.apiserver.store import ObjectStore
from scheduler.sim.exporters import Exporters
from scheduler.sim.kubelet import Kubelets
from scheduler.sim.law import Shift
from scheduler.sim.scheduler_process import SchedulerPages, SchedulerProcess
from scheduler.sim.statistics import Ledger
from scheduler.sim.workloads import Arrival
from scheduler.sim.world import NodeState, SimWorld, noise

Json = dict[str, Any]

RULES: Final = Path(__file__).with_name("rules")
HOST: Final = "127.0.0.1"

_RETENTION_S: Final = 120.0


class Feed(enum.Enum):
    """What the rules of an arm are given to read."""

    RULES = "with rules"
    NONE = "without rules"
    NOISE = "rules fed noise"


@dataclass(frozen=True, slots=True)
class TourPlan:
    """What is the same in every arm of one run: the seed, the Pods to come, and the shift of load."""

    seed: int
    arrivals: Sequence[Arrival]
    shift: Shift


class Arm:
    """Starts, moves on and stops everything of one arm; belongs to the event loop.

    Parameters
    ----------
    folder
        Where its kubeconfig, its copy of the rules and the scheduler's log are written.
    clock
        Seconds since 1970, without steps.
    """

    def __init__(self, feed: Feed, plan: TourPlan, folder: Path, clock: Callable[[], float]) -> None:
        self.feed = feed
        self.folder = folder
        self.rule_file = folder / "rules" / "demo.yaml"
        self.kubeconfig = folder / "kubeconfig"
        self.failures: dict[str, str] = {}
        self.ledger = Ledger()
        self._seed = plan.seed
        self._clock = clock
        self._world = SimWorld(nodes.make_nodes(), plan.seed, plan.shift)
        self.states: list[NodeState] = self._world.states(0.0)
        self.store = ObjectStore(now=clock, uid=_uids(plan.seed))
        self._series = SeriesStore(retention_s=_RETENTION_S)
        self._exporters = Exporters(self._series.append)
        self._plans = {arrival.name: arrival for arrival in plan.arrivals}
        self._api = ApiServer(self.store)
        self._prometheus: PrometheusServer | None = None
        self._prometheus_port = 0
        self._kubelets: Kubelets | None = None
        self.scheduler: SchedulerProcess | None = None
        self.pages: SchedulerPages | None = None
        self.url = ""

    async def start(self, environ: Mapping[str, str], port: int = 0) -> None:
        """Start all of it, the API server on this port; the scheduler needs some seconds more until `is_ready`."""
        self.url = await self._api.start(host=HOST, port=port)
        self._write_files()
        self.store.create(NAMESPACES, {"metadata": {"name": workloads.NAMESPACE}})
        for node in self._world.nodes:
            self.store.create(NODES, nodes.manifest(node))
        self.store.subscribe(EVENTS, self._event)
        self._kubelets = Kubelets(self.store, self._world, self.ledger, self._clock, self._plans)
        await self.open_prometheus()
        url = f"http://{HOST}:{self._prometheus_port}"
        rules = None if self.feed is Feed.NONE else self.rule_file.parent
        self.scheduler = SchedulerProcess(self.folder / "vane.log", self.kubeconfig, rules, url)
        self.pages = SchedulerPages(self.scheduler.port)
        await self.scheduler.start(environ)

    def _write_files(self) -> None:
        if self.feed is not Feed.NONE:
            self.rule_file.parent.mkdir()
            shutil.copy(RULES / "demo.yaml", self.rule_file)
        self.kubeconfig.write_text(kubeconfig(self.url))

    async def is_ready(self) -> bool:
        if self.scheduler is None or self.pages is None:
            return False
        self.scheduler.check()
        return await self.pages.is_ready()

    async def stop(self) -> None:
        """Stop what runs; may be called at any time, also after a start that failed."""
        if self.pages is not None:
            await self.pages.close()
        if self._kubelets is not None:
            self._kubelets.stop()
        if self.scheduler is not None:
            await self.scheduler.stop()
        await self.close_prometheus()
        await self._api.stop()

    async def close_prometheus(self) -> None:
        """Take "Prometheus" away: nobody listens on its port any more, and nothing is scraped."""
        if self._prometheus is not None:
            server, self._prometheus = self._prometheus, None
            await server.stop()

    async def open_prometheus(self) -> None:
        self._prometheus = PrometheusServer(self._series, self._clock)
        url = await self._prometheus.start(host=HOST, port=self._prometheus_port)
        self._prometheus_port = int(url.rstrip("/").rpartition(":")[2])

    @property
    def is_prometheus_up(self) -> bool:
        return self._prometheus is not None

    def arrive(self, arrival: Arrival) -> None:
        pod = self.store.create(PODS, workloads.manifest(arrival))
        self.ledger.created(pod["metadata"]["uid"], self._clock())

    def beat(self, at_s: float, elapsed_s: float, is_counted: bool) -> None:
        """Move the world on to `at_s` after the tour's start, and scrape it, as far as Prometheus is up."""
        self.states = self._world.states(at_s)
        if is_counted:
            self.ledger.lasted(self.states, elapsed_s)
        shown = noise(self.states, at_s, self._seed) if self.feed is Feed.NOISE else self.states
        self._exporters.count(shown, elapsed_s)
        if self.is_prometheus_up:
            self._exporters.write(shown, self._clock())

    def waiting(self) -> int:
        """Return how many Pods have no node."""
        return sum(1 for pod in self.store.list(PODS) if not pod["spec"].get("nodeName"))

    def _event(self, _type: str, event: Json) -> None:
        """Keep what the scheduler last said of a Pod that it could not place."""
        name = event.get("involvedObject", {}).get("name", "")
        if event.get("reason") == "FailedScheduling":
            self.failures[name] = str(event.get("message", ""))
        elif event.get("reason") == "Scheduled":
            self.failures.pop(name, None)


def _uids(seed: int) -> Callable[[], str]:
    """Return a maker of version 4 UUIDs that depend on the seed alone."""
    count = 0

    def make() -> str:
        nonlocal count
        count += 1
        digits = hashlib.blake2b(f"{seed} {count}".encode(), digest_size=16).hexdigest()
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"

    return make
