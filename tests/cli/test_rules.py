from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import RULES, Cli

RULE_TESTS = """\
apiVersion: vane.dev/v1
kind: RuleTests
rule_files: [rules.yaml]
nodes: [a]
tests:
  - name: half
    input_series: [{series: 'node_load1{node="a"}', values: 0.5x4}]
    at: 1m
    expect: [{rule: cool, nodes: {a: 50}}]
"""


def test_rules_test_runs_files_and_tells_by_its_code(vane: Cli, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    file = tmp_path / "tests.yaml"
    file.write_text(RULE_TESTS)
    assert vane("rules", "test", str(file)) == 0
    assert vane.out.splitlines() == [f"{file}: SUCCESS", "1 test, 3 expectations, 0 failed"]
    file.write_text(RULE_TESTS.replace("a: 50", "a: 40"))
    assert vane("rules", "test", str(file)) == 1
    assert "expected score 40, found score 50" in vane.out


def test_rules_test_with_a_real_prometheus_needs_one(vane: Cli, tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path)}
    assert vane("rules", "test", "a.yaml", "--real", environ=environ) == 1
    assert vane.err.startswith("--real: no program `prometheus` in PATH. ")
    assert vane("rules", "test", "a.yaml", "--prometheus-dir", str(tmp_path)) == 1
    assert vane.err.startswith(f"--prometheus-dir {tmp_path}: no program `prometheus` in it. ")


def test_rules_test_on_a_real_prometheus(vane: Cli, tmp_path: Path, programs: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    file = tmp_path / "tests.yaml"
    file.write_text(RULE_TESTS)
    assert vane("rules", "test", str(file), "--real", environ={"PATH": str(programs)}) == 0
    assert vane("rules", "test", str(file), "--prometheus-dir", str(programs)) == 0


def test_rules_export_writes_recording_rules(vane: Cli, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    assert vane("rules", "export", "--prometheus", str(tmp_path)) == 0
    assert '- record: vane:cpu\n        expr: "node_load1"\n' in vane.out
    assert vane("rules", "export", str(tmp_path)) == 1
    assert "--prometheus" in vane.err


@pytest.mark.parametrize("words", [["rules"], ["rules", "check"], ["rules", "test"], ["rules", "test", "--reel", "a"]])
def test_wrong_usage_of_rules(vane: Cli, words: list[str]) -> None:
    assert vane(*words) == 1
    assert vane.err.startswith("vane rules")
    assert vane.out == ""


@pytest.mark.parametrize("words", [["rules", "--help"], ["rules", "test", "--help"], ["rules", "export", "--help"]])
def test_help_of_rules(vane: Cli, words: list[str]) -> None:
    assert vane(*words) == 0
    assert vane.out.startswith("usage: vane rules")


def test_rules_export_takes_the_matchers_of_the_configuration_or_a_flag(vane: Cli, tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "rules.yaml").write_text(RULES)
    words = ("rules", "export", "--prometheus", str(tmp_path / "rules"))
    assert vane(*words, "--prometheus-matcher", "cluster=prod") == 0
    assert 'expr: "node_load1{cluster=\\"prod\\"}"' in vane.out
    config = tmp_path / "vane.yaml"
    config.write_text("apiVersion: vane.dev/v1\nkind: VaneConfiguration\nprometheus: {matchers: {cluster: edge}}\n")
    assert vane(*words, "--config", str(config)) == 0
    assert 'expr: "node_load1{cluster=\\"edge\\"}"\n        labels:\n          "cluster": "edge"\n' in vane.out
    assert vane(*words, "--prometheus-matcher", "cluster") == 1
    assert vane.err.startswith("--prometheus-matcher: must be label names")
