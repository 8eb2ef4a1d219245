"""Lets both schedulers make room for a Pod, one after the other, and puts back who had to go."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import count

from tests.conformance.generate import preemption
from tests.conformance.generate.draw import Draw, Fields
from tests.e2e.differential.drawing import DrawnPod, as_submitted, priority_class
from tests.e2e.differential.standing import pods_of
from tests.e2e.differential.turns import REFERENCE, VANE, Both, Outcome, Turn, in_turn
from tests.support.kubeapi import KubeApi
from tests.support.waiting import wait_until

_PREEMPTING = re.compile(r"preempting (\d+) victims")
_CLASSES = {value: f"value-{value}".replace("--", "-minus-") for value in (-10, -5, 0, 5, 50, 100, 500, 1000, 2000)}
_POLITE = "polite"
_TERMINATING_IN_S = 15.0


def draw_full_cluster(seed: int, n_nodes: int) -> dict[str, list[Fields]]:
    """Return nodes full of Pods of many priorities, and budgets.

    Of a node's Pods of one priority, the one that started last goes first. So no two of them start in the same second:
    among equals their order on the node would count, and victims that come back stand behind the others.
    """
    draw = Draw(seed, "full", 0)
    draw.add_nodes(n_nodes, n_nodes)
    preemption.full_nodes(draw)
    preemption.budgets(draw)
    for number, pod in enumerate(draw.placed):
        pod["status"]["startTime"] = pod["status"]["startTime"].replace(":00Z", f":{number % 60:02}Z")
        _name_priority(pod)
    for namespace in {pod["metadata"]["namespace"] for pod in draw.placed}:
        draw.add("namespaces", {"metadata": {"name": namespace}})
    for value, name in _CLASSES.items():
        draw.add("priorityclasses", priority_class(name, value))
    draw.add("priorityclasses", priority_class(_POLITE, 3000) | {"preemptionPolicy": "Never"})
    return as_submitted(draw.objects)


def draw_urgent_pods(seed: int) -> Iterator[DrawnPod]:
    """Yield Pods without end that were drawn for full nodes; one in five evicts nobody."""
    for number in count():
        draw = Draw(seed, "urgent", number)
        draw.target["metadata"]["name"] = f"urgent-{number:03d}"
        draw.add_nodes()
        preemption.full_nodes(draw)
        _name_priority(draw.target)
        (manifest,) = as_submitted({"pods": [draw.target]})["pods"]
        if draw.often(0.2):
            manifest["spec"]["priorityClassName"] = _POLITE
        yield DrawnPod(manifest, {})


def _name_priority(pod: Fields) -> None:
    if "priority" in pod["spec"]:
        pod["spec"]["priorityClassName"] = _CLASSES[pod["spec"]["priority"]]


def evict_in_turn(api: KubeApi, both: Both, number: int) -> Turn:
    """Submit a Pod to both, each time to the same state: the Pod and its victims' marks are gone again after it."""
    drawn = both.cluster.pods[number]
    before = both.cluster.objects()
    submitted, evicted = {}, {}
    for scheduler in in_turn(number):
        submitted[scheduler] = both.submit(drawn, scheduler)
        victims = _victims(both, submitted[scheduler].outcome)
        evicted[scheduler] = [_key(pod) for pod in victims]
        both.withdraw(drawn)
        _bring_back(api, both, victims, before)
    return Turn(drawn, before, submitted[REFERENCE].outcome, submitted[VANE], evicted)


def _victims(both: Both, outcome: Outcome) -> list[Fields]:
    """Wait until as many Pods are terminating as the message tells; without a kubelet they stay so."""
    told = _PREEMPTING.search(outcome.message)
    n_victims = int(told[1]) if told else 0

    def terminating() -> list[Fields]:
        return [pod for pod in both.cluster.objects()["pods"] if "deletionTimestamp" in pod["metadata"]]

    wait_until(lambda: len(terminating()) >= n_victims, _TERMINATING_IN_S, f"{n_victims} victims terminating")
    return terminating()


def _bring_back(api: KubeApi, both: Both, victims: Sequence[Fields], before: dict[str, list[Fields]]) -> None:
    known = {_key(pod): pod for pod in before["pods"]}
    for pod in victims:
        path = f"{pods_of(pod)}/{pod['metadata']['name']}"
        api.delete(path, gracePeriodSeconds=0)
        api.wait_gone(path)
        both.cluster.place(known[_key(pod)])


def _key(pod: Fields) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
