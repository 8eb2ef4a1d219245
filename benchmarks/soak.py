"""What long churn leaves behind: memory and descriptors of Vane's processes, from minute to minute.

`python -m benchmarks.soak` starts a real kube-apiserver with 5,000 nodes, a real Prometheus and `vane run`; creates 50
Pods a second of many shapes, deletes the oldest of them, patches nodes, lets nodes come and go and edits rules, for 20
minutes. It prints memory and descriptors of each process each minute, and last how much more there was in the last
fifth of the time than in the second. Needs the programs of `make controlplane`.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import random
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.decide_alone import make_rules
from benchmarks.decide_running import measured, patched
from tests.controlplane.build import ensure_programs
from tests.faults.checker.processes import MIB, Sampler, growths
from tests.support import manifests
from tests.support.controlplane import ControlPlane
from tests.support.kubeapi import ApiError, KubeApi
from tests.support.manifests import Json
from tests.support.vane import VaneProcess, grant_vane
from tests.support.waiting import wait_until

_PODS = "/api/v1/namespaces/default/pods"
_NODE_EVERY_S = 2.0
_RULES_EVERY_S = 30.0
_PATCHES_PER_S = 20.0
_THREADS = 4
_EXPR = "max by (node) (use) + 0.001 * {i}"


@dataclass(frozen=True)
class Load:
    n_nodes: int
    n_rules: int
    pods_per_s: float
    n_alive: int
    minutes: float


def shaped(number: int, chance: random.Random) -> Json:
    """Return a Pod; one of ten has terms or constraints, and labels change as with new versions of a workload."""
    workload = f"app-{chance.randrange(300)}"
    labels = {"app": workload, "pod-template-hash": f"{number // 500:x}"}
    selector = {"matchLabels": {"app": workload}}
    spec: Json = {}
    if number % 10 == 0:
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
        soft = [{"weight": 10, "podAffinityTerm": term}]
        spec = {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": soft}}}
    elif number % 10 == 5:
        constraint = {"maxSkew": 5, "topologyKey": "zone", "labelSelector": selector}
        spec = {"topologySpreadConstraints": [{**constraint, "whenUnsatisfiable": "ScheduleAnyway"}]}
    return manifests.pod(
        f"pod-{number}", cpu="100m", memory="64Mi", labels=labels, scheduler_name="vane", grace=0, spec=spec
    )


def _node(name: str) -> Json:
    return manifests.node(name, cpu="4", labels={"zone": f"zone-{sum(name.encode()) % 10}"})


class Churn:
    """Keeps so many Pods alive of those that come, the youngest."""

    def __init__(self, api: KubeApi, load: Load) -> None:
        self._api = api
        self._load = load
        self._chance = random.Random(1)
        self._alive: deque[str] = deque()
        self._ended = threading.Event()
        self.n_created = 0
        self.n_came_and_went = 0

    @contextlib.contextmanager
    def running(self, edit_rules: Callable[[int], object]) -> Iterator[None]:
        works = [self._pods, self._nodes, lambda: self._rules(edit_rules)]
        threads = [threading.Thread(target=work, daemon=True) for work in works]
        for thread in threads:
            thread.start()
        yield
        self._ended.set()
        for thread in threads:
            thread.join()

    def _pods(self) -> None:
        """Create a second's Pods at a time, and delete as many of the oldest as are too many."""
        due_s = time.monotonic()
        while not self._ended.wait(max(0.0, due_s - time.monotonic())):
            due_s += 0.2
            first, self.n_created = self.n_created, self.n_created + round(self._load.pods_per_s * 0.2)
            pods = [shaped(number, self._chance) for number in range(first, self.n_created)]
            self._api.for_each(lambda pod: self._api.post(_PODS, pod), pods, _THREADS)
            self._alive.extend(pod["metadata"]["name"] for pod in pods)
            surplus = [self._alive.popleft() for _ in range(max(0, len(self._alive) - self._load.n_alive))]
            self._api.for_each(lambda name: self._api.delete_pod(name, grace=0), surplus, _THREADS)

    def _nodes(self) -> None:
        """Delete a node and create it again, now one of those that Pods are on, now a new one."""
        for turn in itertools.count():
            name = f"node-{(turn * 37) % self._load.n_nodes:05}" if turn % 2 else f"extra-{turn}"
            if turn % 2 == 0:
                self._api.post("/api/v1/nodes", _node(name))
            with contextlib.suppress(ApiError):
                self._api.delete(f"/api/v1/nodes/{name}")
            if turn % 2:
                self._api.post("/api/v1/nodes", _node(name))
            self.n_came_and_went += 1
            if self._ended.wait(_NODE_EVERY_S):
                return

    def _rules(self, edit_rules: Callable[[int], object]) -> None:
        for turn in itertools.count():
            edit_rules(self._load.n_rules + turn % 3)
            if self._ended.wait(_RULES_EVERY_S):
                return


