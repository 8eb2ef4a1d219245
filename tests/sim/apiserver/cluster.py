"""An API server under test: the embedded one or the real one, asked in the same words."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import urllib3

from scheduler.sim.apiserver import ApiServer, ObjectStore, kubeconfig
from tests.support.controlplane import ControlPlane
from tests.support.kubeapi import KubeApi
from tests.support.manifests import Json
from tests.support.process import Process

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
EVENTS = "/api/v1/namespaces/default/events"
NEW_EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"

WINDOW = 60
"""Changes of each kind that the embedded server remembers in these tests."""


@dataclass(frozen=True)
class Answer:
    code: int
    body: Any
    content_type: str

    @property
    def reason(self) -> str:
        return str(self.body.get("reason", ""))

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))


class Cluster(Protocol):
    """What the contract suite needs of an API server; `name` is `embedded` or `real`."""

    name: str
    api: KubeApi

    def ask(
        self, method: str, path: str, body: object = None, accept: str = ..., content_type: str = ...
    ) -> Answer: ...

    def kubectl(self, *arguments: str) -> Process: ...

    def forget(self) -> None:
        """Make the server forget all it remembers of Events' past."""
        ...


def _ask(
    pool: urllib3.PoolManager, url: str, method: str, body: object, headers: Mapping[str, str]
) -> Answer:  # fmt: skip
    data = body.encode() if isinstance(body, str) else None if body is None else json.dumps(body).encode()
    response = pool.request(method, url, body=data, headers=dict(headers), timeout=30.0, retries=False)
    text, content_type = response.data.decode(), response.headers.get("Content-Type", "")
    is_one = "json" in content_type and "\n{" not in text.strip()  # the lines of a watch are left as text
    return Answer(response.status, json.loads(text) if is_one else text, content_type)


class EmbeddedServer:
    """An ObjectStore and its ApiServer in an event loop of their own thread."""

    def __init__(self, window: int = WINDOW, bookmark_s: float = 60.0, now: Callable[[], float] | None = None) -> None:
        numbers = itertools.count(1)
        clock = now or (lambda: time.time_ns() / 1e9)
        self.store = ObjectStore(clock, lambda: f"00000000-0000-4000-8000-{next(numbers):012}", window)
        self._server = ApiServer(self.store, bookmark_s)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="embedded", daemon=True)
        self.url = ""

    def start(self) -> None:
        self._thread.start()
        self.url = asyncio.run_coroutine_threadsafe(self._server.start(), self._loop).result(10)

    def stop_serving(self) -> None:
        asyncio.run_coroutine_threadsafe(self._server.stop(), self._loop).result(10)

    def stop(self) -> None:
        self.stop_serving()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def run(self, call: Callable[[], Any]) -> Any:
        """Call something of the store in its thread."""
        outcome: Future[Any] = Future()

        def carry_out() -> None:
            try:
                outcome.set_result(call())
            except Exception as error:  # noqa: BLE001 - handed to the caller
                outcome.set_exception(error)

        self._loop.call_soon_threadsafe(carry_out)
        return outcome.result(10)


class EmbeddedCluster:
    name = "embedded"

    def __init__(self, server: EmbeddedServer, programs: Path, folder: Path) -> None:
        self.server = server
        self.api = KubeApi(server.url)
        self.kubeconfig = folder / "embedded.kubeconfig"
        self.kubeconfig.write_text(kubeconfig(server.url))
        self._programs = programs
        self._folder = folder
        self._pool = urllib3.PoolManager()
        self._numbers = itertools.count()

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        accept: str = "application/json",
        content_type: str = "application/json",
    ) -> Answer:
        headers = {"Accept": accept, "Content-Type": content_type}
        return _ask(self._pool, self.server.url + path, method, body, headers)

    def kubectl(self, *arguments: str) -> Process:
        log = self._folder / f"kubectl-{next(self._numbers)}.log"
        options = [f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self._folder / 'cache'}"]
        process = Process([self._programs / "kubectl", *options, *arguments], log)
        process.start()
        return process

    def forget(self) -> None:
        for i in range(WINDOW + 1):
            self.api.post(EVENTS, event(f"filler-{i}"))

    def close(self) -> None:
        self.api.close()
        self._pool.clear()


class RealCluster:
    name = "real"

    def __init__(self, control_plane: ControlPlane, api: KubeApi, folder: Path) -> None:
        self.api = api
        self._control_plane = control_plane
        self._folder = folder
        self._pool = urllib3.PoolManager(ca_certs=str(control_plane.ca_path))

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        accept: str = "application/json",
        content_type: str = "application/json",
    ) -> Answer:
        token = self._control_plane.token()
        headers = {"Accept": accept, "Content-Type": content_type, "Authorization": f"Bearer {token}"}
        return _ask(self._pool, self._control_plane.url + path, method, body, headers)

    def kubectl(self, *arguments: str) -> Process:
        return self._control_plane.kubectl(f"--cache-dir={self._folder / 'cache'}", *arguments)

    def forget(self) -> None:
        """Compact etcd; of Events the API server keeps no cache that would remember more."""
        self.api.post(EVENTS, event("filler"))
        revision = self.api.get(EVENTS)["metadata"]["resourceVersion"]
        words = Path(f"/proc/{self._control_plane.pids['etcd']}/cmdline").read_text().split("\0")
        (etcd,) = (word.partition("=")[2] for word in words if word.startswith("--listen-client-urls="))
        request = urllib.request.Request(f"{etcd}/v3/kv/compaction", json.dumps({"revision": revision}).encode())
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert answer.status == 200

    def close(self) -> None:
        self._pool.clear()


def event(name: str, **fields: Any) -> Json:
    """Return a core/v1 Event about Pod `p`."""
    about = {"kind": "Pod", "namespace": "default", "name": "p", "uid": "u", "apiVersion": "v1"}
    return {
        "metadata": {"name": name},
        "involvedObject": about,
        "reason": "R",
        "message": "M",
        "type": "Normal",
        **fields,
    }


def new_event(name: str, **fields: Any) -> Json:
    """Return an events.k8s.io/v1 Event about Pod `p`, as Vane writes one."""
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "eventTime": "2026-01-02T03:04:05.000006Z",
        "reportingController": "vane",
        "reportingInstance": "vane-host",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p", "uid": "u", "apiVersion": "v1"},
        "note": "Successfully assigned default/p to n1",
        "type": "Normal",
        **fields,
    }


def watched(cluster: Cluster, path: str, version: str, n: int, **query: Any) -> list[Json]:
    """Return the first lines of a watch, fewer where no more came within seconds."""
    watch = cluster.api.watch(path, version, **{"timeoutSeconds": 5, **query})
    return list(itertools.islice(watch, n))  # the end of the iterator closes the connection


def plain(value: Any) -> Any:
    """Return an object without what one server alone keeps: who wrote which field."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items() if key != "managedFields"}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


def timeless(obj: Json) -> Json:
    """Return an object without managed fields, uid, version and times, which no two servers share."""
    differing = ("uid", "resourceVersion", "creationTimestamp")
    metadata = {key: value for key, value in plain(obj["metadata"]).items() if key not in differing}
    return {**plain(obj), "metadata": metadata}
