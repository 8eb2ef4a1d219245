"""What goes on in a cluster all day, beneath every fault: Pods, nodes, drains, edits of rules."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import urllib3

from tests.e2e.world import prefer_idle, refuse_above, replace_file, rules
from tests.faults.bench.servers import NODES
from tests.support import manifests
from tests.support.kubeapi import ApiError, KubeApi
from tests.support.manifests import Json

T = TypeVar("T")

GATED = {"gate": "yes"}
"""Labels of Pods that no node takes while the gauge of the gate is up."""

GATE_SERIES = "node_load15"

GATE = f"""\
apiVersion: vane.dev/v1
kind: Rules
signals:
  gate: {{expr: max by (instance) ({GATE_SERIES}), by: node, interval: 1s, max_age: 10s}}
"""

_CLOSED = '  - {name: gate, match: {labels: {gate: "yes"}}, signal: gate, filter: {max: 0.5}}\n'

_CPU = ("100m", "200m", "300m", "400m")
_FAULTS = (urllib3.exceptions.HTTPError, OSError)
_LOOK_S = 0.5
_WAITING = 30
"""How many Pods more than are to be alive may be there, bound or not."""
_PODS = "/api/v1/namespaces/default/pods"


class Churn:
    """Creates Pods at a rate, and deletes the oldest beyond `n_alive`; every few seconds something happens to a node.

    As with ReplicaSets there are never many more, so that what waits fits; and a node has room for a few only, so that
    a scheduler that miscounts is found out.
    """

    def __init__(
        self,
        servers: Sequence[KubeApi],
        rule_file: Path,
        pods_per_s: float = 10.0,
        n_alive: int = 70,
        node_every_s: float = 4.0,
    ) -> None:
        self._servers = servers
        self._rule_file = rule_file
        self._pods_per_s = pods_per_s
        self._n_alive = n_alive
        self._node_every_s = node_every_s
        self._random = random.Random(1)
        self._ended = threading.Event()
        self._paused = threading.Event()
        self._threads = [threading.Thread(target=one, daemon=True) for one in (self._pods, self._tidy, self._nodes)]
        self._n_present = 0
        self.created: list[str] = []
        self.n_edits = 0
        self.signals = ""
        self.rules = ""
        """What else each edit writes, as lines of `signals` and `rules`."""

    def prepare(self) -> None:
        """Make the nodes and the first rules."""
        self._servers[0].create_nodes(_node(name) for name in NODES)
        self.edit_rules()

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def pause(self) -> None:
        """Make no more Pods; the rest goes on."""
        self._paused.set()

    def resume(self) -> None:
        self._paused.clear()

    def stop(self) -> None:
        self._ended.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def edit_rules(self) -> None:
        self.n_edits += 1
        weight = 1 + self.n_edits % 5
        blocks = (refuse_above(0.95), prefer_idle(weight), _CLOSED, self.rules)
        replace_file(self._rule_file, GATE + self.signals + rules(*blocks).partition("signals:\n")[2])

    def ask(self, call: Callable[[KubeApi], T]) -> T | None:
        """Ask the first API server that answers; None if none does, or if the object is not as it was."""
        for server in self._servers:
            try:
                return call(server)
            except ApiError as error:
                if error.status in (404, 409):
                    return None
            except _FAULTS:
                pass
        return None

    def _pods(self) -> None:
        due_s = time.monotonic()
        while not self._ended.wait(max(0.0, due_s - time.monotonic())):
            due_s = max(due_s + 1 / self._pods_per_s, time.monotonic() - 1.0)
            if self._paused.is_set() or self._n_present >= self._n_alive + _WAITING:
                continue
            name = f"pod-{len(self.created)}"
            pod = manifests.pod(name, cpu=self._random.choice(_CPU), memory="16Mi", scheduler_name="vane", grace=0)
            if self.ask(lambda server, pod=pod: server.post(_PODS, pod)) is not None:  # type: ignore[misc]
                self.created.append(name)
                self._n_present += 1

    def _tidy(self) -> None:
        """Delete the oldest Pods, and those whose node has gone, as Kubernetes' garbage collector does."""
        while not self._ended.wait(_LOOK_S):
            pods = self.ask(lambda server: server.pods("default"))
            nodes = self.ask(lambda server: server.list("/api/v1/nodes"))
            if pods is None or nodes is None:
                continue
            self._n_present = sum(map(_is_churned, pods))
            present = {node["metadata"]["name"] for node in nodes}
            bound = sorted((pod for pod in pods if _is_churned(pod) and pod["spec"].get("nodeName")), key=_age)
            surplus = bound[: max(0, len(bound) - self._n_alive)]
            for pod in [*surplus, *(one for one in bound if one["spec"]["nodeName"] not in present)]:
                self._delete(pod["metadata"]["name"])

    def _delete(self, name: str) -> None:
        self.ask(lambda server: server.delete(f"{_PODS}/{name}", gracePeriodSeconds=0))

    def _nodes(self) -> None:
        turn = 0
        while not self._ended.wait(self._node_every_s):
            [self._drain, self._replace, self.edit_rules][turn % 3]()
            turn += 1

    def _drain(self) -> None:
        """Cordon a node, delete its Pods, and let it in again."""
        name = self._random.choice(NODES)
        self.ask(lambda server: server.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}}))
        self._empty(name)
        self._ended.wait(self._node_every_s / 2)
        self._until_done(lambda server: server.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": None}}))

    def _replace(self) -> None:
        """Delete a node, and make one of the same name."""
        name = self._random.choice(NODES)
        self.ask(lambda server: server.delete(f"/api/v1/nodes/{name}"))
        self._empty(name)
        self._ended.wait(self._node_every_s / 2)
        self._until_done(lambda server: server.post("/api/v1/nodes", _node(name)))

    def _until_done(self, call: Callable[[KubeApi], object]) -> None:
        """Ask until it is done, also after the end: the next row begins with all nodes."""
        until_s = time.monotonic() + 60.0
        while time.monotonic() < until_s:
            for server in self._servers:
                with contextlib.suppress(*_FAULTS):
                    try:
                        call(server)
                    except ApiError as error:
                        if error.status >= 500:
                            continue
                    return
            time.sleep(0.1)

    def _empty(self, node: str) -> None:
        for pod in self.ask(lambda server: server.pods("default")) or ():
            if pod["spec"].get("nodeName") == node:
                self._delete(pod["metadata"]["name"])


def _node(name: str) -> Json:
    return manifests.node(name, cpu="2", memory="8Gi", pods="30")


def _is_churned(pod: Json) -> bool:
    return str(pod["metadata"]["name"]).startswith("pod-")


def _age(pod: Json) -> tuple[str, int]:
    return pod["metadata"]["creationTimestamp"], int(pod["metadata"]["name"].rpartition("-")[2] or 0)