def soak(load: Load, folder: Path) -> None:
    programs = ensure_programs()
    names = [f"node-{i:05}" for i in range(load.n_nodes)]
    control_plane = ControlPlane(programs, folder)
    control_plane.start()
    try:
        api = control_plane.client()
        api.create_nodes(map(_node, names))
        grant_vane(api, "vane")
        rules = folder / "rules.yaml"
        rules.write_bytes(make_rules(load.n_rules, _EXPR))
        for part in ("prometheus", "vane"):
            (folder / part).mkdir()
        with measured(programs, folder / "prometheus", names) as prometheus:
            kubeconfig = control_plane.make_kubeconfig("vane")
            vane = VaneProcess(folder / "vane", kubeconfig, [rules], prometheus.url, is_audited=False)
            vane.start(120.0)
            churn = Churn(api, load)
            sampler = Sampler(lambda: [(f"{pid}", pid) for pid in vane.pids()])
            sampler.start()
            with churn.running(lambda n: rules.write_bytes(make_rules(n, _EXPR))), patched(api, names, _PATCHES_PER_S):
                for minute in range(1, round(load.minutes) + 1):
                    time.sleep(60.0)
                    _show_minute(minute, sampler, churn)
            wait_until(lambda: _n_waiting(api) == 0, 60.0, "the last Pods")
            sampler.stop()
            _show_growth(sampler)
            vane.stop()
    finally:
        control_plane.stop()


def _n_waiting(api: KubeApi) -> int:
    return sum(not pod["spec"].get("nodeName") for pod in api.pods("default"))


def _show_minute(minute: int, sampler: Sampler, churn: Churn) -> None:
    last = {one.pid: one for one in sampler.samples[-10:]}
    each = ", ".join(f"{one.rss_bytes / MIB:.1f} MiB {one.n_descriptors} fds" for one in last.values())
    print(f"minute {minute}: {each}; {churn.n_created} Pods, {churn.n_came_and_went} nodes came and went", flush=True)


def _show_growth(sampler: Sampler) -> None:
    for one in growths(sampler.samples):
        print(
            f"process {one.pid}: {one.rss_before_bytes / MIB:.1f} MiB in the second fifth, "
            f"{one.rss_after_bytes / MIB:.1f} in the last ({one.rss_share:+.1%}); "
            f"descriptors {one.n_descriptors_before} and {one.n_descriptors_after}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--rules", type=int, default=10)
    parser.add_argument("--rate", type=float, default=50.0, help="Pods created a second")
    parser.add_argument("--alive", type=int, default=3_000, help="Pods at any time")
    parser.add_argument("--minutes", type=float, default=20.0)
    arguments = parser.parse_args()
    load = Load(arguments.nodes, arguments.rules, arguments.rate, arguments.alive, arguments.minutes)
    with tempfile.TemporaryDirectory() as folder:
        soak(load, Path(folder))


if __name__ == "__main__":
    main()
