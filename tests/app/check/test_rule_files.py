from __future__ import annotations

import io
from pathlib import Path

import pytest

from scheduler.app.check.effective_weights import effective_weights
from scheduler.app.check.rule_files import WHERE_TENANTS_COUNT, How, check, run_check
from scheduler.signals.files import read_rule_files

GOOD = """apiVersion: vane.dev/v1
kind: Rules
signals:
  use: {expr: '1 - avg by (instance) (rate(idle[2m]))', unit: ratio, range: [0, 1], inflight: {cpu: 200m}}
  burn: {expr: sum(burn), by: cluster}
rules:
  - name: hot
    signal: use
    filter: {max: 80%, clear: 75%, valve: 0.5, missing: reject}
    score: {best: 0, worst: 1}
    weight: 3
  - name: even
    signal: use
    score: {points: [[0, 100], [1, 0]], missing: worst}
  - name: burning
    signal: use
    score: {best: 0, worst: 1}
    weight: {signal: burn, points: [[0, 1], [2, 10]]}
  - {name: stop, signal: burn, filter: {max: 9}}
"""
FIXED_WEIGHT = 13.0


def run(path: Path) -> tuple[int, list[str]]:
    out = io.StringIO()
    code = run_check(read_rule_files([path]), out, How(), FIXED_WEIGHT)
    return code, out.getvalue().splitlines()


def test_good_files_give_tables_and_zero(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD)
    code, lines = run(tmp_path)
    assert code == 0
    assert [" ".join(line.split()) for line in lines] == [
        "SIGNAL BY UNIT INTERVAL MAX AGE WINDOW PENDING LOAD RANGE",
        "use node ratio 15s 60s 120s cpu: 200m 0%..100%",
        "burn cluster none 15s 60s - - -",
        "",
        "RULE SIGNAL ACTS FILTER SCORE WEIGHT SHARE",
        "hot use always max 80% clear 75%, valve 50%, missing reject 100 at 0%, 0 at 100% 3 17%",
        "even use always - 100 at 0%, 0 at 100%, missing worst 1 6%",
        "burning use always - 100 at 0%, 0 at 100% burn: 1 at 0, 10 at 2, missing 1 6%",
        "stop burn always max 9 - - -",
        "",
        "1 file, 0 problems, 0 warnings, 2 signals, 4 rules",
    ]


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("mode: shadow", "shadow"),
        ("canary: {percent: 2.5}", "canary 2.5%"),
        ('canary: {namespaces: [shop, "test-*"]}', "canary shop test-*"),
        ("canary: {percent: 10, namespaces: [shop]}", "canary 10% shop"),
    ],
)
def test_it_says_on_whom_a_rule_acts(tmp_path: Path, field: str, text: str) -> None:
    good = GOOD.replace("    weight: 3\n", f"    weight: 3\n    {field}\n").replace("valve: 0.5", "hold: 90s")
    (tmp_path / "a.yaml").write_text(good.replace("inflight: {cpu: 200m}", "smoothing: 30s"))
    lines = [" ".join(line.split()) for line in run(tmp_path)[1]]
    (rule,) = (line for line in lines if line.startswith("hot "))
    assert rule.startswith(f"hot use {text} max 80% clear 75%, hold 90s, missing reject ")
    assert "use node ratio 15s 60s 120s 30s 0%..100%" in lines


def test_a_rule_weighs_no_more_than_its_share(tmp_path: Path) -> None:
    """With 13 of the plugins and 2 of two other rules, 3/7 of that is the most for 30 %; for 50 %, as much as that."""
    (tmp_path / "a.yaml").write_text(GOOD.replace("weight: 3", "weight: 20"))
    report = check(read_rule_files([tmp_path]), FIXED_WEIGHT)
    weights = effective_weights(report.rules.rules, FIXED_WEIGHT)
    assert weights["hot"].written == 20.0
    assert weights["hot"].effective == pytest.approx(45 / 7)
    assert weights["hot"].share == pytest.approx(0.3)
    assert weights["hot"].is_capped
    assert not weights["even"].is_capped
    (line,) = (line for line in report.lines() if line.startswith("hot "))
    assert line.split()[-3:] == ["20", "6.429", "30%"]

    (tmp_path / "a.yaml").write_text(GOOD.replace("weight: 3", "weight: 20\n    max_share: 50%"))
    weights = effective_weights(check(read_rule_files([tmp_path])).rules.rules, FIXED_WEIGHT)
    assert weights["hot"].effective == 15.0


