"""A rule set is compiled once, and what is kept of it never serves the past."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from scheduler.model.memo import Memo
from scheduler.model.rules import Canary, Curve, Match, Mode, Rule, RuleFilter, RuleScore, RuleSet, Signal, Tenant
from scheduler.model.selectors import SelectorTerm
from scheduler.model.signals import SignalColumn, SignalTable
from scheduler.model.snapshot import Snapshot
from scheduler.model.structs import ObjectMeta
from scheduler.model.workloads import Namespace
from scheduler.rules.compiled import compile_rules, compiled_rules
from scheduler.rules.compiled_rule import CompiledRule
from tests.builders import cluster_of, make_node, make_pod

LOAD = Signal("load", "up")
HOT = Rule("hot", "load", filter=RuleFilter(max=0.8), score=RuleScore(Curve((0.0, 1.0), (100.0, 0.0))))

NOWHERE = Snapshot(cluster_of([]), SignalTable(), 0.0)


def table(values: list[float], tripped: list[bool], rules: RuleSet) -> SignalTable:
    return SignalTable(rules, {"load": SignalColumn(LOAD, np.array(values), 1.0)}, {"hot": np.array(tripped)})


def names(rules: Iterable[CompiledRule]) -> list[str]:
    return [one.name for one in rules]


def test_a_set_is_compiled_once_and_another_anew() -> None:
    rules, memo = RuleSet({"load": LOAD}, (HOT,)), Memo()

    first = compile_rules(rules, memo)
    assert compile_rules(rules, memo) is first
    assert compile_rules(replace(rules, generation=2), memo) is not first


def test_pods_that_rules_concern_alike_share_one_list() -> None:
    rules = (HOT, replace(HOT, name="shops", match=Match(("shop",))), replace(HOT, name="tried", canary=Canary(0.0)))
    compiled = compile_rules(RuleSet({"load": LOAD}, rules), Memo())

    here, there = (compiled.concerning(make_pod(namespace=name), NOWHERE) for name in ("shop", "else"))

    assert compiled.concerning(make_pod("other", namespace="shop"), NOWHERE) is here
    assert (names(here.rules), names(there.rules)) == (["hot", "shops", "tried"], ["hot", "tried"])
    assert (names(here.refusing), names(here.would_refuse)) == (["hot", "shops"], ["tried"])


def of_namespace(**labels: str) -> Match:
    return Match(of_namespace=tuple(SelectorTerm(key, "In", (value,)) for key, value in labels.items()))


def test_rules_follow_the_labels_of_the_namespace_as_they_are_now() -> None:
    rules = (
        replace(HOT, name="web", match=of_namespace(team="web")),
        replace(HOT, name="db", match=of_namespace(team="db")),
    )
    compiled, state, pod = (
        compile_rules(RuleSet({"load": LOAD}, rules), Memo()),
        cluster_of([]),
        make_pod(namespace="shop"),
    )

    def concerned() -> list[str]:
        return names(compiled.concerning(pod, Snapshot(state, SignalTable(), 0.0)).rules)

    assert concerned() == [], "nobody knows the namespace yet"
    for team, expected in (("web", ["web"]), ("db", ["db"]), ("", [])):
        state.set_object(Namespace(metadata=ObjectMeta(name="shop", labels={"team": team})))
        assert concerned() == expected
    state.remove_object(Namespace, "", "shop")
    assert concerned() == []


def test_a_rule_that_is_not_for_all_is_known_as_such() -> None:
    for match in (Match(("shop",)), Match((), {"a": "b"}), Match(expressions=(SelectorTerm("a", "Exists", ()),))):
        assert not match.is_for_all
        assert not CompiledRule(replace(HOT, match=match), LOAD, Memo()).is_for_all
    assert not of_namespace(a="b").is_for_all
    assert CompiledRule(HOT, LOAD, Memo()).is_for_all


def test_bounds_of_tenants_are_compiled_but_concern_no_pod() -> None:
    bound = Rule("load of shops", "load", filter=RuleFilter(max=0.5))
    compiled = compile_rules(RuleSet({"load": LOAD}, (HOT,), tenants=(Tenant("shops", bounds=(bound,)),)), Memo())

    assert names(compiled.concerning(make_pod(), NOWHERE).rules) == ["hot"]
    assert compiled.by_name["load of shops"].rule is bound


def test_each_edition_is_read_anew() -> None:
    state, rules, pod = cluster_of([make_node("a"), make_node("b")]), RuleSet({"load": LOAD}, (HOT,)), make_pod()
    first, second = table([0.9, 0.1], [True, False], rules), table([0.1, 0.9], [False, True], rules)

    for signals, refused, scores in ((first, [True, False], [10, 90]), (second, [False, True], [90, 10])) * 2:
        snapshot = Snapshot(state, signals, 0.0)
        compiled = compiled_rules(snapshot)
        (rejection,) = compiled.rejections(pod, snapshot)
        (term,) = compiled.terms(compiled.concerning(pod, snapshot).scoring, pod, snapshot)
        assert rejection.mask.tolist() == refused
        np.testing.assert_allclose(term.values, scores)


def test_what_a_rule_says_to_all_is_the_same_object_while_its_samples_stand() -> None:
    state, rules, pod = cluster_of([make_node("a"), make_node("b")]), RuleSet({"load": LOAD}, (HOT,)), make_pod()
    signals = table([0.9, 0.1], [True, False], rules)
    snapshots = [Snapshot(state, one, 0.0) for one in (signals, replace(signals, edition=object()))]

    first, second = (compiled_rules(one).terms(compiled_rules(one).rules, pod, one)[0] for one in snapshots)

    assert first is second


def test_a_rule_that_only_watches_refuses_nobody_and_is_told() -> None:
    watching = replace(HOT, mode=Mode.SHADOW)
    snapshot = Snapshot(
        cluster_of([make_node("a"), make_node("b")]),
        table([0.9, 0.1], [True, False], RuleSet({"load": LOAD}, (watching,))),
        0.0,
    )
    compiled = compiled_rules(snapshot)

    assert compiled.rejections(make_pod(), snapshot) == []
    (would,) = compiled.would_reject(make_pod(), snapshot)
    assert (would.rule, would.mask.tolist()) == ("hot", [True, False])
