from __future__ import annotations

import pytest

from scheduler.errors import RuleFilesError
from scheduler.model.rules import (
    Canary,
    Curve,
    FilterMissing,
    Match,
    Mode,
    Rule,
    RuleFilter,
    RuleScore,
    RuleSet,
    ScoreMissing,
    WeightSignal,
)
from scheduler.signals.format.rule_files import lint_rule_files, parse_rule_files

HEAD = "apiVersion: vane.dev/v1\nkind: Rules\n"
SIGNALS = """signals:
  use: {expr: max by (instance) (use), unit: ratio, range: [0, 1]}
  lag: {expr: max by (instance) (lag), unit: s}
  room: {expr: max by (instance) (room), unit: bytes}
  burn: {expr: sum(burn), by: cluster}
"""


def load(rules: str) -> RuleSet:
    return parse_rule_files({"a.yaml": f"{HEAD}{SIGNALS}rules:\n{rules}".encode()})


def rule(**fields: str) -> Rule:
    body = "".join(f"    {name}: {value}\n" for name, value in ({"signal": "use"} | fields).items())
    (read,) = load(f"  - name: a\n{body}").rules
    return read


def refusal(**fields: str) -> str:
    with pytest.raises(RuleFilesError) as caught:
        rule(**fields)
    return str(caught.value)


def test_the_least_rule() -> None:
    assert rule(filter="{max: 0.8}") == Rule(
        name="a",
        signal="use",
        filter=RuleFilter(max=0.8, max_clear=0.8, missing=FilterMissing.ALLOW),
        where="a.yaml:9:5",
    )


def test_every_field_is_read() -> None:
    read = rule(
        match='{namespaces: [shop, "shop-*"], labels: {tier: web, "app.kubernetes.io/name": "1"}}',
        filter="{max: 80%, clear: 75%, valve: 0.5, missing: reject}",
        score="{best: 0, worst: 1, missing: worst}",
        weight="5",
    )
    assert read.match == Match(("shop", "shop-*"), {"tier": "web", "app.kubernetes.io/name": "1"})
    assert read.filter == RuleFilter(max=0.8, max_clear=0.75, valve=0.5, missing=FilterMissing.REJECT)
    assert read.score == RuleScore(Curve((0.0, 1.0), (100.0, 0.0)), ScoreMissing.WORST)
    assert read.weight == 5.0


def test_clear_belongs_to_the_limit_that_is_there() -> None:
    read = rule(filter="{min: 20%, clear: 30%}").filter
    assert read == RuleFilter(min=0.2, min_clear=0.3)


def test_both_limits_without_clear() -> None:
    assert rule(filter="{min: 0.2, max: 0.8}").filter == RuleFilter(max=0.8, min=0.2, max_clear=0.8, min_clear=0.2)


def test_a_higher_best_makes_a_rising_curve() -> None:
    read = rule(signal="room", score="{best: 2GiB, worst: 1Gi}").score
    assert read == RuleScore(Curve((2.0**30, 2.0**31), (0.0, 100.0)))


@pytest.mark.parametrize("text", ["0.5", "50%", '"50%"', ".5"])
def test_a_valve_is_a_share_of_the_nodes(text: str) -> None:
    assert rule(filter=f"{{max: 1, valve: {text}}}").filter == RuleFilter(max=1.0, max_clear=1.0, valve=0.5)


@pytest.mark.parametrize("text", ["0", "-1", "1.1", "101%", "50ms"])
def test_another_valve_is_refused(text: str) -> None:
    assert "filter, valve: must be" in refusal(filter=f"{{max: 1, valve: {text}}}")


@pytest.mark.parametrize(("text", "hold_s"), [("60s", 60.0), ("1m30s", 90.0), ("1h", 3600.0), ("500ms", 0.5)])
def test_a_hold_time_is_read(text: str, hold_s: float) -> None:
    expected = RuleFilter(max=0.8, max_clear=0.7, hold_s=hold_s)
    assert rule(filter=f"{{max: 80%, clear: 70%, hold: {text}}}").filter == expected


@pytest.mark.parametrize("text", ["0s", "3601s", "60", "soon", "-5s"])
def test_another_hold_time_is_refused(text: str) -> None:
    assert "filter, hold: must be" in refusal(filter=f"{{max: 80%, hold: {text}}}")


def test_how_long_a_filter_refuses_a_waiting_pod_is_read() -> None:
    expected = RuleFilter(max=0.8, max_clear=0.8, soft_after_s=600.0)
    assert rule(filter="{max: 80%, soft_after: 10m}").filter == expected


