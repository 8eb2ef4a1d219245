"""Who is told of placed Pods: a receiver of notifications that is down, slow or fails."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.faults.bench.bench import Bench, Setting
from tests.faults.bench.placing import Placing, measure_all_placed, quantile
from tests.faults.bench.told import metrics, summed
from tests.faults.row import Row
from tests.support.ports import free_port
from tests.support.vane import VaneProcess

_CONFIGURATION = """\
apiVersion: vane.dev/v1
kind: VaneConfiguration
scheduler:
  profiles:
    - schedulerName: vane
      plugins: {{multiPoint: {{enabled: [{{name: WebhookNotifier}}]}}}}
      pluginConfig: [{{name: WebhookNotifier, args: {{url: "http://127.0.0.1:{port}/hook"}}}}]
"""
_PORT_FILE = "receiver.port"
_MOST_WAITING = 1_000
_SLOWER_S = 0.2
"""How much later Pods may be placed, at the median, while a receiver hangs: what a busy machine may add."""


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    status = 200
    delay_s = 0.0

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.told: list[str] = []

    def handle_error(self, request: object, client_address: object) -> None:
        """A sender that gives up is part of the row."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(self.server.delay_s)
        if self.server.status == 200:
            self.server.told.append(event["data"]["name"])
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Keep the requests out of the output."""


def _with_receiver(folder: Path) -> Mapping[str, str]:
    """Have replicas notify a port at which nobody listens yet."""
    port = free_port()
    (folder / _PORT_FILE).write_text(str(port))
    configuration = folder / "vane.yaml"
    configuration.write_text(_CONFIGURATION.format(port=port))
    return {"VANE_CONFIG": str(configuration)}


@contextlib.contextmanager
def _listening(port: int) -> Iterator[_Server]:
    server = _Server(port)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Watched:
    """How long Pods wait, and how many notifications do, while the receiver is one way or another."""

    def __init__(self, bench: Bench, vane: VaneProcess) -> None:
        self._bench = bench
        self._vane = vane
        self.waits_s: dict[str, float] = {}
        self.most_waiting = 0.0

    def during(self, title: str, seconds: float) -> None:
        bench, placed = self._bench, Placing(self._bench)
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            bench.last(1.0)
            self.most_waiting = max(self.most_waiting, metrics(self._vane).get("vane_notifications_pending", 0.0))
        names = placed.names()
        bench.until(lambda: bench.watcher.bound >= set(names) - bench.pending(), 10.0, "the Pods meanwhile")
        self.waits_s[title] = quantile(placed.waits_s(names), 0.5)


def receiver_fails(bench: Bench) -> None:
    """Nobody listens; the receiver hangs; it answers 500; it is well."""
    vane, placing = bench.leader().vane, Placing(bench)
    watched = _Watched(bench, vane)
    watched.during("nobody listens", bench.seconds(30, 6))
    with _listening(int((bench.folder / _PORT_FILE).read_text())) as server:
        server.delay_s = 30.0
        watched.during("it hangs", bench.seconds(40, 8))
        server.delay_s, server.status = 0.0, 500
        watched.during("it answers 500", bench.seconds(30, 5))
        server.status = 200
        bench.until(lambda: server.told, 90.0, "a delivery")
        watched.during("it is well", bench.seconds(20, 5))
        n_told = len(server.told)
    well_s = watched.waits_s.pop("it is well")
    bench.figure("Pods wait while it is well, p50, s", well_s)
    for title, wait_s in watched.waits_s.items():
        bench.figure(f"Pods wait while {title}, p50, s", wait_s, at_most=well_s + _SLOWER_S)
    said = metrics(vane)
    n_errors = summed(said, "scheduler_schedule_attempts_total", 'result="error"')
    bench.figure("notifications that waited, most", watched.most_waiting, at_least=1, at_most=_MOST_WAITING)
    bench.figure("delivered in the end", n_told, at_least=1)
    bench.figure("given up, and counted", summed(said, "vane_notifications_total", 'result="failed"'))
    bench.figure("attempts that ended in an error", n_errors, at_most=0)
    measure_all_placed(bench, placing.names())


ROWS = (
    Row(
        "F27",
        "a receiver of notifications is down, hangs, fails (of extenders nothing applies: Vane has none)",
        receiver_fails,
        Setting(prepare=_with_receiver),
    ),
)
