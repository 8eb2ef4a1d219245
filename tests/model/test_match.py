"""Which Pods a rule concerns: expressions mean what they mean in Kubernetes' label selectors."""

from __future__ import annotations

from itertools import product

import pytest

from scheduler.model.rules import Match
from scheduler.model.selectors import SelectorTerm, selector_of
from scheduler.model.structs import LabelSelector, Requirement
from tests.builders import make_pod

LABELS: list[dict[str, str]] = [{}, {"tier": "web"}, {"tier": "db"}, {"tier": ""}, {"other": "web"}]
TERMS = (
    SelectorTerm("tier", "In", ("web", "api")),
    SelectorTerm("tier", "In", ("",)),
    SelectorTerm("tier", "NotIn", ("web", "api")),
    SelectorTerm("tier", "Exists", ()),
    SelectorTerm("tier", "DoesNotExist", ()),
)


@pytest.mark.parametrize("terms", [(), *((one,) for one in TERMS), *product(TERMS, TERMS)])
def test_expressions_are_those_of_kubernetes(terms: tuple[SelectorTerm, ...]) -> None:
    requirements = [Requirement(key=one.key, operator=one.operator, values=list(one.values)) for one in terms]
    selector = selector_of(LabelSelector(match_expressions=requirements))
    for labels in LABELS:
        assert Match(expressions=terms).covers("shop", labels) == selector.matches(labels)
        assert Match(of_namespace=terms).covers("shop", {"tier": "web"}, labels) == selector.matches(labels)


def test_not_in_and_does_not_exist_hold_where_the_key_is_absent() -> None:
    for operator in ("NotIn", "DoesNotExist"):
        assert Match(expressions=(SelectorTerm("tier", operator, ("web",)),)).covers("shop", {})
        assert Match(of_namespace=(SelectorTerm("tier", operator, ("web",)),)).covers("shop", {"tier": "web"})


def test_all_parts_of_a_match_hold_together() -> None:
    match = Match(
        ("shop*",), {"app": "a"}, (SelectorTerm("tier", "Exists", ()),), (SelectorTerm("team", "In", ("web",)),)
    )
    pod, namespace = {"app": "a", "tier": "x"}, {"team": "web"}
    assert match.covers("shop-1", pod, namespace)
    assert not match.covers("bank", pod, namespace)
    assert not match.covers("shop-1", {"app": "b", "tier": "x"}, namespace)
    assert not match.covers("shop-1", {"app": "a"}, namespace)
    assert not match.covers("shop-1", pod, {"team": "db"})
    assert not match.covers("shop-1", pod)


@pytest.mark.parametrize(
    ("globs", "requests", "is_meant"),
    [
        ((), {}, True),
        (("nvidia.com/gpu",), {"nvidia.com/gpu": 1}, True),
        (("nvidia.com/gpu",), {"nvidia.com/gpu": 0}, False),
        (("nvidia.com/gpu", "amd.com/*"), {"amd.com/gpu": 2}, True),
        (("nvidia.com/*",), {"cpu": 1}, False),
        (("memory",), {"memory": "1Gi"}, True),
    ],
)
def test_what_a_pod_requests(globs: tuple[str, ...], requests: dict[str, str | int], is_meant: bool) -> None:
    match = Match(requests=globs)
    assert match.is_requested_by(make_pod("p", extended=requests)) == is_meant
    assert match.is_for_all == (not globs)
