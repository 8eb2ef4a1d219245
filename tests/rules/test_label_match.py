"""What label matches refuse."""

from __future__ import annotations

import pytest

from scheduler.model.arrays import BoolArray
from scheduler.model.memo import Memo
from scheduler.model.rules import LabelMatch, Rule
from scheduler.model.snapshot import Snapshot
from scheduler.rules.kinds import reading_of
from tests.builders import NO_SIGNALS, cluster_of, make_node, make_pod


def refused(wanted: str | None, node_label: str, snapshot: Snapshot) -> BoolArray | None:
    pod = make_pod(labels={} if wanted is None else {"team": wanted})
    return reading_of(Rule("own", label_match=LabelMatch("team", node_label)), None, Memo()).tripped(pod, snapshot)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param("red", [False, True, True], id="the value of one node"),
        pytest.param("green", [True, True, True], id="a value that no node has"),
        pytest.param("", [True, True, True], id="an empty value is a value"),
        pytest.param(None, None, id="a Pod without the label"),
    ],
)
def test_a_label_match_refuses_other_values_and_none(wanted: str | None, expected: list[bool] | None) -> None:
    nodes = [make_node("a", labels={"own": "red"}), make_node("b", labels={"own": "blue"}), make_node("c")]
    snapshot = Snapshot(cluster_of(nodes), NO_SIGNALS, 0.0)

    mismatch = refused(wanted, "own", snapshot)

    assert (None if mismatch is None else mismatch.tolist()) == expected


def test_a_label_that_no_node_has_is_matched_by_none() -> None:
    mismatch = refused("red", "nowhere", Snapshot(cluster_of([make_node("a")]), NO_SIGNALS, 0.0))
    assert mismatch is not None
    assert mismatch.tolist() == [True]
