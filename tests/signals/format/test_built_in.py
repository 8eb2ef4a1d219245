"""Signals that count or read the cluster, and label matches, as rule files say them; `bad/` has mistakes."""

from __future__ import annotations

import pytest

from scheduler.model.rules import BuiltIn, BuiltInKind, ByKind, LabelMatch, Match, Mode, Rule, RuleSet, Signal, Unit
from scheduler.signals.format.rule_files import lint_rule_files, parse_rule_files

HEAD = "apiVersion: vane.dev/v1\nkind: Rules\n"


def read(body: str) -> RuleSet:
    return parse_rule_files({"a.yaml": f"{HEAD}{body}".encode()})


def signal(body: str) -> Signal:
    return read(f"signals:\n  it: {body}\n").signals["it"]


def test_every_default_is_resolved() -> None:
    assert signal("{count: {same: [app]}}") == Signal(
        "it", "", built_in=BuiltIn(BuiltInKind.COUNT, same=("app",)), where="a.yaml:4:3"
    )


@pytest.mark.parametrize(
    ("body", "built_in", "unit"),
    [
        (
            "{count: {same: [b/team, app], window: 1h30m, namespaces: all}}",
            BuiltIn(BuiltInKind.COUNT, "", ("app", "b/team"), 5_400.0, all_namespaces=True),
            Unit.NONE,
        ),
        ("{count: {same: [app], namespaces: same}}", BuiltIn(BuiltInKind.COUNT, same=("app",)), Unit.NONE),
        ("{count: {same: [app], window: 1d}}", BuiltIn(BuiltInKind.COUNT, "", ("app",), 86_400.0), Unit.NONE),
        ("{requested: cpu}", BuiltIn(BuiltInKind.REQUESTED, "cpu"), Unit.NONE),
        ("{requested: cpu, unit: ratio}", BuiltIn(BuiltInKind.REQUESTED, "cpu"), Unit.RATIO),
        ("{requested: memory}", BuiltIn(BuiltInKind.REQUESTED, "memory"), Unit.BYTES),
        ("{requested: memory, unit: percent}", BuiltIn(BuiltInKind.REQUESTED, "memory"), Unit.PERCENT),
        ("{requested: memory, unit: none}", BuiltIn(BuiltInKind.REQUESTED, "memory"), Unit.NONE),
        ("{requested: hugepages-2Mi}", BuiltIn(BuiltInKind.REQUESTED, "hugepages-2Mi"), Unit.BYTES),
        ("{requested: nvidia.com/gpu}", BuiltIn(BuiltInKind.REQUESTED, "nvidia.com/gpu"), Unit.NONE),
        ("{allocatable: ephemeral-storage}", BuiltIn(BuiltInKind.ALLOCATABLE, "ephemeral-storage"), Unit.BYTES),
        ("{allocatable: pods}", BuiltIn(BuiltInKind.ALLOCATABLE, "pods"), Unit.NONE),
        ("{pods: {}}", BuiltIn(BuiltInKind.PODS), Unit.NONE),
        ("{pods: {}, unit: ratio}", BuiltIn(BuiltInKind.PODS), Unit.RATIO),
    ],
)
def test_every_kind_is_read(body: str, built_in: BuiltIn, unit: Unit) -> None:
    found = signal(body)
    assert (found.built_in, found.unit) == (built_in, unit)


@pytest.mark.parametrize(
    ("by", "kind", "label"),
    [
        ("node", ByKind.NODE, ""),
        ("cluster", ByKind.CLUSTER, ""),
        ("topology.kubernetes.io/zone", ByKind.LABEL, "topology.kubernetes.io/zone"),
    ],
)
def test_what_it_is_summed_over(by: str, kind: ByKind, label: str) -> None:
    found = signal(f"{{pods: {{}}, by: {by}}}")
    assert (found.by, found.label) == (kind, label)


def test_a_label_that_looks_like_a_word_is_warned_of() -> None:
    text = f"{HEAD}signals: {{it: {{pods: {{}}, by: nodes}}}}\n"
    (warning,) = lint_rule_files({"a.yaml": text.encode()}).warnings
    assert "read as the node label 'nodes' (did you mean \"node\"?)" in warning.message


def test_only_signals_with_an_expression_are_asked_for() -> None:
    rules = read("signals:\n  a: {pods: {}}\n  b: {expr: up}\n")
    assert list(rules.asked) == ["b"]
    assert not rules.has_windows
    assert read("signals: {a: {count: {same: [app], window: 1s}}}\n").has_windows


def test_limits_of_memory_take_suffixes_without_a_written_unit() -> None:
    rules = read("signals: {it: {allocatable: memory}}\nrules: [{name: a, signal: it, filter: {min: 8Gi}}]\n")
    assert rules.rules[0].filter is not None
    assert rules.rules[0].filter.min == 8 * 2**30


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tenant", LabelMatch("tenant", "tenant")),
        ("example.com/tenant", LabelMatch("example.com/tenant", "example.com/tenant")),
        ("{pod: tenant, node: example.com/tenant}", LabelMatch("tenant", "example.com/tenant")),
    ],
)
def test_a_label_match_stands_alone(text: str, expected: LabelMatch) -> None:
    body = f"rules: [{{name: own, label_match: {text}, mode: shadow, match: {{namespaces: [shop]}}}}]\n"
    assert read(body).rules == (
        Rule("own", match=Match(("shop",)), label_match=expected, mode=Mode.SHADOW, where="a.yaml:3:9"),
    )
    assert read(body).rules[0].refuses
