"""What a node publishes beside what it advertises, and the columns of it."""

from __future__ import annotations

import pytest

from scheduler.model.nodes import NodeTable
from scheduler.model.real_allocatable import ANNOTATION, real_figures
from scheduler.model.requests import resource_amounts
from scheduler.model.views import NodeView
from tests.builders import make_node


def withheld(text: str) -> tuple[dict[str, int], str]:
    node = make_node("n", cpu="10", memory="40Gi", annotations={ANNOTATION: text})
    figures = real_figures(node, resource_amounts(node.status.allocatable))
    assert figures.is_published
    return dict(figures.withheld), figures.problem


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param('{"cpu": "8", "memory": "32Gi"}', {"cpu": 2_000, "memory": 8 << 30}, id="both"),
        pytest.param('{"cpu": 8}', {"cpu": 2_000}, id="a number, and memory as advertised"),
        pytest.param('{"cpu": 7.5}', {"cpu": 2_500}, id="a fraction"),
        pytest.param('{"cpu": "7500.9m"}', {"cpu": 2_500}, id="half a millicore is none"),
        pytest.param('{"cpu": "11"}', {}, id="more than advertised: advertised counts"),
        pytest.param('{"cpu": "1e999"}', {}, id="far more than advertised"),
        pytest.param('{"cpu": "0"}', {"cpu": 10_000}, id="nothing is real"),
        pytest.param('{"nvidia.com/gpu": 4}', {}, id="what is not advertised"),
        pytest.param("{}", {}, id="nothing named"),
    ],
)
def test_what_is_advertised_beyond_the_real_figure(text: str, expected: dict[str, int]) -> None:
    assert withheld(text) == (expected, "")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param("", "JSON", id="empty"),
        pytest.param("8", "Expected `object`", id="a number"),
        pytest.param('{"cpu": null}', "Expected", id="null"),
        pytest.param('{"cpu": "eight"}', "'eight'", id="no quantity"),
        pytest.param('{"cpu": "-1"}', "0 or more", id="negative"),
        pytest.param('{"cpu": "8", "memroy": "1Gi"}', "'memroy'", id="no resource"),
        pytest.param('{"pods": 30}', "'pods'", id="Pods are no resource that is requested"),
        pytest.param("[" * 5_000, "annotation", id="nested too deep"),
    ],
)
def test_what_cannot_be_read_withholds_nothing_and_says_why(text: str, named: str) -> None:
    amounts, problem = withheld(text)

    assert amounts == {}
    assert named in problem


def test_a_node_without_the_annotation_publishes_nothing() -> None:
    assert not real_figures(make_node("n"), {"cpu": 4_000}).is_published


def test_columns_follow_the_nodes() -> None:
    table = NodeTable()
    for number in range(100):
        table.set_node(make_node(f"n{number}", cpu="4", annotations={ANNOTATION: '{"cpu": "3"}'}))
    table.set_node(make_node("n1", cpu="4"))
    table.set_node(make_node("n2", cpu="4", annotations={ANNOTATION: "?"}))
    view = NodeView(table)
    column = view.withheld("cpu")

    assert column is not None
    assert column.tolist() == [1_000, 0, 0] + [1_000] * 97
    assert view.publishes.tolist() == [True, False, True] + [True] * 97
    assert view.withheld("memory") is None
    assert list(table.unread_figures) == ["n2"]

    for number in range(100):
        table.remove_node(f"n{number}")
    assert table.withheld == {}
    assert table.unread_figures == {}
    assert not table.publishes.any()
