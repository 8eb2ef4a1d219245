"""Label selectors: what they match, what is refused, and when two of them are the same key."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from scheduler.errors import InvalidObjectError
from scheduler.model.selectors import EVERYTHING, NOTHING, selector_of, selector_of_set
from scheduler.model.structs import LabelSelector, Requirement


def selector(**fields: Any) -> LabelSelector:
    return msgspec.convert(fields, LabelSelector)


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values) or None}


@pytest.mark.parametrize(
    ("fields", "labels", "expected"),
    [
        ({}, {}, True),
        ({}, {"a": "b"}, True),
        ({"matchLabels": {"app": "web"}}, {"app": "web", "tier": "x"}, True),
        ({"matchLabels": {"app": "web"}}, {"app": "db"}, False),
        ({"matchLabels": {"app": "web"}}, {}, False),
        ({"matchExpressions": [expression("app", "In", "a", "b")]}, {"app": "b"}, True),
        ({"matchExpressions": [expression("app", "NotIn", "a")]}, {}, True),
        ({"matchExpressions": [expression("app", "NotIn", "a")]}, {"app": "a"}, False),
        ({"matchExpressions": [expression("app", "Exists")]}, {"app": ""}, True),
        ({"matchExpressions": [expression("app", "DoesNotExist")]}, {"app": ""}, False),
        ({"matchLabels": {"app": "a"}, "matchExpressions": [expression("x", "Exists")]}, {"app": "a"}, False),
    ],
)
def test_all_requirements_must_hold(fields: dict[str, Any], labels: dict[str, str], expected: bool) -> None:
    assert selector_of(selector(**fields)).matches(labels) is expected


def test_none_matches_nothing_and_an_empty_one_everything() -> None:
    assert selector_of(None) is NOTHING
    assert not NOTHING.matches({})
    assert selector_of(LabelSelector()) == EVERYTHING
    assert EVERYTHING.is_everything
    assert not NOTHING.is_everything
    assert selector_of_set({}) == EVERYTHING


def test_equal_meanings_are_one_key() -> None:
    ways = [
        selector(matchLabels={"a": "1", "b": "2"}),
        selector(matchLabels={"b": "2", "a": "1"}),
        selector(matchExpressions=[expression("b", "In", "2"), expression("a", "In", "1", "1")]),
    ]
    assert len({selector_of(way) for way in ways}) == 1
    assert selector_of_set({"a": "1", "b": "2"}) == selector_of(ways[0])


def test_requirements_can_be_added_but_not_to_nothing() -> None:
    more = [Requirement(key="v", operator="In", values=["1"])]
    assert selector_of(selector(matchLabels={"a": "1"})).also(more) == selector_of_set({"v": "1", "a": "1"})
    assert NOTHING.also(more) == NOTHING


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"matchExpressions": [expression("a", "Gt", "1")]}, "operator of 'a': got 'Gt'. Write In, NotIn, Exists or"),
        ({"matchExpressions": [expression("a", "In")]}, "values of 'a': for In and NotIn there must be at least one"),
        ({"matchExpressions": [expression("a", "Exists", "1")]}, "values of 'a': for Exists there must be none"),
        ({"matchLabels": {"-": "1"}}, "key: got '-'. Write a qualified label name"),
        ({"matchLabels": {"a": "no value"}}, "values of 'a': got 'no value', which is no label value"),
    ],
)
def test_what_the_api_server_would_refuse_is_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidObjectError) as refusal:
        selector_of(selector(**fields))
    assert str(refusal.value).startswith(problem)
