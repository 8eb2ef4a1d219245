"""A Lease on the scripted API server: kept as a real one keeps it, with faults on demand."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from scheduler.kube.binder.messages import LeaseUntil
from scheduler.kube.config import Connection
from scheduler.kube.election.elector import Elector
from scheduler.kube.election.roll_call import RollCall
from scheduler.kube.election.settings import REAL_TIMES, ElectionSettings, Times
from tests.kube.fake_api import Exchange, FakeApi, Responder, replies, status
from tests.support.waiting import wait_until

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
LEASE = f"{LEASES}/vane"
PODS = "/api/v1/pods"
EVENTS = "/apis/events.k8s.io/v1/namespaces/kube-system/events"

UNAVAILABLE = replies(503, status(503, "ServiceUnavailable", "etcd is away"))

QUICK = ElectionSettings(lease_duration_s=1.0, renew_deadline_s=0.6, retry_period_s=0.15)

Json = dict[str, Any]


class LeaseServer:
    """One Lease, guarded by its resourceVersion; `fault` answers in its stead while it is set."""

    def __init__(self, server: FakeApi) -> None:
        self.server = server
        self.lease: Json | None = None
        self.fault: Responder | None = None
        self.watch_fault: Responder | None = None
        self.events: list[tuple[str, Json]] = []
        self._version = 100
        self._changed = threading.Condition()
        for method, path in (("GET", LEASE), ("PUT", LEASE), ("POST", LEASES)):
            server.script(method, path, self._answer)
        server.script("GET", LEASES, self._list)
        server.script("WATCH", LEASES, self._watch)
        server.script("GET", PODS, replies(200, {"metadata": {"resourceVersion": "500"}, "items": []}))

    @property
    def spec(self) -> Json:
        assert self.lease is not None
        spec: Json = self.lease["spec"]
        return spec

    @property
    def n_watches(self) -> int:
        return sum("watch" in one.query for one in self.server.of("GET", LEASES))

    def hold(self, holder: str, **spec: Any) -> None:
        """Write the Lease as another replica does."""
        with self._changed:
            transitions = self.spec["leaseTransitions"] if self.lease is not None else 0
            given = {"holderIdentity": holder, "leaseDurationSeconds": 1, "leaseTransitions": transitions}
            self._store({"metadata": self._metadata(), "spec": {**given, "renewTime": str(self._version), **spec}})

    def label(self) -> None:
        """Change the Lease without renewing it, as `kubectl label` does."""
        with self._changed:
            assert self.lease is not None
            self._store({**self.lease, "metadata": {**self._metadata(), "labels": {"mine": "kept"}}})

    def delete(self) -> None:
        with self._changed:
            assert self.lease is not None
            self._version += 1
            gone = {**self.lease, "metadata": {**self.lease["metadata"], "resourceVersion": str(self._version)}}
            self.lease = None
            self.events.append(("DELETED", gone))
            self._changed.notify_all()

    def _metadata(self) -> Json:
        return {**(self.lease["metadata"] if self.lease is not None else {}), "name": "vane", "uid": "lease-uid"}

    def _store(self, lease: Json) -> Json:
        self._version += 1
        kind = "ADDED" if self.lease is None else "MODIFIED"
        self.lease = {**lease, "metadata": {**lease["metadata"], "resourceVersion": str(self._version)}}
        self.events.append((kind, self.lease))
        self._changed.notify_all()
        return self.lease

    def _answer(self, exchange: Exchange) -> None:
        if self.fault is not None:
            self.fault(exchange)
        else:
            self.do(exchange)

    def do(self, exchange: Exchange) -> None:
        """Carry a request out and answer it."""
        exchange.json(*self.carry_out(exchange))

    def carry_out(self, exchange: Exchange) -> tuple[int, Json]:
        received = exchange.received
        with self._changed:
            if received.method == "POST":
                if self.lease is not None:
                    return 409, status(409, "AlreadyExists", "there is one")
                return 201, self._store({"metadata": self._metadata(), "spec": received.json["spec"]})
            if self.lease is None:
                return 404, status(404, "NotFound", "no Lease")
            if received.method == "PUT":
                if received.json["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
                    return 409, status(409, "Conflict", "the object has been modified")
                return 200, self._store(received.json)
            return 200, self.lease

    def _list(self, exchange: Exchange) -> None:
        with self._changed:
            items = [self.lease] if self.lease is not None else []
            body = {"metadata": {"resourceVersion": str(self._version)}, "items": items}
        exchange.json(200, body)

    def _watch(self, exchange: Exchange) -> None:
        if self.watch_fault is not None:
            self.watch_fault(exchange)
            return
        exchange.start_stream()
        sent = int(exchange.received.query["resourceVersion"])
        while not exchange.ended.is_set():
            with self._changed:
                self._changed.wait(0.05)
                due = [(kind, one) for kind, one in self.events if int(one["metadata"]["resourceVersion"]) > sent]
            for kind, lease in due:
                sent = int(lease["metadata"]["resourceVersion"])
                exchange.chunk(json.dumps({"type": kind, "object": lease}).encode() + b"\n")


@dataclass
class Heard:
    """What an elector reported, with the time of each."""

    terms: list[LeaseUntil] = field(default_factory=list)
    leading: list[RollCall] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    times_s: dict[str, float] = field(default_factory=dict)
    fail_on_term: int = 0
    clock: Callable[[], float] = field(default=time.monotonic, compare=False)

    def on_term(self, term: LeaseUntil) -> None:
        self.times_s.setdefault("term", self.clock())
        self.terms.append(term)
        if len(self.terms) == self.fail_on_term:
            raise ZeroDivisionError("a bug")

    def on_leading(self, roll_call: RollCall) -> None:
        self.times_s.setdefault("leading", self.clock())
        self.leading.append(roll_call)

    def on_lost(self, reason: str) -> None:
        self.times_s.setdefault("lost", self.clock())
        self.lost.append(reason)


StartElector = Callable[..., tuple[Elector, Heard]]


def make_elector(
    connection: Connection,
    identity: str,
    settings: ElectionSettings = QUICK,
    times: Times = REAL_TIMES,
    names: tuple[str, ...] = ("vane",),
) -> tuple[Elector, Heard]:
    heard = Heard(clock=times.clock)
    return Elector(connection, identity, settings, names, heard, times=times), heard


def leading(started: tuple[Elector, Heard]) -> tuple[Elector, Heard]:
    elector, heard = started
    wait_until(lambda: heard.leading)
    assert elector.is_leading
    return elector, heard
