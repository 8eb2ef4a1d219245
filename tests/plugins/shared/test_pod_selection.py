from __future__ import annotations

from typing import Any

import msgspec
import pytest

from scheduler.plugins.shared.pod_selection import PodSelection
from tests.builders import pod_of


def select(fields: dict[str, Any]) -> PodSelection:
    return msgspec.convert(fields, PodSelection)


@pytest.mark.parametrize(
    ("selection", "is_taken"),
    [
        pytest.param({}, True, id="an empty one takes every Pod"),
        pytest.param({"matchLabels": {"team": "batch"}}, True, id="label"),
        pytest.param({"matchLabels": {"team": "web"}}, False, id="other value"),
        pytest.param({"matchLabels": {"tier": ""}}, False, id="an absent label is not an empty one"),
        pytest.param({"matchAnnotations": {"vane.dev/bind": "later"}}, True, id="annotation"),
        pytest.param({"matchAnnotations": {"team": "batch"}}, False, id="a label is no annotation"),
        pytest.param(
            {"matchLabels": {"team": "batch"}, "matchAnnotations": {"vane.dev/bind": "now"}}, False, id="all must hold"
        ),
        pytest.param(
            {"matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "batch"]}]}, True, id="In"
        ),
        pytest.param({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, True, id="DoesNotExist"),
        pytest.param({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}, False, id="it exists"),
    ],
)
def test_takes(selection: dict[str, Any], is_taken: bool) -> None:
    pod = pod_of(
        {"metadata": {"name": "a", "labels": {"team": "batch"}, "annotations": {"vane.dev/bind": "later"}}, "spec": {}}
    )
    assert select(selection).takes(pod) is is_taken


def test_a_pod_without_labels_and_annotations() -> None:
    pod = pod_of({"metadata": {"name": "a"}, "spec": {}})
    assert select({}).takes(pod)
    assert not select({"matchAnnotations": {"a": "b"}}).takes(pod)


@pytest.mark.parametrize(
    ("selection", "words"),
    [
        pytest.param({"labels": {}}, "unknown field `labels`", id="unknown field"),
        pytest.param({"matchLabels": {"-": "b"}}, "matchLabels: got the key '-'", id="label key"),
        pytest.param(
            {"matchAnnotations": {"a/b/c": "b"}}, "matchAnnotations: got the key 'a/b/c'", id="annotation key"
        ),
        pytest.param({"matchLabels": {"a": 1}}, "Expected `str`, got `int`", id="number"),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
            "operator: got 'Gt'. Write In, NotIn, Exists, DoesNotExist - at `$.matchExpressions[0]`",
            id="operator of nodes",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "In"}]}, "there must be at least one", id="no values"
        ),
    ],
)
def test_refuses(selection: dict[str, Any], words: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        select(selection)
    assert words in str(caught.value)
