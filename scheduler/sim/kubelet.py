"""The kubelets of all simulated nodes: bound Pods start, jobs end, and the ledger hears of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from scheduler.errors import InvalidObjectError
from scheduler.model.quantity import parse_quantity
from scheduler.sim.apiserver.failures import StatusError
from scheduler.sim.apiserver.resources import PODS
from scheduler.sim.apiserver.store import ObjectStore
from scheduler.sim.statistics import Ledger
from scheduler.sim.workloads import NAMESPACE, Arrival, Behaviour
from scheduler.sim.world import SimWorld

Json = dict[str, Any]

_START_S: Final = 0.3
_KEPT_S: Final = 3.0
"""How long a job that is done can still be looked at."""
_LEAST_CORES: Final = 0.1


class Kubelets:
    """Watches the store's Pods; `plans` are the arrivals by name, whose true behaviour only the nodes know."""

    def __init__(
        self,
        store: ObjectStore,
        world: SimWorld,
        ledger: Ledger,
        clock: Callable[[], float],
        plans: Mapping[str, Arrival],
    ) -> None:
        self._store = store
        self._world = world
        self._ledger = ledger
        self._clock = clock
        self._plans = plans
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._loop = asyncio.get_running_loop()
        self._unsubscribe = store.subscribe(PODS, self._changed)

    def stop(self) -> None:
        self._unsubscribe()
        for timer in self._timers.values():
            timer.cancel()

    def _changed(self, type_: str, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        if type_ == "DELETED":
            self._forget(uid)
        elif uid not in self._timers and pod["spec"].get("nodeName"):
            self._ledger.bound(uid, self._clock())
            # Not from within the change that is being told of: a store must not change under its listeners.
            self._timers[uid] = self._loop.call_later(_START_S, self._start, pod)

    def _start(self, pod: Json) -> None:
        metadata, node = pod["metadata"], pod["spec"]["nodeName"]
        if not self._world.knows(node):
            return
        plan = self._plans.get(metadata["name"]) if metadata["namespace"] == NAMESPACE else None
        behaviour = plan.behaviour if plan is not None else behaviour_of(pod)
        self._world.start(metadata["uid"], metadata["name"], node, behaviour)
        self._report(pod, _running(pod, self._clock()))
        if plan is not None:
            end = self._complete if plan.ends_by_itself else self._delete
            self._timers[metadata["uid"]] = self._loop.call_later(plan.life_s, end, pod)

    def _complete(self, pod: Json) -> None:
        self._world.stop(pod["metadata"]["uid"])
        self._report(pod, {"phase": "Succeeded"})
        self._timers[pod["metadata"]["uid"]] = self._loop.call_later(_KEPT_S, self._delete, pod)

    def _delete(self, pod: Json) -> None:
        metadata = pod["metadata"]
        try:
            self._store.delete(PODS, metadata["namespace"], metadata["name"], uid=metadata["uid"], grace_s=0)
        except StatusError:
            self._forget(metadata["uid"])  # a user was faster

    def _report(self, pod: Json, status: Json) -> None:
        metadata = pod["metadata"]
        patch = {"metadata": {"uid": metadata["uid"]}, "status": status}
        try:
            self._store.patch(PODS, metadata["namespace"], metadata["name"], patch, subresource="status")
        except StatusError:
            self._forget(metadata["uid"])  # gone meanwhile, or another Pod of that name

    def _forget(self, uid: str) -> None:
        self._world.stop(uid)
        timer = self._timers.pop(uid, None)
        if timer is not None:
            timer.cancel()


def behaviour_of(pod: Json) -> Behaviour:
    """Return what a Pod that a user created does: use exactly what it asks for."""
    asked = [c.get("resources", {}).get("requests", {}) for c in pod["spec"].get("containers", [])]
    try:
        cores = sum(float(parse_quantity(str(one.get("cpu", "0")))) for one in asked)
        memory = sum(float(parse_quantity(str(one.get("memory", "0")))) for one in asked)
    except InvalidObjectError:
        return Behaviour(_LEAST_CORES, 0.0)  # the scheduler has refused it already, if it was for Vane
    return Behaviour(max(cores, _LEAST_CORES), memory)


def _running(pod: Json, now_s: float) -> Json:
    now = f"{datetime.fromtimestamp(now_s, UTC):%Y-%m-%dT%H:%M:%SZ}"
    containers = [
        {
            "name": container["name"],
            "image": container.get("image", ""),
            "imageID": "",
            "containerID": f"simulated://{pod['metadata']['uid']}/{container['name']}",
            "ready": True,
            "started": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": now}},
        }
        for container in pod["spec"]["containers"]
    ]
    conditions = [
        {"type": type_, "status": "True", "lastTransitionTime": now}
        for type_ in ("Initialized", "ContainersReady", "Ready")
    ]
    return {"phase": "Running", "startTime": now, "containerStatuses": containers, "conditions": conditions}
