from __future__ import annotations

import pytest

from scheduler.errors import RuleFilesError
from scheduler.model.rules import FilterMissing, Rule, RuleFilter, RuleSet, Tenant
from scheduler.signals.format.rule_files import lint_rule_files, parse_rule_files, unused_signals
from tests.signals.columns.store_world import crossed

HEAD = """apiVersion: vane.dev/v1
kind: Rules
signals:
  use: {expr: max by (instance) (use), unit: ratio, range: [0, 1]}
  burn: {expr: sum(burn), by: cluster}
  lost: {expr: 'sum(', by: cluster}
"""
GOOD = HEAD.replace("  lost: {expr: 'sum(', by: cluster}\n", "")


def load(tenants: str, head: str = GOOD) -> RuleSet:
    return parse_rule_files({"a.yaml": f"{head}tenants:\n{tenants}".encode()})


def tenant(**fields: str) -> Tenant:
    body = "".join(f"    {name.rstrip('_')}: {value}\n" for name, value in ({"overcommit": "105%"} | fields).items())
    (read,) = load(f"  - name: shop\n{body}").tenants
    return read


def refusal(**fields: str) -> str:
    with pytest.raises(RuleFilesError) as caught:
        tenant(**fields)
    return str(caught.value)


def test_the_least_tenant_is_everyone_with_cpu_and_memory() -> None:
    assert tenant() == Tenant("shop", per_mille=1050, resources=("cpu", "memory"), where="a.yaml:7:5")


def test_every_field_is_read() -> None:
    read = tenant(
        match='{namespaces: [shop, "shop-*"], namespace_labels: {team: shop, tier: [gold, silver]}}',
        overcommit="102.5%",
        resources="[memory, nvidia.com/gpu]",
        while_="[{signal: use, max: 85%, clear: 80%, hold: 1m}, {signal: burn, min: 1, max: 3}]",
    )

    needed = FilterMissing.REJECT
    use = RuleFilter(0.85, None, 0.8, None, missing=needed, hold_s=60.0)
    burn = RuleFilter(3.0, 1.0, 3.0, 1.0, missing=needed)
    assert (read.namespaces, read.per_mille) == (("shop", "shop-*"), 1025)
    assert read.namespace_labels == {"team": ("shop",), "tier": ("gold", "silver")}
    assert read.resources == ("memory", "nvidia.com/gpu")
    assert [(bound.name, bound.signal, bound.filter) for bound in read.bounds] == [
        ("tenant shop, use", "use", use),
        ("tenant shop, burn", "burn", burn),
    ]


@pytest.mark.parametrize(("text", "per_mille"), [("0.1%", 1), ("92.50%", 925), ("100 %", 1000), ("200%", 2000)])
def test_percentages(text: str, per_mille: int) -> None:
    assert tenant(overcommit=text).per_mille == per_mille


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"overcommit": "105"}, "a.yaml:8:17: tenant 'shop', overcommit: must be a percentage of the real allocatable"),
        ({"overcommit": "1.05"}, "Write it with `%`, as 105%"),
        ({"overcommit": "0%"}, "must be above 0% and at most 200%, got '0%'"),
        ({"overcommit": "200.1%"}, "must be above 0% and at most 200%"),
        ({"overcommit": "102.55%"}, "must have one digit after the point at most"),
        ({"overcommit": "-5%"}, "must be a percentage"),
        ({"overcommit": "[105%]"}, "must be a percentage of the real allocatable, got a list"),
        ({"overcommmit": "105%"}, "unknown field, got 'overcommmit' (did you mean \"overcommit\"?)"),
        ({"match": "{namespaces: [Shop]}"}, "not a glob over namespaces, got 'Shop'"),
        ({"match": "{labels: {tier: web}}"}, "unknown field, got 'labels'"),
        ({"match": "{namespace_labels: {team: 7}}"}, "must be a text, got 7 without quotes"),
        ({"match": "{namespace_labels: {team: []}}"}, "must be a list, got an empty one"),
        ({"match": "{namespace_labels: {'te am': a}}"}, "not a label's key, got 'te am'"),
        ({"match": "{namespace_labels: {team: 'a b'}}"}, "not a label's value, got 'a b'"),
        ({"resources": "[memroy]"}, "not a resource that Pods request, got 'memroy'"),
        ({"resources": "[cpu, cpu]"}, "is listed twice, got 'cpu'"),
        ({"resources": "cpu"}, "must be a list, got 'cpu'"),
        ({"while_": "{signal: use, max: 85%}"}, "must be a list, got a mapping"),
        ({"while_": "[{signal: used, max: 85%}]"}, "unknown signal, got 'used' (did you mean \"use\"?)"),
        ({"while_": "[{signal: use}]"}, "neither max nor min"),
        ({"while_": "[{max: 1}]"}, "`signal` is missing"),
        ({"while_": "[{signal: use, max: 85ms}]"}, "'ms' does not convert to ratio"),
        ({"while_": "[{signal: use, max: 85%, missing: allow}]"}, "without one it is 100 %"),
        ({"while_": "[{signal: use, max: 85%, valve: 0.5}]"}, "unknown field, got 'valve'"),
        ({"while_": "[{signal: use, max: 1}, {signal: use, min: 0.5}]"}, "signal 'use' is listed twice"),
        (
            {"overcommit": "95%", "while_": "[{signal: use, max: 1}]"},
            "`while` applies only to an overcommit above 100 %",
        ),
    ],
)
def test_mistakes_are_told_with_place_and_advice(fields: dict[str, str], expected: str) -> None:
    assert expected in refusal(**fields)


