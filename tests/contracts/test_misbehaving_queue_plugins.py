"""What a third party's PreEnqueue or QueueSort plugin can do wrong: its Pod's attempt fails, all others go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scheduler.framework.plugin import PreEnqueuePlugin, QueueSortPlugin
from scheduler.framework.queued import QueuedEntity
from scheduler.framework.status import Code, Status
from scheduler.model.pods import PodInfo
from tests.builders import make_node, make_pod
from tests.loop.harness import Harness

Answer = Callable[[PodInfo], Any]


class Gate(PreEnqueuePlugin):
    """Behaves but for the Pod named bad."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        return self._answer(pod) if pod.pod.metadata.name == "bad" else None


class Order(QueueSortPlugin):
    """Behaves but for the Pod named bad."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def sort_key(self, entity: QueuedEntity) -> tuple[Any, ...]:
        if entity.pod.pod.metadata.name == "bad":
            return self._answer(entity.pod)  # type: ignore[no-any-return]
        return (-entity.priority, entity.timestamp_s)


def raises(_: PodInfo) -> Any:
    raise ValueError("42 is wrong")


def message_of_bad(harness: Harness) -> str:
    """Return what the owner of the bad Pod reads; the others are bound."""
    harness.list_nodes(make_node("n", cpu="4", memory="8Gi", pods=10))
    harness.list_pods()
    for name in ("first", "bad", "last"):
        harness.see(make_pod(name))
    harness.run()
    assert [bind.pod.name for bind in harness.binder.binds] == ["first", "last"]
    (report,) = harness.binder.reports
    assert (report.pod.name, report.reason) == ("bad", "SchedulerError")
    assert harness.world.queue.place_of("default/bad") == "error-backoff"
    return report.message


TO_REFUSE = "from PreEnqueue, it should be a refusal or None"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(raises, 'running PreEnqueue plugin "Gate": 42 is wrong', id="raises"),
        pytest.param(lambda _: False, f'plugin "Gate" returns False {TO_REFUSE}', id="a bool"),
        pytest.param(
            lambda _: Status(Code.SKIP),
            f'plugin "Gate" returns Status(code=<Code.SKIP: 1>, reasons=()) {TO_REFUSE}',
            id="a skip",
        ),
    ],
)
def test_preenqueue(answer: Answer, expected: str) -> None:
    assert message_of_bad(Harness([Gate(answer)])) == expected


TUPLE = "from QueueSort, it should be a tuple of numbers, texts or bytes, none of them NaN"
BEFORE = "from QueueSort, it should be a tuple of a number, a number as before"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(raises, 'running QueueSort plugin "Order": 42 is wrong', id="raises"),
        pytest.param(lambda _: None, f'plugin "Order" returns None {TUPLE}', id="None"),
        pytest.param(lambda _: 7, f'plugin "Order" returns 7 {TUPLE}', id="a number"),
        pytest.param(lambda _: (), f'plugin "Order" returns () {TUPLE}', id="nothing"),
        pytest.param(lambda _: (None, 1), f'plugin "Order" returns (None, 1) {TUPLE}', id="a None"),
        pytest.param(lambda _: (float("nan"), 1), f'plugin "Order" returns (nan, 1) {TUPLE}', id="a NaN"),
        pytest.param(lambda _: (1,), f'plugin "Order" returns (1,) {BEFORE}', id="another length"),
        pytest.param(lambda _: ("a", 1), f"plugin \"Order\" returns ('a', 1) {BEFORE}", id="another kind"),
    ],
)
def test_queuesort(answer: Answer, expected: str) -> None:
    assert message_of_bad(Harness([Order(answer)], without=("PrioritySort",))) == expected


def test_whole_numbers_and_fractions_compare() -> None:
    harness = Harness([Order(lambda _: (0.5, 3))], without=("PrioritySort",))
    harness.list_nodes(make_node("n", cpu="4", memory="8Gi", pods=10))
    harness.list_pods()
    for name in ("first", "bad"):
        harness.see(make_pod(name))
    harness.run()
    assert [bind.pod.name for bind in harness.binder.binds] == ["first", "bad"]
