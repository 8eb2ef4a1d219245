"""What the deciding thread tells of its metrics: in slices that are the whole."""

from __future__ import annotations

import re

from scheduler.exposition import render
from scheduler.loop.pages.metrics import MetricsQuery
from tests.builders import make_node, make_pod
from tests.loop.harness import Harness


def test_the_metrics_page_comes_in_slices_that_are_the_whole() -> None:
    harness = Harness()
    harness.list_nodes(make_node("a", cpu="64"))
    harness.list_pods(make_pod("placed", node="a", cpu="1m"))
    whole = harness.page(MetricsQuery())
    assert sorted(whole.splitlines()) == sorted(render(harness.metrics.registry).splitlines())
    assert harness.page(MetricsQuery(), goes_on=True) == b""

    harness.seconds_per_look = 0.0006
    slices = harness.listing(MetricsQuery())

    assert len(slices) > 5
    names = [re.findall(rb"^# TYPE (\S+)", page, re.M) for page in (whole, b"".join(slices))]
    assert names[0] == names[1]