def test_names_are_unique_over_all_files_and_the_rest_is_read_on() -> None:
    text = f"{GOOD}tenants: [{{name: a, overcommit: 1%}}]\n".encode()
    other = b"apiVersion: vane.dev/v1\nkind: Rules\ntenants: [{name: a, overcommit: 1%}, {name: B, overcommit: x}]\n"
    with pytest.raises(RuleFilesError) as caught:
        parse_rule_files({"a.yaml": text, "b.yaml": other})

    assert [str(problem).partition(". ")[0] for problem in caught.value.problems] == [
        "b.yaml:3:18: tenant 'a': is defined twice, first at a.yaml:6:18",
        "b.yaml:3:45: tenant 'B', name: not a tenant's name, got 'B'",
        "b.yaml:3:60: tenant 'B', overcommit: must be a percentage of the real allocatable, got 'x'",
    ]


def test_tenants_of_all_files_stand_in_the_order_of_the_files() -> None:
    first, second = (f"{text}tenants: [{{name: {name}, overcommit: 1%}}]\n" for text, name in ((GOOD, "b"), ("", "a")))
    second = f"apiVersion: vane.dev/v1\nkind: Rules\n{second}"

    read = parse_rule_files({"1.yaml": first.encode(), "2.yaml": second.encode()})

    assert [one.name for one in read.tenants] == ["b", "a"]


def test_a_bound_over_a_broken_signal_is_told_once() -> None:
    with pytest.raises(RuleFilesError) as caught:
        load("  - {name: shop, overcommit: 105%, while: [{signal: lost, max: 5}]}\n", HEAD)

    assert len(caught.value.problems) == 1


def test_without_bounds_more_than_all_is_warned_of() -> None:
    text = f"{GOOD}tenants: [{{name: a, overcommit: 100.1%}}, {{name: b, overcommit: 100%}}]\n"
    reading = lint_rule_files({"a.yaml": text.encode()})

    (warning,) = reading.warnings
    assert warning.message.startswith("tenant 'a': above 100 % whatever is measured")


def test_a_bound_uses_its_signal_and_is_warned_of_like_a_rule() -> None:
    text = f"{GOOD}tenants: [{{name: a, overcommit: 105%, while: [{{signal: use, max: 85}}]}}]\n"
    reading = lint_rule_files({"a.yaml": text.encode()})

    assert unused_signals(reading.rules) == ["burn"]
    assert "max 85 is outside the signal's range [0, 1]" in reading.warnings[0].message


@pytest.mark.parametrize(
    ("one", "namespace", "labels", "covered"),
    [
        pytest.param(Tenant("t"), "any", None, True, id="everyone"),
        pytest.param(Tenant("t", ("shop-*",)), "shop-eu", None, True, id="a glob"),
        pytest.param(Tenant("t", ("shop-*",)), "bank", None, False, id="another namespace"),
        pytest.param(Tenant("t", (), {"team": ("a", "b")}), "x", {"team": "b"}, True, id="one of the values"),
        pytest.param(Tenant("t", (), {"team": ("a",)}), "x", {}, False, id="without the label"),
        pytest.param(Tenant("t", (), {"team": ("a",)}), "x", None, False, id="labels not known"),
        pytest.param(Tenant("t", ("x",), {"team": ("a",)}), "y", {"team": "a"}, False, id="both have to hold"),
    ],
)
def test_whose_namespace_it_is(one: Tenant, namespace: str, labels: dict[str, str] | None, covered: bool) -> None:
    assert one.covers(namespace, labels) == covered


def test_a_bound_is_a_rule_that_needs_a_sample() -> None:
    (bound,) = tenant(while_="[{signal: use, max: 85%}]").bounds

    assert bound == Rule(
        "tenant shop, use", "use", filter=RuleFilter(0.85, None, 0.85, missing=FilterMissing.REJECT), where=bound.where
    )


def test_tenants_cross_to_the_deciding_process_as_they_are() -> None:
    rules = load(
        "  - {name: shop, overcommit: 105%, match: {namespace_labels: {a: [b, c]}}, while: [{signal: use, max: 1}]}\n"
    )

    assert crossed(rules) == rules
