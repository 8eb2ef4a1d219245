"""Packs refuse nodes, and hold no Pod back for ever: with every node beyond every limit each Pod is placed in time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from scheduler.loop.messages import RulesLoaded
from scheduler.model.rules import ByKind, Rule, RuleSet
from tests.builders import make_node, make_pod
from tests.loop.harness import Harness
from tests.packs.world import PACKS, RULES, load

BATCH = {"vane.dev/class": "batch"}
LINES = [line.strip() for line in (RULES / "Kustomization").read_text().splitlines()]
SHIPPED = [RULES / line.removeprefix("- ") for line in LINES if line.startswith("- ") and line.endswith(".yaml")]


def beyond(rule: Rule) -> float:
    """Return a value that the rule refuses."""
    limits = rule.filter
    assert limits is not None
    return limits.max * 1.1 if limits.max is not None else (limits.min or 0.0) * 0.5


def all_bad(paths: list[Path]) -> tuple[Harness, RuleSet]:
    """Return a cluster of three nodes, each beyond the limit of every rule that looks at nodes."""
    harness = Harness()
    names = ["a", "b", "c"]
    harness.list_nodes(*(make_node(name) for name in names))
    harness.list_pods()
    rules = load(*paths)
    harness.loop.apply(RulesLoaded(rules))
    _answer(harness, rules)
    return harness, rules


def _answer(harness: Harness, rules: RuleSet) -> None:
    for rule in rules.rules:
        signal = rules.asked.get(rule.signal)
        if rule.filter is not None and signal is not None and signal.by is ByKind.NODE:
            harness.answer(rule.signal, dict.fromkeys("abc", beyond(rule)), 1e9 + harness.now_s)


def without_valves(rules: RuleSet) -> RuleSet:
    closed = (replace(one, filter=replace(one.filter, valve=None)) if one.filter else one for one in rules.rules)
    return replace(rules, rules=tuple(closed), generation=rules.generation + 1)


def waits_s(harness: Harness, rules: RuleSet, longest_s: float) -> dict[str, float]:
    """Return how long each Pod waited until it was placed."""
    begun_s, placed_s = harness.now_s, {}
    while harness.now_s - begun_s < longest_s:
        harness.run()
        for name in harness.placed():
            placed_s[name] = harness.now_s - begun_s
        harness.settle()
        harness.now_s += 1.0
        if round(harness.now_s) % 15 == 0:
            _answer(harness, rules)
        harness.world.queue.tick(harness.now_s)
    return placed_s


def test_what_the_base_starts_with_holds_nobody_back() -> None:
    harness, rules = all_bad(SHIPPED)
    assert any(rule.filter is not None for rule in rules.rules)
    for i in range(10):
        harness.see(make_pod(f"p-{i}"))
    assert waits_s(harness, rules, 3.0) == {f"p-{i}": 0.0 for i in range(10)}


@pytest.mark.parametrize("with_valves", [True, False], ids=["as they are", "without valves"])
def test_with_all_packs_on_no_pod_waits_longer_than_soft_after(with_valves: bool) -> None:
    harness, rules = all_bad(PACKS)
    if not with_valves:
        rules = without_valves(rules)
        harness.loop.apply(RulesLoaded(rules))
    soft_s = {rule.name: rule.filter.soft_after_s for rule in rules.rules if rule.filter is not None}
    harness.see(make_pod("plain"))
    harness.see(make_pod("batch", labels=BATCH))
    waited_s = waits_s(harness, rules, 3700.0)
    assert waited_s["plain"] <= (2.0 if with_valves else 600.0 + 2.0)
    assert 3000.0 <= waited_s["batch"] <= soft_s["batch-below-cpu-use"] + 2.0