@pytest.mark.parametrize("text", ["0s", "8d", "soon"])
def test_another_wait_is_refused(text: str) -> None:
    assert "filter, soft_after: " in refusal(filter=f"{{max: 80%, soft_after: {text}}}")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"filter": "{max: 1}", "hold": "60s"}, "rule 'a', hold: a hold time belongs to the filter. Write"),
        ({"filter": "{max: 1}", "soft_after": "10m"}, "rule 'a', soft_after: belongs to the filter. Write"),
        ({"filter": "{max: 1, hysteresis: 1}"}, "filter, hysteresis: not a field, got 'hysteresis'. Write `clear: …`"),
    ],
)
def test_a_field_in_the_wrong_place_names_the_right_one(fields: dict[str, str], words: str) -> None:
    assert words in refusal(**fields)


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30.0), ("45s", 45.0), ("1m", 60.0)])
def test_an_age_of_its_own_is_read(text: str, seconds: float) -> None:
    assert rule(filter="{max: 80%}", max_age=text).max_age_s == seconds


@pytest.mark.parametrize("text", ["29s", "61s", "0s"])
def test_an_age_beyond_those_of_the_signal_is_refused(text: str) -> None:
    words = "max_age: must be from 30s, two intervals, to 60s, the max_age of signal 'use', got"
    assert words in refusal(filter="{max: 80%}", max_age=text)


def test_labels_have_no_age() -> None:
    with pytest.raises(RuleFilesError, match="labels have no age"):
        load("  - {name: a, label_match: tenant, max_age: 30s}\n")


@pytest.mark.parametrize(("text", "share"), [("40%", 0.4), ("0.4", 0.4), ("100%", 1.0), ("1", 1.0)])
def test_a_share_cap_is_read(text: str, share: float) -> None:
    assert rule(score="{best: 0, worst: 1}", max_share=text).max_share == share


def test_a_share_cap_is_thirty_percent_unless_written() -> None:
    assert rule(score="{best: 0, worst: 1}").max_share == 0.3


@pytest.mark.parametrize("text", ["0", "-5%", "1.1", "130%", "30ms", "half"])
def test_another_share_is_refused(text: str) -> None:
    assert "max_share: must be" in refusal(score="{best: 0, worst: 1}", max_share=text)


def test_points_are_a_curve() -> None:
    read = rule(score="{points: [[0, 100], [50%, 80], [1, 0]]}").score
    assert read == RuleScore(Curve((0.0, 0.5, 1.0), (100.0, 80.0, 0.0)))


@pytest.mark.parametrize(
    ("signal", "text", "value"),
    [
        ("lag", "50ms", 0.05),
        ("lag", "1m", 60.0),
        ("lag", "250us", 0.00025),
        ("lag", "1.5", 1.5),
        ("lag", "1e-3", 0.001),
        ("lag", '"50ms"', 0.05),
        ("room", "500MB", 5e8),
        ("room", "500M", 5e8),
        ("room", "1Gi", 2.0**30),
        ("room", "1.5 GiB", 1.5 * 2**30),
        ("use", "80%", 0.8),
        ("use", "-.5", -0.5),
    ],
)
def test_numbers_are_converted_to_the_unit(signal: str, text: str, value: float) -> None:
    limits = rule(signal=signal, filter=f"{{max: {text}}}").filter
    assert limits is not None
    assert limits.max == value


@pytest.mark.parametrize(
    "text", ["1GiB", "80 percent", "0x1f", "1_000", "1,5", "1:30", ".inf", "NaN", "1e9999", "~", ""]
)
def test_other_numbers_are_refused(text: str) -> None:
    assert "a.yaml:12:" in refusal(signal="lag", filter=f"\n      max: {text}\n")


def test_a_suffix_in_wrong_case_names_the_right_one() -> None:
    assert 'did you mean "ms"' in refusal(signal="lag", filter="{max: 50MS}")


def test_a_weight_signal_is_read() -> None:
    read = rule(score="{best: 0, worst: 1}", weight="{signal: burn, points: [[0, 3], [2, 10]]}")
    assert read.weight == WeightSignal("burn", Curve((0.0, 2.0), (3.0, 10.0)), missing=3.0)


def test_a_weight_signal_may_say_what_holds_without_it() -> None:
    read = rule(score="{best: 0, worst: 1}", weight="{signal: burn, points: [[0, 3], [2, 10]], missing: 7}")
    assert read.weight == WeightSignal("burn", Curve((0.0, 2.0), (3.0, 10.0)), missing=7.0)


def test_a_cluster_number_may_filter() -> None:
    assert rule(signal="burn", filter="{max: 2}").signal == "burn"


@pytest.mark.parametrize("mode", list(Mode))
def test_a_mode_is_read(mode: Mode) -> None:
    assert rule(filter="{max: 1}", mode=mode.value).mode is mode


def test_a_rule_acts_unless_it_says_otherwise() -> None:
    read = rule(filter="{max: 1}")
    assert (read.mode, read.canary, read.is_on_trial) == (Mode.ENFORCE, None, False)


