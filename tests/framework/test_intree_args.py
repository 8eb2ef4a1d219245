"""Arguments of kube-scheduler's plugins, beyond what is compared with a real one in tests/app."""

from __future__ import annotations

import pytest

from scheduler.framework.intree_args import INTREE_ARGS, InTreeArgs, NodeResourcesFitArgs, ResourceSpec, ScoringStrategy


@pytest.mark.parametrize("kind", INTREE_ARGS.values(), ids=INTREE_ARGS)
def test_defaults_are_complete_and_right(kind: type[InTreeArgs]) -> None:
    assert kind().completed() == kind()
    assert list(kind().mistakes()) == []


def test_a_name_is_that_of_the_plugin() -> None:
    assert {name: kind.__name__ for name, kind in INTREE_ARGS.items()} == {name: f"{name}Args" for name in INTREE_ARGS}


def test_every_mistake_is_told() -> None:
    strategy = ScoringStrategy(type="Most", resources=(ResourceSpec(name="cpu", weight=101),))
    args = NodeResourcesFitArgs(ignored_resource_groups=("a/b", ""), scoring_strategy=strategy)
    assert [way for way, _ in args.mistakes()] == [
        ("ignoredResourceGroups", 0),
        ("ignoredResourceGroups", 1),
        ("scoringStrategy", "type"),
        ("scoringStrategy", "resources", 0, "weight"),
    ]
