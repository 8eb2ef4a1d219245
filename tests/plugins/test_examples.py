"""The two example plugins, enabled by import path as a user would, and the base classes for plugins node by node."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler.app.profiles import build_profiles
from scheduler.decision.decide import decide
from scheduler.errors import ConfigError, PluginError
from scheduler.framework.per_node import NodeInfo, PerNodeFilter, PerNodeScore
from scheduler.framework.plugin import Plugin
from scheduler.framework.profile import Enabled, Profile
from scheduler.framework.status import Code
from scheduler.model.pods import PodInfo
from scheduler.plugins import default_chain
from scheduler.plugins.examples.label_score import LabelScore, LabelScoreArgs
from scheduler.plugins.examples.team_nodes import TEAM, TeamNodes
from scheduler.settings.load import load
from tests.builders import cluster_of, make_node, make_pod, snapshot_of
from tests.configuration import write
from tests.plugins.run import final_scores, refusals

BLOCK = """\
scheduler:
  profiles:
    - schedulerName: vane
      plugins:
        multiPoint:
          enabled:
            - {name: "scheduler.plugins.examples.team_nodes:TeamNodes"}
            - {name: "scheduler.plugins.examples.label_score:LabelScore", weight: 100}
      pluginConfig:
        - name: LabelScore
          args: {label: example.com/price, worst: 10, best: 0}