@pytest.mark.parametrize(
    ("text", "canary"),
    [
        ("{percent: 10}", Canary(10.0)),
        ("{percent: 2.5%}", Canary(2.5)),
        ('{namespaces: ["test-*"]}', Canary(100.0, ("test-*",))),
        ("{percent: 100, namespaces: [a, b]}", Canary(100.0, ("a", "b"))),
    ],
)
def test_a_canary_is_read(text: str, canary: Canary) -> None:
    read = rule(filter="{max: 1}", canary=text)
    assert (read.canary, read.is_on_trial) == (canary, True)


@pytest.mark.parametrize("text", ["0", "-1", "101", "100.5%", "ten", "10ms"])
def test_another_percentage_is_refused(text: str) -> None:
    assert "canary, percent: " in refusal(filter="{max: 1}", canary=f"{{percent: {text}}}")


@pytest.mark.parametrize("text", ["{}", "10", "{namespaces: []}", "{namespaces: [A]}"])
def test_a_canary_that_picks_nothing_is_refused(text: str) -> None:
    assert "canary" in refusal(filter="{max: 1}", canary=text)


@pytest.mark.parametrize("empty", ["{}", "{namespaces: []}", "{labels: {}}"])
def test_an_empty_match_is_refused(empty: str) -> None:
    assert "got an empty one" in refusal(filter="{max: 1}", match=empty)


@pytest.mark.parametrize(
    "value", ["1", "1.0", "1e3", "on", "off", "yes", "null", "~", "2026-01-01", "1:30", "0x1f", "true", "0o17", ""]
)
def test_a_label_value_must_be_text(value: str) -> None:
    assert "must be a text" in refusal(filter="{max: 1}", match=f"\n      labels:\n        tier: {value}\n")


def test_an_empty_label_value_may_be_quoted() -> None:
    assert rule(filter="{max: 1}", match='{labels: {tier: ""}}').match.labels == {"tier": ""}


def test_the_hundred_and_first_rule_is_refused() -> None:
    lines = [f"  - {{name: r{i}, signal: use, filter: {{max: 1}}}}\n" for i in range(101)]
    assert len(load("".join(lines[:100])).rules) == 100
    with pytest.raises(RuleFilesError, match="more than 100 rules in all files") as caught:
        load("".join(lines))
    assert [problem.line for problem in caught.value.problems] == [109]


def test_a_signal_may_stand_in_another_file() -> None:
    files = {
        "b.yaml": f"{HEAD}rules:\n  - {{name: a, signal: use, filter: {{max: 80%}}}}\n".encode(),
        "a.yaml": f"{HEAD}{SIGNALS}".encode(),
    }
    assert parse_rule_files(files, generation=7).rules[0].where == "b.yaml:4:5"
    assert parse_rule_files(files, generation=7).generation == 7


def test_names_are_unique_over_all_files() -> None:
    text = f"{HEAD}{SIGNALS}rules:\n  - {{name: a, signal: use, filter: {{max: 80%}}}}\n".encode()
    with pytest.raises(RuleFilesError) as caught:
        parse_rule_files({"x.yaml": text, "y.yaml": text})
    messages = [str(problem) for problem in caught.value.problems]
    assert len(messages) == 5
    assert messages[0] == "y.yaml:4:3: signal 'use': is defined twice, first at x.yaml:4:3. Rename one of the two"
    assert messages[4] == "y.yaml:9:12: rule 'a': is defined twice, first at x.yaml:9:12. Rename one of the two"


def test_problems_of_all_files_come_together() -> None:
    with pytest.raises(RuleFilesError) as caught:
        parse_rule_files({"a.yaml": b"kind: [", "b.yaml": b"\xff", "c.yaml": b""})
    assert [problem.file for problem in caught.value.problems] == ["a.yaml", "b.yaml", "c.yaml"]


def test_a_signal_is_not_called_unknown_while_a_file_is_unreadable() -> None:
    rules = f"{HEAD}rules:\n  - {{name: a, signal: use, filter: {{max: 80%}}}}\n".encode()
    (problem,) = lint_rule_files({"a.yaml": b"a: [", "b.yaml": rules}).problems
    assert problem.file == "a.yaml"


def test_a_broken_signal_is_reported_once() -> None:
    text = f"{HEAD}signals:\n  use: {{expr: 'sum('}}\nrules:\n  - {{name: a, signal: use, filter: {{max: 80%}}}}\n"
    problems = lint_rule_files({"a.yaml": text.encode()}).problems
    assert [problem.line for problem in problems] == [4, 6]
    assert "suffix needs a unit" in problems[1].message


def test_no_files_are_no_rules() -> None:
    assert parse_rule_files({}) == RuleSet()


def test_a_limit_beyond_the_range_is_warned_of() -> None:
    text = f"{HEAD}{SIGNALS}rules:\n  - {{name: a, signal: use, filter: {{max: 80}}}}\n"
    said = [warning.message for warning in lint_rule_files({"a.yaml": text.encode()}).warnings]
    assert any("max 80 is outside the signal's range [0, 1]" in one for one in said)
