from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from scheduler.errors import ConfigError, RuleFilesError
from scheduler.signals.export import export_rules
from scheduler.signals.format.units import duration_text

RULES = Path(__file__).parents[2] / "rules"
FILE = """apiVersion: vane.dev/v1
kind: Rules
signals:
  use:
    expr: |
      # how much is in use
      max by (node) (
        label_replace(use, "kind", `a
        b`, "", "")
      )
    interval: 1m30s
  fast: {expr: 'max by (node) (fast{path="\\\\w+", name="ä"})', interval: 1500ms}
  free:
    expr: |
      max by (node) (size)
        - max by (node) (used)   # in bytes
  burn: {expr: scalar(burn), by: cluster}
  idle: {expr: max by (node) (idle)}
  far: {expr: 'max by (node) (rate(far[2m]))', server: edge, unit: ratio}
rules:
  - {name: hot, signal: use, filter: {max: 1, missing: reject}}
  - {name: quick, signal: fast, score: {best: 1, worst: 0}, weight: {signal: burn, points: [[0, 1], [1, 2]]}}
  - {name: away, signal: far, filter: {max: 1}}
  - {name: room, signal: free, filter: {min: 1}}
"""

UNJUDGED = "Signal {} of Vane has no series: every node is no longer rated by"


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    (tmp_path / "rules.yaml").write_text(FILE)
    path = tmp_path / "exported.yml"
    path.write_text(export_rules([tmp_path / "rules.yaml"]))
    return path


