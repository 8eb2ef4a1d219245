"""Submits one Pod to one scheduler after the other, from the same state, and tells what came of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from tests.conformance.generate.draw import Fields
from tests.e2e.differential.drawing import DrawnPod
from tests.e2e.differential.standing import Cluster, pods_of
from tests.support.controlplane import Component
from tests.support.kubeapi import KubeApi
from tests.support.vane import VaneProcess
from tests.support.waiting import wait_until

REFERENCE, VANE = "reference", "vane"
FAULT = "SchedulerError"
DECIDED_IN_S = 30.0
_PAGE = 50


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a scheduler did with a Pod: `node`, or else the condition's reason and message and the Event's note."""

    node: str
    reason: str = ""
    message: str = ""
    note: str = ""
    nominated: str = ""


class Submitted(NamedTuple):
    """A Pod as a scheduler got it, and what came of it.

    record
        Vane's record of its first attempt, as /decisions gives it; empty where the attempt ended by a fault, and for
        the other scheduler.
    """

    pod: Fields
    outcome: Outcome
    record: Fields


class Turn(NamedTuple):
    """One Pod and both outcomes.

    before
        All objects as they were when either scheduler got the Pod.
    evicted
        Whom each scheduler evicted for it, as namespace/name; empty where nobody can be.
    """

    drawn: DrawnPod
    before: dict[str, list[Fields]]
    reference: Outcome
    by_vane: Submitted
    evicted: Mapping[str, Sequence[str]]

    @property
    def vane(self) -> Outcome:
        return self.by_vane.outcome


class Both:
    """Both schedulers beside one cluster.

    No waiting between two Pods is needed: all Pods come to a scheduler by one watch, in the order in which they were
    written, and it handles them in this order. So who gets a Pod has seen every bind and delete before it. Nothing
    but Pods changes. `wait_until_they_know` holds it against the schedulers' own counts.
    """

    def __init__(self, api: KubeApi, cluster: Cluster, reference: Component, vane: VaneProcess) -> None:
        self.cluster = cluster
        self._api = api
        self._pages: Sequence[Callable[[], str]] = (reference.metrics, lambda: vane.page("metrics"))
        self._vane = vane

    def take_turns(self, number: int) -> Turn:
        """Submit a Pod to both; who has the first turn changes, and what the second one binds stays."""
        drawn = self.cluster.pods[number]
        before = self.cluster.objects()
        first, second = in_turn(number)
        submitted = {}
        for scheduler in (first, second):
            submitted[scheduler] = self.submit(drawn, scheduler)
            if scheduler == first or not submitted[second].outcome.node:
                self.withdraw(drawn)
        return Turn(drawn, before, submitted[REFERENCE].outcome, submitted[VANE], {})

    def wait_until_they_know(self) -> None:
        """Wait until both count the nodes and placed Pods that there are, and assume none."""
        sizes = {
            "nodes": len(self.cluster.objects()["nodes"]),
            "pods": self.cluster.n_placed(),
            "assumed_pods": 0,
        }
        expected = {f'scheduler_cache_size{{type="{type_}"}}': float(size) for type_, size in sizes.items()}
        for page in self._pages:
            wait_until(partial(_shows, page, expected), 15.0, f"the cache of {expected}")

    def submit(self, drawn: DrawnPod, scheduler: str) -> Submitted:
        """Create the Pod for a scheduler, and wait until that has decided."""
        manifest = drawn.manifest
        pod: Fields = self._api.post(
            pods_of(manifest), manifest | {"spec": manifest["spec"] | {"schedulerName": scheduler}}
        )
        pod["metadata"].pop("managedFields", None)
        uid = pod["metadata"]["uid"]
        outcome = wait_until(
            lambda: self._outcome(drawn, uid), DECIDED_IN_S, f"what {scheduler} does with {drawn.name}"
        )
        assert outcome is not None
        return Submitted(pod, outcome, self._record(uid) if scheduler == VANE and outcome.reason != FAULT else {})

    def withdraw(self, drawn: DrawnPod) -> None:
        """Delete the Pod, and wait until it is gone."""
        path = f"{pods_of(drawn.manifest)}/{drawn.name}"
        self._api.delete(path, gracePeriodSeconds=0)
        self._api.wait_gone(path)

    def _outcome(self, drawn: DrawnPod, uid: str) -> Outcome | None:
        pod = self._api.get(f"{pods_of(drawn.manifest)}/{drawn.name}")
        if pod["spec"].get("nodeName"):
            return Outcome(pod["spec"]["nodeName"])
        conditions = [one for one in pod["status"].get("conditions", []) if one["type"] == "PodScheduled"]
        events = self._api.events(drawn.name, pod["metadata"]["namespace"], "FailedScheduling")
        notes = [event["message"] for event in events if event["involvedObject"]["uid"] == uid]
        if not conditions or not notes:
            return None
        nominated = pod["status"].get("nominatedNodeName", "")
        return Outcome("", conditions[0]["reason"], conditions[0].get("message", ""), notes[0], nominated)

    def _record(self, uid: str) -> Fields:
        found = wait_until(lambda: self._records(uid), 10.0, f"Vane's record of {uid}")
        return found[0]

    def _records(self, uid: str) -> list[Fields]:
        page = self._vane.page(f"decisions?limit={_PAGE}")
        decisions: list[Fields] = json.loads(page)["decisions"] if page else []
        return [record for record in decisions if record["uid"] == uid]


def in_turn(number: int) -> tuple[str, str]:
    """Return the scheduler that gets the Pod of that number first, and the other one."""
    return (REFERENCE, VANE) if number % 2 == 0 else (VANE, REFERENCE)


def _shows(page: Callable[[], str], expected: dict[str, float]) -> bool:
    return _values(page(), expected) == expected


def _values(page: str, wanted: dict[str, Any]) -> dict[str, float]:
    lines = (line.rpartition(" ") for line in page.splitlines())
    return {series: float(value) for series, _, value in lines if series in wanted}


def shown(turn: Turn) -> str:
    """Return all that one needs to look into a turn, but the case itself."""
    return "\n".join(
        (
            f"{turn.drawn.name}: {json.dumps(turn.drawn.manifest)}",
            f"kube-scheduler: {turn.reference}",
            f"Vane: {turn.vane}",
            f"evicted: {dict(turn.evicted)}",
            f"record: {json.dumps(turn.by_vane.record)}",
        )
    )