"""


def profile_of(*plugins: Plugin) -> Profile:
    return Profile.build("vane", [*default_chain(), *(Enabled(plugin) for plugin in plugins)])


def team(name: str, team: str, node: str = "") -> PodInfo:
    return make_pod(name, node=node, labels={TEAM: team})


def test_both_place_a_pod_from_a_configuration(tmp_path: Path) -> None:
    profile = build_profiles(load({"config": write(tmp_path, BLOCK)}, {}))["vane"]
    nodes = [
        make_node(name, labels={"example.com/price": price}) for name, price in [("a", "1"), ("b", "2"), ("c", "3")]
    ]
    snapshot = snapshot_of(nodes, [team("red", "red", "a")])

    assert decide(team("x", "red"), snapshot, profile).node_name == "a"
    decision = decide(team("y", "blue"), snapshot, profile)
    assert decision.node_name == "b"
    assert [(refusal.plugin, refusal.reason) for refusal in decision.diagnosis.refusals] == [
        ("TeamNodes", "node(s) belonged to another team")
    ]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ("worst: 10, best: ten", r":13:61: .*args\.best: Expected `float`, got `str`"),
        ("worst: 10, best: 10", r":13:17: .*args: worst and best: got 10 and 10\. Write two different numbers"),
        ("worst: 10, best: .nan", r":13:17: .*args: worst and best: got 10 and nan\. Write two different numbers"),
    ],
)
def test_arguments_of_the_example_are_checked(tmp_path: Path, args: str, expected: str) -> None:
    config = write(tmp_path, BLOCK.replace("worst: 10, best: 0", args))
    with pytest.raises(ConfigError, match=expected):
        build_profiles(load({"config": config}, {}))


@pytest.mark.parametrize(
    ("worst", "best", "values", "expected"),
    [
        (0, 10, ["0", "5", "10"], [0, 50, 100]),
        (10, 0, ["0", "5", "10"], [100, 50, 0]),
        (0, 10, ["-3", "2.5", "99"], [0, 25, 100]),
        (10, 0, ["1", "cheap", None], [90, 0, 0]),
        (0, 10, ["nan", "inf", "1e300"], [0, 0, 0]),
        (0, 10, [None, None, None], None),
    ],
)
def test_label_score(worst: float, best: float, values: Sequence[str | None], expected: list[float] | None) -> None:
    nodes = [
        make_node(f"n{i}", labels={} if value is None else {"example.com/price": value})
        for i, value in enumerate(values)
    ]
    plugin = LabelScore(LabelScoreArgs(label="example.com/price", worst=worst, best=best))
    found = final_scores(plugin, make_pod(), snapshot_of(nodes))
    assert dict(found) == ({} if expected is None else {"LabelScore": expected})


def test_team_nodes() -> None:
    snapshot = snapshot_of(
        [make_node(name) for name in "abc"], [team("1", "red", "a"), team("2", "red", "a"), make_pod("3", node="c")]
    )
    refused = {"a": {("Unschedulable", "node(s) belonged to another team")}}
    assert refusals(TeamNodes(), team("x", "blue"), snapshot) == refused
    assert refusals(TeamNodes(), make_pod("x"), snapshot) == {}
    assert final_scores(TeamNodes(), team("x", "red"), snapshot) == {"TeamNodes": [20, 0, 0]}
    assert final_scores(TeamNodes(), make_pod("x"), snapshot) == {"TeamNodes": [0, 0, 0]}


class Small(PerNodeFilter, PerNodeScore):
    """Uses all that a NodeInfo has."""

    code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE

    def filter_node(self, pod: PodInfo, node: NodeInfo) -> str | None:
        if node.labels.get("size") == "small":
            return "node(s) were small"
        return "node(s) were busy" if node.requested("cpu") > node.allocatable("cpu") / 2 else None

    def score_node(self, pod: PodInfo, node: NodeInfo) -> float:
        return node.allocatable("example.com/gpu") + node.requested("example.com/never")


def test_a_node_shows_its_labels_resources_and_pods() -> None:
    nodes = [
        make_node("a", labels={"size": "small"}),
        make_node("b", cpu="2"),
        make_node("c", extended={"example.com/gpu": 3}),
    ]
    snapshot = snapshot_of(nodes, [make_pod("p", node="b", cpu="1500m")])
    assert refusals(Small(), make_pod(), snapshot) == {
        "a": {("UnschedulableAndUnresolvable", "node(s) were small")},
        "b": {("UnschedulableAndUnresolvable", "node(s) were busy")},
    }
    assert final_scores(Small(), make_pod(), snapshot) == {"Small": [0, 0, 3]}


def test_a_row_without_a_node_is_passed_over() -> None:
    state = cluster_of([make_node("a"), make_node("b")], [make_pod("p", node="a", cpu="3")])
    state.remove_node("a")
    snapshot = snapshot_of([])
    snapshot = type(snapshot)(state, snapshot.signals, 0.0)
    (rejections, terms) = (
        Small().filter(None, make_pod(), snapshot, slice(None)),
        Small().score(None, make_pod(), snapshot, np.array([1, 0])),
    )
    assert list(rejections) == []
    assert [term.values.tolist() for term in terms] == [[0.0, 0.0]]


class Sloppy(PerNodeFilter, PerNodeScore):
    """Answers what it was made with."""

    def __init__(self, reason: Any = None, score: Any = 0) -> None:
        self._reason = reason
        self._score = score

    def filter_node(self, pod: PodInfo, node: NodeInfo) -> str | None:
        return self._reason  # type: ignore[no-any-return]

    def score_node(self, pod: PodInfo, node: NodeInfo) -> float:
        return self._score  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("plugin", "expected"),
    [
        (
            Sloppy(reason=False),
            'running "Sloppy" filter plugin: filter_node returns False for node a, it should be a text or None',
        ),
        (
            Sloppy(score="high"),
            "running Score plugin \"Sloppy\": score_node returns 'high' for node a, it should be a number",
        ),
        (
            Sloppy(score=None),
            'running Score plugin "Sloppy": score_node returns None for node a, it should be a number',
        ),
        (Sloppy(score=101), 'plugin "Sloppy" returns an invalid score 101.0, it should in the range of'),
        (Sloppy(score=float("nan")), 'plugin "Sloppy" returns an invalid score nan, it should in the range of'),
    ],
)
def test_a_wrong_answer_names_plugin_node_and_value(plugin: Plugin, expected: str) -> None:
    with pytest.raises(PluginError) as caught:
        decide(make_pod(), snapshot_of([make_node("a"), make_node("b")]), profile_of(plugin))
    assert str(caught.value).startswith(expected)
