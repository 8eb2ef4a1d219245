"""The `match:` of a rule: what is read, and what is said of mistakes."""

from __future__ import annotations

import pytest

from scheduler.model.selectors import SelectorTerm
from tests.signals.format.test_rules import refusal, rule


def test_a_match_by_what_is_requested() -> None:
    assert rule(filter="{max: 1}", match='{requests: [nvidia.com/gpu, "amd.com/*"]}').match.requests == (
        "nvidia.com/gpu",
        "amd.com/*",
    )


def test_a_match_by_expressions_and_by_the_namespace() -> None:
    read = rule(
        filter="{max: 1}",
        match='{matchExpressions: [{key: tier, operator: In, values: [web, "1"]}, {key: batch, operator: DoesNotExist},'
        " {key: a/b, operator: Exists, values: []}], namespace_labels: {team: [shop, web], stage: prod},"
        " namespaceSelector: {matchLabels: {x: y}, matchExpressions: [{key: env, operator: NotIn, values: [test]}]}}",
    ).match
    assert (read.namespaces, read.labels) == ((), {})
    assert read.expressions == (
        SelectorTerm("tier", "In", ("web", "1")),
        SelectorTerm("batch", "DoesNotExist", ()),
        SelectorTerm("a/b", "Exists", ()),
    )
    assert read.of_namespace == (
        SelectorTerm("team", "In", ("shop", "web")),
        SelectorTerm("stage", "In", ("prod",)),
        SelectorTerm("x", "In", ("y",)),
        SelectorTerm("env", "NotIn", ("test",)),
    )


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        pytest.param(
            "{matchExpressions: [{key: tier, operator: in, values: [web]}]}",
            "match, matchExpressions, operator: unknown value, got 'in'. Write one of: In, NotIn, Exists, DoesNotExist",
            id="an operator in small letters",
        ),
        pytest.param(
            "{matchExpressions: [{key: tier, operator: In}]}",
            "match, matchExpressions: operator In needs values. Write `values: [web, api]`",
            id="no values",
        ),
        pytest.param(
            "{matchExpressions: [{key: tier, operator: NotIn, values: []}]}",
            "match, matchExpressions, values: must be a list, got an empty one. Write values, as `[shop, bank]`",
            id="an empty list",
        ),
        pytest.param(
            "{matchExpressions: [{key: tier, operator: Exists, values: [web]}]}",
            "match, matchExpressions, values: operator Exists takes no values, got 1. Drop the line, or write operator",
            id="values for Exists",
        ),
        pytest.param(
            "{matchExpressions: [{key: a b, operator: Exists}]}",
            "match, matchExpressions, key: not a label's key, got 'a b'. Write a name as Kubernetes allows it",
            id="a key with a space",
        ),
        pytest.param(
            "{matchExpressions: [{key: a, operator: In, values: [b c]}]}",
            "match, matchExpressions, values: not a label's value, got 'b c'",
            id="a value with a space",
        ),
        pytest.param(
            "{matchExpressions: [{operator: Exists}]}", "match, matchExpressions: `key` is missing", id="no key"
        ),
        pytest.param(
            "{matchExpressions: {key: a}}",
            "match, matchExpressions: must be a list, got a mapping. Write `[{key: tier, operator: In, values:",
            id="no list",
        ),
        pytest.param(
            "{requests: nvidia.com/gpu}", "match, requests: must be a list, got 'nvidia.com/gpu'", id="no names"
        ),
        pytest.param("{requests: [a b]}", "match, requests: not a resource's name, got 'a b'", id="no resource"),
        pytest.param(
            "{namespaceSelector: {team: web}}",
            "match, namespaceSelector: unknown field, got 'team'",
            id="labels where a selector is wanted",
        ),
        pytest.param(
            "{namespaceLabels: {team: web}}",
            "unknown field, got 'namespaceLabels' (did you mean \"namespace_labels\"?)",
            id="a slip",
        ),
        pytest.param(
            "{namespace_labels: {team: a b}}",
            "match, namespace_labels, team: not a label's value, got 'a b'",
            id="a value",
        ),
        pytest.param("{namespace_labels: web}", "match, namespace_labels: must be a mapping, got 'web'", id="a word"),
    ],
)
def test_a_wrong_match_says_what_to_write(match: str, expected: str) -> None:
    assert expected in refusal(filter="{max: 1}", match=match)