def promtool(programs: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([programs / "promtool", *arguments], capture_output=True, text=True)


def test_promtool_takes_the_packs_with_every_lint(programs: Path, tmp_path: Path) -> None:
    path = tmp_path / "exported.yml"
    path.write_text(export_rules([RULES]))
    outcome = promtool(programs, "check", "rules", "--lint=all", "--lint-fatal", path)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


def test_what_is_recorded(programs: Path, exported: Path) -> None:
    outcome = promtool(programs, "check", "rules", "--lint=all", "--lint-fatal", exported)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    groups = {group["name"]: group for group in yaml.safe_load(exported.read_text())["groups"]}
    assert {name: group.get("interval") for name, group in groups.items()} == {
        "vane-1m30s": "1m30s",
        "vane-1s500ms": "1s500ms",
        "vane-15s": "15s",
        "vane-edge-15s": "15s",
        "vane-signals": None,
    }
    recorded = {
        rule["record"]: rule["expr"] for group in groups.values() for rule in group["rules"] if "record" in rule
    }
    assert recorded.keys() == {"vane:use", "vane:fast", "vane:free", "vane:burn", "vane:idle", "vane:far"}
    assert "`a\n  b`" in recorded["vane:use"]
    assert recorded["vane:fast"] == 'max by (node) (fast{path="\\\\w+", name="ä"})'


def test_a_record_says_what_its_name_hides(exported: Path) -> None:
    lines = exported.read_text().splitlines()
    assert lines[lines.index("      - record: vane:far") - 1] == "      # By node, in ratio; window: 2m"
    assert lines[lines.index("      - record: vane:burn") - 1] == "      # By cluster"


def test_who_is_woken(exported: Path) -> None:
    (alerts,) = (
        group["rules"] for group in yaml.safe_load(exported.read_text())["groups"] if group["name"] == "vane-signals"
    )
    assert {alert["labels"]["signal"]: (alert["labels"]["severity"], alert["for"]) for alert in alerts} == {
        "use": ("critical", "6m"),
        "fast": ("warning", "6s"),
        "free": ("warning", "1m"),
        "burn": ("warning", "1m"),
        "far": ("warning", "1m"),
    }
    assert "every node is refused by hot" in alerts[0]["annotations"]["summary"]


def test_prometheus_records_and_wakes(programs: Path, exported: Path, tmp_path: Path) -> None:
    test = {
        "rule_files": [exported.name],
        "evaluation_interval": "15s",
        "tests": [
            {
                "interval": "15s",
                "input_series": [
                    {"series": 'size{node="a"}', "values": "10x20"},
                    {"series": 'used{node="a"}', "values": "4x20"},
                ],
                "promql_expr_test": [
                    {
                        "expr": "vane:free",
                        "eval_time": "1m",
                        "exp_samples": [{"labels": 'vane:free{node="a"}', "value": 6}],
                    }
                ],
                "alert_rule_test": [
                    {
                        "alertname": "VaneSignalWithoutSeries",
                        "eval_time": "2m",
                        "exp_alerts": [
                            {
                                "exp_labels": {"severity": "warning", "signal": signal},
                                "exp_annotations": {"summary": f"{UNJUDGED.format(signal)} {rule}."},
                            }
                            for signal, rule in (("fast", "quick"), ("far", "away"))
                        ],
                    }
                ],
            }
        ],
    }
    file = tmp_path / "test.yml"
    file.write_text(yaml.safe_dump(test))
    outcome = promtool(programs, "test", "rules", file)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


def test_one_server_only(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(FILE)
    edge = export_rules([tmp_path / "rules.yaml"], "edge")
    assert [group["name"] for group in yaml.safe_load(edge)["groups"]] == ["vane-edge-15s", "vane-signals"]
    assert "# Left out: use, a query to the server without a name." in edge
    assert "# Left out: far, a query to server edge." in export_rules([tmp_path / "rules.yaml"], "")


def test_what_only_vane_or_another_server_can_say_is_left_out_by_name(programs: Path, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(
        "apiVersion: vane.dev/v1\nkind: Rules\n"
        "signals: {load: {requested: cpu}}\nrules: [{name: load, signal: load, filter: {max: 1000}}]\n"
    )
    (tmp_path / "metricsql.yaml").write_text(
        "apiVersion: vane.dev/v1\nkind: Rules\ndialect: metricsql\n"
        "signals: {use: {expr: 'max(use) by (node) keep_metric_names'}}\n"
        "rules: [{name: use, signal: use, filter: {max: 1000}}]\n"
    )
    path = tmp_path / "exported.yml"
    path.write_text(export_rules([tmp_path / "rules.yaml", tmp_path / "metricsql.yaml"]))
    assert "# Left out: load, a signal that Vane reads from the cluster itself.\n" in path.read_text()
    assert "# Left out: use, MetricsQL.\n" in path.read_text()
    outcome = promtool(programs, "check", "rules", path)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


def test_mistakes_are_told_as_ever(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        export_rules([tmp_path / "gone.yaml"])
    (tmp_path / "rules.yaml").write_text(FILE.replace("signal: use", "signal: usage"))
    with pytest.raises(RuleFilesError, match="unknown signal, got 'usage'"):
        export_rules([tmp_path / "rules.yaml"])


@pytest.mark.parametrize(
    ("seconds", "text"), [(15.0, "15s"), (90.0, "1m30s"), (0.5, "500ms"), (86_400.0, "1d"), (90_061.001, "1d1h1m1s1ms")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_matchers_stand_in_each_expression_and_on_what_it_records(programs: Path, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(FILE)
    matchers = {"": (("cluster", "prod"), ("k8s.region", 'e"u'))}
    path = tmp_path / "exported.yml"
    path.write_text(export_rules([tmp_path / "rules.yaml"], matchers=matchers))
    outcome = promtool(programs, "check", "rules", "--lint=all", "--lint-fatal", path)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    rules = [rule for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]]
    recorded = {rule["record"]: rule for rule in rules if "record" in rule}
    assert recorded["vane:idle"] == {
        "record": "vane:idle",
        "expr": 'max by (node) (idle{cluster="prod", "k8s.region"="e\\"u"})',
        "labels": {"cluster": "prod", "k8s.region": 'e"u'},
    }
    assert recorded["vane:far"]["expr"] == "max by (node) (rate(far[2m]))", "another server, without matchers"
    assert "labels" not in recorded["vane:far"]
    alerts = {rule["labels"]["signal"]: rule["expr"] for rule in rules if "alert" in rule}
    assert alerts["use"] == 'absent(vane:use{cluster="prod", "k8s.region"="e\\"u"})'
    assert alerts["far"] == "absent(vane:far)"


def test_two_clusters_record_beside_each_other(programs: Path, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(FILE)
    for name in ("prod", "edge"):
        text = export_rules([tmp_path / "rules.yaml"], matchers={"": (("cluster", name),)})
        (tmp_path / f"{name}.yml").write_text(text)
    series = [
        {"series": f'{metric}{{node="a", cluster="{name}"}}', "values": f"{value}x20"}
        for name, size in (("prod", 10), ("edge", 100))
        for metric, value in (("size", size), ("used", 4))
    ]
    samples = [
        {"labels": f'vane:free{{node="a", cluster="{name}"}}', "value": value}
        for name, value in (("prod", 6), ("edge", 96))
    ]
    test = {
        "rule_files": ["prod.yml", "edge.yml"],
        "evaluation_interval": "15s",
        "tests": [
            {
                "interval": "15s",
                "input_series": series,
                "promql_expr_test": [{"expr": "vane:free", "eval_time": "1m", "exp_samples": samples}],
            }
        ],
    }
    file = tmp_path / "test.yml"
    file.write_text(yaml.safe_dump(test))
    outcome = promtool(programs, "test", "rules", file)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
