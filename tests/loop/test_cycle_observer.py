"""What the metrics say of extension points and plugins after attempts that end in different ways."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from scheduler.framework.plugin import FilterPlugin, ScorePlugin
from scheduler.framework.status import Rejection, ScoreTerm
from scheduler.model.arrays import Rows
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from tests.builders import make_node, make_pod
from tests.loop.harness import Harness


class Fragile(FilterPlugin, ScorePlugin):
    """Raises at one of its points for Pods that are named after it."""

    def filter(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        if pod.pod.metadata.name == "filter":
            raise RuntimeError("it broke")
        return ()

    def score(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[ScoreTerm]:
        if pod.pod.metadata.name == "score":
            raise RuntimeError("it broke")
        return ()


@pytest.fixture
def harness() -> Harness:
    harness = Harness(extra_plugins=[Fragile()])
    harness.list_nodes(make_node("a", cpu="4"), make_node("b", cpu="4"))
    harness.list_pods()
    return harness


def points(harness: Harness) -> dict[tuple[str, str], int]:
    """Return how often each of the points of `decide` ended with which status."""
    pattern = r'extension_point_duration_seconds_count\{extension_point="(\w+)",profile="vane",status="(\w+)"\} (\d+)'
    found = re.findall(pattern, harness.metrics_page())
    decided = ("PreFilter", "Filter", "PostFilter", "PreScore", "Score")
    return {(point, status): int(count) for point, status, count in found if point in decided}


@pytest.mark.parametrize(
    ("name", "cpu", "expected"),
    [
        ("fits", "1", {"PreFilter": "Success", "Filter": "Success", "PreScore": "Success", "Score": "Success"}),
        # That no node passes is no failure of the point, as with kube-scheduler.
        ("big", "64", {"PreFilter": "Success", "Filter": "Success", "PostFilter": "Unschedulable"}),
        ("filter", "1", {"PreFilter": "Success", "Filter": "Error"}),
        ("score", "1", {"PreFilter": "Success", "Filter": "Success", "PreScore": "Success", "Score": "Error"}),
    ],
)
def test_every_point_ends_with_a_status(harness: Harness, name: str, cpu: str, expected: dict[str, str]) -> None:
    harness.see(make_pod(name, cpu=cpu))
    harness.run()
    assert points(harness) == {(point, status): 1 for point, status in expected.items()}


def test_evaluations_are_counted_for_every_attempt_and_durations_for_one_in_ten(harness: Harness) -> None:
    for i in range(20):
        harness.see(make_pod(f"p{i}", cpu="10m"))
    harness.run()
    for _ in range(2):  # the page does not count them twice
        page = harness.metrics_page()
        for point in ("Filter", "Score"):
            labels = f'extension_point="{point}",plugin="Fragile",profile="vane"'
            assert f"scheduler_plugin_evaluation_total{{{labels}}} 20.0" in page
            labels = f'extension_point="{point}",plugin="Fragile",status="Success"'
            assert f"scheduler_plugin_execution_duration_seconds_count{{{labels}}} 2.0" in page


def test_a_plugin_that_raised_is_timed_as_failed(harness: Harness) -> None:
    harness.see(make_pod("filter", cpu="1"))
    harness.run()
    labels = 'extension_point="Filter",plugin="Fragile",status="Error"'
    assert f"scheduler_plugin_execution_duration_seconds_count{{{labels}}} 1.0" in harness.metrics_page()
