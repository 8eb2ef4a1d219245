"""What a large cluster costs: memory at rest and at a relist, the time to start, and how long nobody is answered.

`python -m benchmarks.memory` has `vane run` list nodes and Pods of ordinary shape (`benchmarks.crowded_api`), asks
/livez all the time, shows Pods that wait for a node, and has the watch of Pods expire. The deciding thread answers
/livez, so the longest answer is the longest time between two of its turns. `--nodes 15000 --pods 150000` takes some
minutes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from scheduler.sim.apiserver import kubeconfig
from scheduler.tls import client_context
from tests.support.vane import VaneProcess
from tests.support.waiting import wait_until

_MIB_PER_KIB = 1 / 1024
_PROBE_EVERY_S = 0.02
_LATE_PODS = 50
_QUIET_S = 8.0
"""The collector takes its turn when all is quiet for a while."""


class Crowd:
    """The API server's process."""

    def __init__(self, n_nodes: int, n_pods: int) -> None:
        command = [sys.executable, "-m", "benchmarks.crowded_api", str(n_nodes), str(n_pods)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}"

    def post(self, path: str) -> None:
        urllib.request.urlopen(urllib.request.Request(self.url + path, b"{}"), timeout=30).close()

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@dataclass(slots=True)
class Prober:
    """Asks a page over and over, and keeps the longest time that an answer took since it was last asked for that."""

    url: str
    longest_s: float = 0.0
    _asked_s: float = 0.0
    _ended: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True).start()

    def stop(self) -> None:
        self._ended.set()

    def take(self) -> float:
        """Return the longest since the last call, in seconds; an answer that is still waited for counts."""
        waited_s = time.monotonic() - self._asked_s if self._asked_s else 0.0
        longest_s, self.longest_s = max(self.longest_s, waited_s), 0.0
        return longest_s

    def _run(self) -> None:
        context = client_context(verify=False)  # its certificate is self-signed
        while not self._ended.wait(_PROBE_EVERY_S):
            self._asked_s = time.monotonic()
            try:
                urllib.request.urlopen(self.url, timeout=120, context=context).close()
            except urllib.error.HTTPError as error:
                error.close()
            except OSError:
                self._asked_s = 0.0  # it does not listen yet
                continue
            self.longest_s = max(self.longest_s, time.monotonic() - self._asked_s)
            self._asked_s = 0.0


def memory_mib(pid: int, what: str) -> float:
    """Return VmRSS or VmHWM, the most since the last `forget_peak`."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) * _MIB_PER_KIB


def forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def measure(n_nodes: int, n_pods: int, folder: Path) -> dict[str, float]:
    crowd = Crowd(n_nodes, n_pods)
    config = folder / "kubeconfig"
    config.write_text(kubeconfig(crowd.url))
    vane = VaneProcess(folder, config, flags=["--leader-elect=false"], is_audited=False)
    prober = Prober(f"https://127.0.0.1:{vane.port}/livez")
    found: dict[str, float] = {}
    try:
        began_s = time.monotonic()
        prober.start()
        vane.start(timeout=1200.0)
        found["start to ready s"] = time.monotonic() - began_s
        found["longest /livez at start s"] = prober.take()
        pid = vane.process.pid
        time.sleep(_QUIET_S)
        found["most while starting MiB"] = memory_mib(pid, "VmHWM")
        found["at rest MiB"] = memory_mib(pid, "VmRSS")
        found["longest /livez at rest s"] = prober.take()
        forget_peak(pid)
        restarts = 'vane_watch_restarts_total{kind="Pod",reason="expired"}'
        pods = 'scheduler_cache_size{type="pods"}'
        began_s = time.monotonic()
        crowd.post("/expire")
        wait_until(lambda: vane.metric(restarts) == 1, 60, "the watch expired")
        for i in range(_LATE_PODS):
            crowd.post(f"/pending/late-{i}")
        wait_until(lambda: vane.metric(pods) == n_pods + _LATE_PODS, 600, "the list was taken again")
        found["relist s"] = time.monotonic() - began_s
        found["longest /livez at relist s"] = prober.take()
        found["most at relist MiB"] = memory_mib(pid, "VmHWM")
        found["after relist MiB"] = memory_mib(pid, "VmRSS")
        others = vane.pids()[1:]
        found["other processes MiB"] = sum(memory_mib(one, "VmRSS") for one in others)
    finally:
        prober.stop()
        vane.stop()
        crowd.stop()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--pods", type=int, default=5_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(arguments.nodes, arguments.pods, Path(folder))
    print(json.dumps({"nodes": arguments.nodes, "pods": arguments.pods}))
    for name, value in found.items():
        print(f"{name:>28} {value:10.2f}")


if __name__ == "__main__":
    main()
