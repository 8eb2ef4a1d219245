"""Who runs in the race: nobody but a writer of binds and Events (the limit), kube-scheduler, Vane."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

from scheduler.kube.binder.client import BinderClient
from scheduler.kube.binder.messages import BindRequest, PodRef
from scheduler.kube.config import load_connection
from tests.support.controlplane import ControlPlane
from tests.support.manifests import Json
from tests.support.vane import VaneProcess

NAMESPACE = "race"
VANE_USER = "vane"


class Competitor(ABC):
    """`name` stands in the table and is the schedulerName of the Pods; `decides` is False for the bare limit."""

    name: str
    decides = True

    @abstractmethod
    def running(self, control_plane: ControlPlane, folder: Path) -> contextlib.AbstractContextManager[None]:
        """Start, let the block run, end. Binding begins as soon as it can."""


class Limit(Competitor):
    """Vane's binder process, told to bind Pod after Pod to node after node: nothing is watched or decided."""

    name = "limit"
    decides = False

    @contextlib.contextmanager
    def running(self, control_plane: ControlPlane, folder: Path) -> Iterator[None]:
        api = control_plane.client()
        nodes = [node["metadata"]["name"] for node in api.list("/api/v1/nodes")]
        pods = [pod["metadata"] for pod in api.pods(NAMESPACE)]
        binder = BinderClient(load_connection(str(control_plane.make_kubeconfig(VANE_USER))), lambda _: None, _died)
        binder.start()
        try:
            for i, pod in enumerate(pods):
                binder.bind(_bind_request(pod, nodes[i % len(nodes)]))
            yield
        finally:
            binder.stop()


class KubeScheduler(Competitor):
    """The real program; its client is not throttled, as Vane's is not."""

    name = "kube-scheduler"

    @contextlib.contextmanager
    def running(self, control_plane: ControlPlane, folder: Path) -> Iterator[None]:
        config = {"profiles": [{"schedulerName": self.name}], "clientConnection": {"qps": -1, "burst": 1}}
        with control_plane.start_kube_scheduler(config):
            yield


class Vane(Competitor):
    """`vane run` with all its processes and no rules."""

    name = "vane"

    @contextlib.contextmanager
    def running(self, control_plane: ControlPlane, folder: Path) -> Iterator[None]:
        kubeconfig = control_plane.make_kubeconfig(VANE_USER)
        vane = VaneProcess(folder, kubeconfig, flags=_without_election(), is_audited=False)
        vane.start(60.0)
        try:
            yield
        finally:
            vane.stop()


def _bind_request(metadata: Json, node_name: str) -> BindRequest:
    pod = PodRef(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
    )
    return BindRequest(pod=pod, node_name=node_name, scheduler_name=Limit.name)


def _died(reason: str) -> None:
    raise RuntimeError(reason)


def _without_election() -> list[str]:
    """Return the flags that keep Vane from waiting for a Lease, as kube-scheduler is kept from it."""
    usage = subprocess.run([sys.executable, "-m", "scheduler", "run", "--help"], capture_output=True, check=True)
    return ["--leader-elect=false"] if b"--leader-elect" in usage.stdout else []
