"""Vane beside kube-scheduler and the bare limit, on one API server, turn by turn.

`python -m benchmarks.race` starts a real etcd and kube-apiserver and lets the competitors take turns: limit,
kube-scheduler, Vane, and again. In a turn Pods (100m, 500Mi) are created while nobody runs who would take them; then
the competitor is started, finds them in its first list and binds them. A fifth of the binds is left to its warm-up,
the others count: binds a second until the last bind, CPU time of all its processes until the last Event is written.
Then Pods are created at a steady rate, each of which counts from the request that creates it to the answer to its
bind. It is stopped before the next turn, and Pods and Events are deleted. All times are the API server's, from its
audit log.

After the plain Pods come those of other kinds (`benchmarks.race_kinds`), on the most nodes. At the end of each turn it
is looked whether every Pod has a node, one where its kind allows it; who breaks a rule ends the race.

Needs the programs of `make controlplane`; `--write` renews RESULTS.json and RESULTS.md.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.competitors import NAMESPACE, VANE_USER, Competitor, KubeScheduler, Limit, Vane
from benchmarks.race_kinds import KINDS, PLAIN, check, node, pod
from benchmarks.race_report import Burst, Steady, Turn, table, table_of_kinds, write
from benchmarks.timeline import AUDIT_POLICY, Timeline
from benchmarks.usage import CpuSampler, memory
from tests.controlplane.build import ensure_programs
from tests.support.controlplane import ControlPlane
from tests.support.manifests import Json
from tests.support.vane import grant_vane
from tests.support.waiting import wait_until

# The API server turns nobody away: kube-scheduler's requests, unthrottled, would else be sent back by the hundred.
_API_SERVER_FLAGS = {
    "enable-priority-and-fairness": "false",
    "max-requests-inflight": "0",
    "max-mutating-requests-inflight": "0",
}
_SERVERS = ("etcd", "kube-apiserver")
_TIMEOUT_S = 300.0
_WARM_UP = 0.2
"""This part of the backlog is bound while a competitor is still starting: processes, connections, caches."""
_LAST_EVENTS_S = 3.0
_REST_S = 2.0


@dataclass(frozen=True, slots=True)
class Heat:
    """A part of the race: the kind of the Pods, how many are there first, and how many are created a second then."""

    kind: str
    n_nodes: int
    n_rounds: int
    n_backlog: int
    n_steady: int
    rate_per_s: float

    def pod(self, number: int, scheduler_name: str) -> Json:
        return pod(f"pod-{number}", number, KINDS[self.kind], scheduler_name)


class Track:
    """The API server with its nodes, on which one competitor runs at a time."""

    def __init__(self, control_plane: ControlPlane, folder: Path, cpu: CpuSampler) -> None:
        self._control_plane = control_plane
        self._folder = folder
        self._api = control_plane.client()
        self._cpu = cpu
        self._n_nodes = 0

    def add_nodes(self, n_nodes: int) -> None:
        """Create what is missing for so many nodes."""
        self._api.create_nodes(node(i) for i in range(self._n_nodes, n_nodes))
        self._n_nodes = max(n_nodes, self._n_nodes)

    def turn(self, heat: Heat, competitor: Competitor, number: int) -> Turn:
        """Let a competitor run once; the Pods are gone afterwards."""
        self._api.create_pods(heat.pod(i, competitor.name) for i in range(heat.n_backlog))
        time.sleep(_REST_S)
        timeline = Timeline(self._control_plane.audit.path)
        with competitor.running(self._control_plane, self._folder):
            burst = self._burst(timeline, heat.n_backlog)
            steady = self._steady(timeline, heat, competitor) if competitor.decides else None
        check(self._api.pods(NAMESPACE), KINDS[heat.kind])
        self._clear()
        return Turn(heat.kind, competitor.name, self._n_nodes, number, burst, steady)

    def _burst(self, timeline: Timeline, n_pods: int) -> Burst:
        _wait_bound(timeline, n_pods)
        _wait_for_events(timeline, n_pods)
        bound_s = sorted(timeline.bound_s.values())[int(_WARM_UP * n_pods) :]
        first_s, last_s = bound_s[0], bound_s[-1]
        ended_s = max(last_s, *timeline.event_s)
        own, servers = self._cpu_ms(first_s, ended_s, len(bound_s))
        used = [one for label, one in memory().items() if label not in _SERVERS]
        return Burst(
            binds_per_s=(len(bound_s) - 1) / (last_s - first_s),
            done_per_s=(len(bound_s) - 1) / (ended_s - first_s),
            cpu_ms_per_pod=sum(own.values()),
            cpu_ms_per_pod_of=own,
            servers_cpu_ms_per_pod=sum(servers.values()),
            events_per_pod=len(timeline.event_s) / n_pods,
            rss_mib=sum(one.rss for one in used),
            pss_mib=sum(one.pss for one in used),
            strangers=self._cpu.strangers(first_s, ended_s),
        )

    def _steady(self, timeline: Timeline, heat: Heat, competitor: Competitor) -> Steady:
        time.sleep(_REST_S)
        n_before, n_events_before = len(timeline.bound_s), len(timeline.event_s)
        names = []
        began = time.monotonic()
        for i in range(heat.n_steady):
            made = heat.pod(heat.n_backlog + i, competitor.name)
            time.sleep(max(0.0, began + i / heat.rate_per_s - time.monotonic()))
            self._api.post(f"/api/v1/namespaces/{NAMESPACE}/pods", made)
            names.append(made["metadata"]["name"])
        _wait_bound(timeline, n_before + len(names))
        _wait_for_events(timeline, n_events_before + len(names))
        latency_ms = [1e3 * (timeline.bound_s[name] - timeline.created_s[name]) for name in names]
        first_s = min(timeline.created_s[name] for name in names)
        own, _ = self._cpu_ms(first_s, max(timeline.bound_s[name] for name in names), len(names))
        p50, p99 = np.percentile(latency_ms, [50, 99])
        return Steady(
            latency_p50_ms=float(p50),
            latency_p99_ms=float(p99),
            cpu_ms_per_pod=sum(own.values()),
            cpu_ms_per_pod_of=own,
        )

    def _cpu_ms(self, from_s: float, to_s: float, n_pods: int) -> tuple[dict[str, float], dict[str, float]]:
        """Return milliseconds per Pod of each process: (the competitor's, the servers')."""
        per_pod = {label: 1e3 * cpu_s / n_pods for label, cpu_s in self._cpu.cpu_s(from_s, to_s).items()}
        own = {label: ms for label, ms in per_pod.items() if label not in _SERVERS}
        return own, {label: ms for label, ms in per_pod.items() if label in _SERVERS}

    def _clear(self) -> None:
        pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
        self._api.delete(pods, gracePeriodSeconds=0)
        wait_until(lambda: not self._api.list(pods, limit=1), _TIMEOUT_S, "deletion of the Pods", 0.2)
        self._api.delete(f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events")


def _wait_bound(timeline: Timeline, count: int) -> None:
    def are_bound() -> bool:
        timeline.read()
        return len(timeline.bound_s) >= count

    wait_until(are_bound, _TIMEOUT_S, f"{count} binds", 0.1)


def _wait_for_events(timeline: Timeline, count: int) -> None:
    """Wait until each Pod has its Event, or no more come: client-go drops some."""
    n_before, since = -1, time.monotonic()
    while len(timeline.event_s) < count and time.monotonic() - since < _LAST_EVENTS_S:
        if len(timeline.event_s) != n_before:
            n_before, since = len(timeline.event_s), time.monotonic()
        time.sleep(0.1)
        timeline.read()


@contextlib.contextmanager
def _track(folder: Path) -> Iterator[Track]:
    control_plane, cpu = ControlPlane(ensure_programs(), folder, AUDIT_POLICY, _API_SERVER_FLAGS), CpuSampler()
    control_plane.start()
    try:
        control_plane.client().post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        grant_vane(control_plane.client(), VANE_USER)
        cpu.start()
        yield Track(control_plane, folder, cpu)
    finally:
        cpu.stop()
        control_plane.stop()


def race(heats: Sequence[Heat], competitors: Sequence[Competitor]) -> list[Turn]:
    """Run the heats, which must be in order of nodes. Who decides nothing runs with plain Pods only."""
    turns = []
    with tempfile.TemporaryDirectory() as folder, _track(Path(folder)) as track:
        for heat in heats:
            track.add_nodes(heat.n_nodes)
            for number in range(1, heat.n_rounds + 1):
                for competitor in competitors:
                    if competitor.decides or heat.kind == PLAIN.name:
                        turn = track.turn(heat, competitor, number)
                        print(turn.line(), flush=True)
                        turns.append(turn)
    return turns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1_000, 5_000])
    parser.add_argument("--pods", type=int, default=5_000, help="of the backlog")
    parser.add_argument("--steady-pods", type=int, default=1_500, help="created at the steady rate")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=float, default=100.0, help="Pods created a second")
    parser.add_argument("--kinds", nargs="*", choices=list(KINDS), default=list(KINDS), help="default: all")
    parser.add_argument("--kind-pods", type=int, default=2_000, help="as --pods, for all kinds but plain")
    parser.add_argument("--kind-steady-pods", type=int, default=400)
    parser.add_argument("--kind-rate", type=float, default=50.0, help="what kube-scheduler keeps up with, too")
    parser.add_argument("--kind-rounds", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="one round each, 1,000 Pods or fewer, the fewest nodes")
    parser.add_argument("--write", action="store_true", help="renew benchmarks/RESULTS.json and RESULTS.md")
    given = parser.parse_args()
    heats = _heats(given)
    turns = race(heats, [Limit(), KubeScheduler(), Vane()])
    print("\n\n".join(filter(None, (table(turns), table_of_kinds(turns)))))
    if given.write:
        write(
            Path(__file__).parent,
            turns,
            {heat.kind: (heat.n_backlog, heat.n_rounds, heat.rate_per_s) for heat in heats},
        )


def _heats(given: argparse.Namespace) -> list[Heat]:
    nodes, plain = sorted(given.nodes), (given.rounds, given.pods, given.steady_pods, given.rate)
    others = (given.kind_rounds, given.kind_pods, given.kind_steady_pods, given.kind_rate)
    if given.quick:
        nodes, plain, others = nodes[:1], (1, 1_000, 300, given.rate), (1, 400, 100, given.kind_rate)
    heats = [Heat(PLAIN.name, n_nodes, *plain) for n_nodes in nodes if PLAIN.name in given.kinds]
    return heats + [Heat(kind, nodes[-1], *others) for kind in given.kinds if kind != PLAIN.name]


if __name__ == "__main__":
    main()
