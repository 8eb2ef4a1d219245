"""From the start of the process to the tenth bind: Vane beside kube-scheduler, on one API server, in turns.

`python -m benchmarks.startup` starts a real etcd and kube-apiserver with 50 nodes. In a turn ten Pods are created while
nobody runs who would take them; then a competitor is started, without leader election, and stopped once all are bound.
Times run from just before its process is made to the API server's answer to a bind, from its audit log. A first turn is
not counted: programs and modules are read from disk then, and Vane's modules compiled, which the image has compiled.

Needs the programs of `make controlplane` and an otherwise idle machine; `--most SECONDS` fails where Vane's median is
above that.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.competitors import NAMESPACE, VANE_USER, KubeScheduler
from benchmarks.race_kinds import KINDS, PLAIN, node, pod
from benchmarks.timeline import AUDIT_POLICY, Timeline
from tests.controlplane.build import ensure_programs
from tests.support.controlplane import ControlPlane
from tests.support.vane import VaneProcess, grant_vane
from tests.support.waiting import wait_until

N_PODS = 10
_REST_S = 2.0
_TIMEOUT_S = 120.0

Started = Callable[[ControlPlane, Path], contextlib.AbstractContextManager[None]]


@contextlib.contextmanager
def _vane(control_plane: ControlPlane, folder: Path) -> Iterator[None]:
    kubeconfig = control_plane.make_kubeconfig(VANE_USER)
    compiled = {"PYTHONDONTWRITEBYTECODE": ""}  # where a shell forbids that, all would be compiled in every turn
    vane = VaneProcess(folder, kubeconfig, flags=["--leader-elect=false"], env=compiled, is_audited=False)
    vane.process.start()
    try:
        yield
    finally:
        vane.stop()


COMPETITORS: dict[str, Started] = {"kube-scheduler": KubeScheduler().running, "vane": _vane}


def turn(control_plane: ControlPlane, folder: Path, name: str) -> tuple[float, float]:
    """Return the seconds from the start to the first bind and to the last."""
    api, pods = control_plane.client(), f"/api/v1/namespaces/{NAMESPACE}/pods"
    api.create_pods(pod(f"pod-{number}", number, KINDS[PLAIN.name], name) for number in range(N_PODS))
    time.sleep(_REST_S)
    timeline = Timeline(control_plane.audit.path)
    began_s = time.time()  # noqa: TID251 - the audit log has wall-clock times
    with COMPETITORS[name](control_plane, folder):
        wait_until(lambda: _n_bound(timeline) >= N_PODS, _TIMEOUT_S, "the binds", 0.1)
    api.delete(pods, gracePeriodSeconds=0)
    wait_until(lambda: not api.list(pods, limit=1), _TIMEOUT_S, "deletion of the Pods", 0.2)
    bound_s = sorted(timeline.bound_s.values())
    return bound_s[0] - began_s, bound_s[-1] - began_s


def _n_bound(timeline: Timeline) -> int:
    timeline.read()
    return len(timeline.bound_s)


def measure(n_nodes: int, n_turns: int) -> dict[str, list[float]]:
    """Return the seconds to the last bind, turn by turn."""
    took_s: dict[str, list[float]] = {name: [] for name in COMPETITORS}
    with tempfile.TemporaryDirectory() as folder:
        control_plane = ControlPlane(ensure_programs(), Path(folder), AUDIT_POLICY)
        control_plane.start()
        try:
            api = control_plane.client()
            api.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
            grant_vane(api, VANE_USER)
            api.create_nodes(node(number) for number in range(n_nodes))
            for number in range(n_turns + 1):
                for name in COMPETITORS:
                    first_s, last_s = turn(control_plane, Path(folder), name)
                    if number:
                        took_s[name].append(last_s)
                    print(f"turn {number}  {name:<14}  first bind {first_s:5.2f} s  tenth {last_s:5.2f} s", flush=True)
        finally:
            control_plane.stop()
    return took_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--most", type=float, help="seconds that Vane may take, in the median")
    given = parser.parse_args()
    took_s = measure(given.nodes, given.turns)
    for name, all_s in took_s.items():
        print(f"{name:<14}  median {statistics.median(all_s):.2f} s  worst {max(all_s):.2f} s")
    if given.most is not None and statistics.median(took_s["vane"]) > given.most:
        sys.exit(f"more than {given.most:g} s")


if __name__ == "__main__":
    main()
