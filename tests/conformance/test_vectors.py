"""Every case that needs nothing which is not built has to be answered as kube-scheduler 1.37.1 did."""

from __future__ import annotations

from collections import Counter

import pytest

from scheduler.framework.profile import Enabled, Profile
from scheduler.plugins import default_chain
from tests.builders import default_profile
from tests.conformance.cases import DATA, Case, load
from tests.conformance.compare import compare

CASES = list(load(sorted(DATA.glob("*.jsonl.gz"))))
COMPARABLE = [case for case in CASES if not case.needs()]

NEED_MORE = {"resources": 3, "preemption": 3}
"""How many cases per family wait for something that is not built; fewer once it is."""


@pytest.mark.parametrize("case", COMPARABLE, ids=lambda case: case.name)
def test_answers_as_kube_scheduler(case: Case) -> None:
    _, differences = compare(case, default_profile())

    assert differences == []


def test_the_cases_that_need_more_are_known() -> None:
    waiting = Counter(case.family for case in CASES if case.needs())

    assert waiting == NEED_MORE


@pytest.mark.parametrize(
    ("plugin", "field"),
    [
        pytest.param("TaintToleration", "total", id="another weight of a score shows in the totals"),
        pytest.param("NodeResourcesFit", "weights", id="and in the weights"),
    ],
)
def test_the_comparison_sees_a_wrong_weight(plugin: str, field: str) -> None:
    chain = [Enabled(one.plugin, one.weight + (one.plugin.name == plugin)) for one in default_chain()]
    profile = Profile.build("vane", chain)
    scored = next(case for case in COMPARABLE if "scores" in case.expect)

    _, differences = compare(scored, profile)

    assert field in {one.field for one in differences}


@pytest.mark.parametrize(
    "plugin", ["TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit", "InterPodAffinity"]
)
def test_the_comparison_sees_a_missing_plugin(plugin: str) -> None:
    profile = Profile.build("vane", [one for one in default_chain() if one.plugin.name != plugin])

    assert any(compare(case, profile)[1] for case in COMPARABLE)
