from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import count
from typing import Any

import msgspec

from scheduler.kube.binder.client import BinderClient
from scheduler.kube.binder.messages import (
    BindRequest,
    BindResult,
    EvictRequest,
    EvictResult,
    LeaseUntil,
    PatchRequest,
    PatchResult,
    PodRef,
    RequestsDone,
    WriteRequest,
)
from scheduler.kube.config import Connection
from tests.kube.fake_api import replies
from tests.support.waiting import wait_until

POD = PodRef(namespace="default", name="a", uid="uid-a", resource_version="1")
POD_PATH = "/api/v1/namespaces/default/pods/a"
BIND_PATH = f"{POD_PATH}/binding"
STATUS_PATH = f"{POD_PATH}/status"
EVENTS_PATH = "/apis/events.k8s.io/v1/namespaces/default/events"

CREATED = replies(201, {"kind": "Status", "status": "Success"})


class Running:
    def __init__(
        self, connection: Connection, clusters: Mapping[str, Connection] | None = None, **options: Any
    ) -> None:
        self.results: list[BindResult] = []
        self.patched: list[PatchResult | EvictResult] = []
        self.requests: list[RequestsDone] = []
        self.deaths: list[str] = []
        self.dropped: list[int] = []
        self.binder = BinderClient(
            connection,
            self.results.extend,
            self.deaths.append,
            self.requests.extend,
            self.dropped.append,
            on_patched=self.patched.extend,
            **options,
        )
        self._numbers = count(1)
        self.binder.start(clusters)
        assert self.binder.drain(60.0)  # it is up, so deadlines of tests don't count its start

    def lead_for(self, seconds: float, ends_s: float = 60.0) -> None:
        """Let binds begin for so long from now on, and the process live for `ends_s`."""
        now = time.monotonic()
        self.binder.set_term(LeaseUntil(not_after=now + seconds, ends_at=now + ends_s))

    def bind(self, node: str = "n1", pod: PodRef = POD, **more: Any) -> BindResult:
        """Bind the Pod, and wait for what comes of it."""
        before = len(self.results)
        self.binder.bind(BindRequest(pod=pod, node_name=node, scheduler_name="vane", **more))
        return wait_until(lambda: self.results[before:], timeout=10)[0]

    def patch(
        self, annotations: Mapping[str, str | None], nominated: str | None = None, pod: PodRef = POD
    ) -> PatchResult:
        """Patch the Pod, and wait for what comes of it."""
        number = next(self._numbers)
        request = PatchRequest(number=number, pod=pod, annotations=dict(annotations), nominated_node_name=nominated)
        self.binder.patch(request)
        results = wait_until(lambda: [one for one in self.patched if one.number == number], timeout=10)
        assert isinstance(results[0], PatchResult)
        return results[0]

    def write(self, path: str, body: object) -> PatchResult:
        """Patch an object of another kind, and wait for what comes of it."""
        number = next(self._numbers)
        self.binder.write(WriteRequest(number=number, path=path, body=msgspec.json.encode(body)))
        results = wait_until(lambda: [one for one in self.patched if one.number == number], timeout=10)
        assert isinstance(results[0], PatchResult)
        return results[0]

    def evict(self, **more: Any) -> EvictResult:
        """Evict the Pod for another one, and wait for what comes of it."""
        number = next(self._numbers)
        preemptor = PodRef(namespace="default", name="big", uid="uid-big")
        request = EvictRequest(number=number, pod=POD, preemptor=preemptor, node_name="n1", scheduler_name="vane")
        self.binder.evict(msgspec.structs.replace(request, **more))
        results = wait_until(lambda: [one for one in self.patched if one.number == number], timeout=10)
        assert isinstance(results[0], EvictResult)
        return results[0]

    def drain(self) -> None:
        assert self.binder.drain(60.0)
