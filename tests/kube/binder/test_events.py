from __future__ import annotations

import pytest

from scheduler.kube.binder import events
from scheduler.kube.binder.event_series import FINISH_S, MAX_KEYS, EventSeries
from scheduler.kube.binder.messages import BindRequest, EventRequest, FailureReport, PodRef

POD = PodRef(namespace="shop", name="web-1", uid="u1", resource_version="42")
NOW_NS = 1_700_000_000_123_456_789


def never_unique() -> str:
    raise AssertionError("the name fits")


def bind_request() -> BindRequest:
    return BindRequest(pod=POD, node_name="n1", scheduler_name="vane")


def report(**changes: object) -> FailureReport:
    fields: dict[str, object] = {
        "pod": POD,
        "scheduler_name": "vane",
        "reason": "Unschedulable",
        "message": "0/1 nodes are available: 1 Insufficient cpu.",
        "generation": 3,
    }
    return FailureReport(**{**fields, **changes})  # type: ignore[arg-type] # a table of keyword arguments


def test_binding_names_uid_and_node() -> None:
    assert events.binding(bind_request(), POD) == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "web-1", "namespace": "shop", "uid": "u1"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
    }


def test_scheduled_event_has_kube_schedulers_fields() -> None:
    body = events.event(events.scheduled_event(bind_request()), "host-1", NOW_NS, never_unique)
    assert body == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "web-1.17979cfe3d85cd15", "namespace": "shop"},
        "eventTime": "2023-11-14T22:13:20.123456Z",
        "reportingController": "vane",
        "reportingInstance": "vane-host-1",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {
            "kind": "Pod",
            "namespace": "shop",
            "name": "web-1",
            "uid": "u1",
            "apiVersion": "v1",
            "resourceVersion": "42",
        },
        "note": "Successfully assigned shop/web-1 to n1",
        "type": "Normal",
    }


def test_failed_scheduling_event() -> None:
    request = events.failed_scheduling_event(report())
    assert (request.type, request.reason, request.action) == ("Warning", "FailedScheduling", "Scheduling")
    assert request.note == "0/1 nodes are available: 1 Insufficient cpu."


def test_related_pod_is_referenced() -> None:
    request = EventRequest(
        pod=POD,
        scheduler_name="vane",
        type="Normal",
        reason="Preempted",
        action="Preempting",
        note="x",
        related=PodRef(namespace="shop", name="big", uid="u2"),
    )
    related = events.event(request, "h", NOW_NS, never_unique)["related"]
    assert related == {"kind": "Pod", "namespace": "shop", "name": "big", "uid": "u2", "apiVersion": "v1"}


@pytest.mark.parametrize(
    ("note", "cut"),
    [
        pytest.param("a" * 1024, "a" * 1024, id="fits"),
        pytest.param("a" * 1025, "a" * 1020 + " ...", id="one too many"),
        pytest.param("ü" * 513, "ü" * 510 + " ...", id="counted in bytes"),
        pytest.param("a" + "ü" * 512, "a" + "ü" * 509 + " ...", id="not within a character"),
    ],
)
def test_notes_are_cut_to_1024_bytes(note: str, cut: str) -> None:
    assert events.truncate_note(note) == cut
    assert len(cut.encode()) <= 1024


def test_long_names_and_instances() -> None:
    assert events.event_name("a" * 250, NOW_NS, lambda: "some-uuid") == "some-uuid"
    assert len(events.reporting_instance("vane", "h" * 200)) == 128


def test_condition_of_a_pod_that_had_none() -> None:
    assert events.condition_patch(report(), NOW_NS) == {
        "metadata": {"uid": "u1"},
        "status": {
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "0/1 nodes are available: 1 Insufficient cpu.",
                    "observedGeneration": 3,
                    "lastProbeTime": None,
                    "lastTransitionTime": "2023-11-14T22:13:20Z",
                }
            ]
        },
    }


def test_transition_time_is_kept_while_the_status_stays() -> None:
    patch = events.condition_patch(
        report(current_status="False", current_reason="Unschedulable", current_message="old"), NOW_NS
    )
    assert patch is not None
    assert "lastTransitionTime" not in patch["status"]["conditions"][0]


def test_an_equal_condition_is_not_written_again() -> None:
    same = report(
        current_status="False",
        current_reason="Unschedulable",
        current_message="0/1 nodes are available: 1 Insufficient cpu.",
        generation=4,
    )
    assert events.condition_patch(same, NOW_NS) is None


@pytest.mark.parametrize(("name", "written"), [("n1", "n1"), ("", None)])
def test_nomination_is_set_or_cleared(name: str, written: str | None) -> None:
    patch = events.condition_patch(report(nominated_node_name=name), NOW_NS)
    assert patch is not None
    assert patch["status"]["nominatedNodeName"] == written


class Clock:
    def __init__(self) -> None:
        self.ns = NOW_NS

    def __call__(self) -> int:
        return self.ns

    def advance(self, seconds: float) -> None:
        self.ns += int(seconds * 1e9)


def observed(series: EventSeries, note: str = "same", pod: PodRef = POD) -> int | None:
    """Return the count of what is to be written, None for nothing."""
    record = series.observe(events.failed_scheduling_event(report(message=note, pod=pod)))
    return None if record is None else record.count


def test_the_first_repeat_makes_a_series_and_later_ones_are_only_counted() -> None:
    clock = Clock()
    series = EventSeries("h", clock, never_unique)
    # The note is no part of the key, as in client-go: a changed text is still the same Event.
    assert [observed(series, note) for note in ("a", "b", "c", "d")] == [1, 2, None, None]
    clock.advance(FINISH_S + 1)
    (ended,) = series.finish()
    assert ended.count == 4
    assert ended.patch() == {"series": {"count": 4, "lastObservedTime": "2023-11-14T22:13:20.123456Z"}}
    assert ended.path == "/apis/events.k8s.io/v1/namespaces/shop/events/web-1.17979cfe3d85cd15"
    assert observed(series) == 1


def test_a_pods_next_version_is_another_event() -> None:
    series = EventSeries("h", Clock(), never_unique)
    assert observed(series) == 1
    assert observed(series, pod=PodRef(namespace="shop", name="web-1", uid="u1", resource_version="43")) == 1


def test_single_events_are_forgotten_without_a_word() -> None:
    clock = Clock()
    series = EventSeries("h", clock, never_unique)
    observed(series)
    clock.advance(FINISH_S + 1)
    assert series.finish() == []
    assert len(series) == 0


def test_running_series_are_renewed() -> None:
    series = EventSeries("h", Clock(), never_unique)
    observed(series)
    assert series.refresh() == []
    observed(series)
    assert [record.count for record in series.refresh()] == [2]


def test_the_memory_is_bounded() -> None:
    series = EventSeries("h", Clock(), never_unique)
    for number in range(MAX_KEYS + 10):
        observed(series, pod=PodRef(namespace="shop", name=f"p{number}", uid=f"u{number}"))
    assert len(series) == MAX_KEYS