def test_what_rules_weigh_now(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD)
    rules = check(read_rule_files([tmp_path])).rules.rules
    weights = effective_weights(rules, FIXED_WEIGHT, {"hot": 3.0, "even": 1.0, "burning": 10.0})
    assert weights["burning"].effective == pytest.approx(17 * 3 / 7)
    assert weights["burning"].share == pytest.approx(0.3)
    assert weights["even"].share == pytest.approx(1 / 27)


def test_problems_come_one_a_line_and_give_one(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(GOOD.replace("weight: 3", "wieght: 3").replace("rate(idle[2m])", "rate(idle)"))
    code, lines = run(path)
    assert code == 1
    assert lines[0].startswith(
        f"{path}:4:44: signal 'use', expr: PromQL: expected type range vector in the call of rate"
    )
    assert lines[1].startswith(f"{path}:11:5: rule 'hot': unknown field, got 'wieght' (did you mean \"weight\"?)")
    assert lines[2:] == ["1 file, 2 problems, 0 warnings"]


def test_warnings_leave_the_exit_code_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(GOOD + "\n")
    path.write_text(GOOD.replace("  burn: {", "  idle: {expr: idle}\n  burn: {"))
    code, lines = run(path)
    assert code == 0
    assert lines[0].startswith(f"{path}:5:16: warning: signal 'idle', expr: nothing is aggregated")
    assert lines[1].startswith(f"{path}:5:3: warning: signal 'idle': no rule uses it")
    assert lines[-1] == "1 file, 0 problems, 2 warnings, 3 signals, 4 rules"


def test_the_report_holds_what_is_good(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD.replace("best: 0, worst: 1", "best: 0, wurst: 1", 1))
    report = check(read_rule_files([tmp_path]))
    assert report.exit_code() == 1
    assert [rule.name for rule in report.rules.rules] == ["even", "burning", "stop"]


TENANTS = """apiVersion: vane.dev/v1
kind: Rules
signals:
  use: {expr: '1 - avg by (instance) (rate(idle[2m]))', unit: ratio, range: [0, 1], inflight: {cpu: 200m}}
tenants:
  - name: shop
    match: {namespaces: [shop, "shop-*"], namespace_labels: {team: [shop, web]}}
    overcommit: 105%
    while: [{signal: use, max: 85%, clear: 80%}]
  - {name: batch, match: {namespace_labels: {tier: batch}}, overcommit: 92.5%, resources: [cpu]}
  - {name: rich, overcommit: 150%}
"""


def test_tenants_are_told_plainly(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(TENANTS)
    code, lines = run(tmp_path)

    assert code == 0
    assert "a.yaml:11:18: warning: tenant 'rich': above 100 % whatever is measured" in lines[0]
    assert [" ".join(line.split()) for line in lines[4:]] == [
        "TENANT NAMESPACES OVERCOMMIT RESOURCES WHILE",
        "shop shop shop-* team=shop|web 105% cpu, memory use max 85% clear 80%",
        "batch tier=batch 92.5% cpu -",
        "rich all 150% cpu, memory -",
        "- all others 100% all -",
        "",
        *WHERE_TENANTS_COUNT,
        "",
        "1 file, 0 problems, 1 warning, 1 signal, 0 rules, 3 tenants",
    ]


def test_servers_are_shown_where_a_signal_names_one_and_are_taken_without_a_configuration(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(GOOD.replace("burn: {expr: sum(burn),", "burn: {expr: sum(burn), server: long-term,"))
    code, lines = run(path)
    assert code == 0
    assert [line.split()[-1] for line in lines[:3]] == ["SERVER", "-", "long-term"]


BUILT_IN = """\
apiVersion: vane.dev/v1
kind: Rules
signals:
  mates: {count: {same: [app], window: 1h}, by: zone/name}
  spare: {allocatable: memory}
rules:
  - {name: apart, signal: mates, filter: {max: 2}}
  - {name: own, label_match: {pod: tenant, node: example.com/tenant}}
"""


def test_signals_that_ask_nobody_and_label_matches_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(BUILT_IN)
    code, lines = run(path)

    assert code == 0
    assert lines[0].endswith("a.yaml:5:3: warning: signal 'spare': no rule uses it. Drop it, or write a rule")
    assert [" ".join(line.split()) for line in lines[1:]] == [
        "BUILT IN BY UNIT READS",
        "mates zone/name none count same app window 3600s",
        "spare node bytes allocatable memory",
        "",
        "RULE SIGNAL ACTS FILTER",
        "apart mates always max 2",
        "own - always Pod label tenant = node label example.com/tenant",
        "",
        "1 file, 0 problems, 1 warning, 2 signals, 2 rules",
    ]
