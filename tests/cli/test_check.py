from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from scheduler.app.check.findings import Finding, Output, Severity, for_machines
from scheduler.errors import Problem
from tests.cli.command import RULES, Cli


def test_check_reports_rule_files(vane: Cli, tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(RULES)
    assert vane("check", str(tmp_path)) == 0
    assert "cool" in vane.out
    (tmp_path / "bad.yaml").write_text("apiVersion: vane.dev/v1\nkind: Rules\nsignal: {}\n")
    assert vane("check", str(tmp_path)) == 1
    assert f"{tmp_path}/bad.yaml:3:1: " in vane.out


def test_check_with_queries_reads_the_settings_of_run(vane: Cli) -> None:
    assert vane("check", "--prometheus", "ftp://p") == 2
    assert vane.err.startswith("--prometheus: ")
    assert vane("check", "--prometheus-token-file", "/a/file") == 2
    assert vane.err == "vane check: no Prometheus is configured. Write --prometheus URL\n"
    assert vane("check", "--secure-port", "1") == 2
    assert "unrecognized arguments: --secure-port" in vane.err


CLEAN = RULES.replace("node_load1", "max by (instance) (node_load1)")
WARNED = CLEAN.replace("rules:", "  idle: {expr: sum(idle), by: cluster}\nrules:")
BAD = CLEAN.replace("{best: 0", "{besst: 0").replace("(node_load1)", "(node_load1))")


def test_exit_codes_tell_what_is_wrong(vane: Cli, tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    assert vane("check", str(path)) == 2
    assert (vane.out, vane.err) == (
        "",
        f"{path}: no such file or folder. Write the path of a rule file or of a folder\n",
    )
    path.write_text(CLEAN)
    assert vane("check", str(path), "-o", "yaml") == 2
    assert vane("check", str(path), "--strict") == 0
    path.write_text(WARNED)
    assert vane("check", str(path)) == 0
    assert vane("check", str(path), "--strict") == 1
    path.write_text(BAD)
    assert vane("check", str(path)) == 1


def test_features_without_an_address_are_for_the_files_alone(vane: Cli, tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(CLEAN.replace("{expr: ", "{expr: '").replace("(node_load1)", "(mad_over_time(x[5m]))'"))
    assert vane("check", str(path), "--strict") == 1
    assert "mad_over_time is experimental" in vane.out
    assert vane("check", str(path), "--strict", "--prometheus-feature", "promql-experimental-functions") == 0
    assert vane("check", str(path), "--strict", "--prometheus-feature", "promql-duration-expr") == 1
    assert vane("check", str(path), "--prometheus-feature", "fast") == 2
    assert vane.err.startswith("--prometheus-feature: must be a list of promql-experimental-functions, ")


def test_a_dash_is_standard_input(vane: Cli, tmp_path: Path) -> None:
    assert vane("check", "-", stdin=BAD.encode()) == 1
    assert "stdin:6:" in vane.out
    (tmp_path / "signals.yaml").write_text(CLEAN.partition("rules:")[0])
    rules = CLEAN.partition("signals:")[0] + "rules:" + CLEAN.partition("rules:")[2]
    assert vane("check", "-", str(tmp_path), stdin=rules.encode()) == 0
    assert vane.out.endswith("2 files, 0 problems, 0 warnings, 1 signal, 1 rule\n")


def test_json_names_each_finding_and_counts_what_there_is(vane: Cli, tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(BAD)
    assert vane("check", str(path), "-o", "json") == 1
    told = json.loads(vane.out)
    assert told["counts"] == {"files": 1, "problems": 3, "warnings": 0}
    assert {(one["severity"], one["file"], one["line"]) for one in told["findings"]} == {
        ("error", str(path), 4),
        ("error", str(path), 6),
    }
    path.write_text(WARNED)
    assert vane("check", str(path), "--output=json") == 0
    told = json.loads(vane.out)
    assert told["counts"] == {"files": 1, "problems": 0, "warnings": 1, "signals": 2, "rules": 1}
    (warning,) = told["findings"]
    assert (warning["severity"], warning["line"], warning["column"]) == ("warning", 5, 3)
    assert warning["message"].startswith("signal 'idle': no rule uses it")


def test_github_shows_findings_beside_the_lines(vane: Cli, tmp_path: Path) -> None:
    path = tmp_path / "a,b.yaml"
    path.write_text(BAD)
    assert vane("check", str(path), "-o", "github") == 1
    lines = vane.out.splitlines()
    assert len(lines) == 3
    place = str(path).replace(",", "%2C")
    assert lines[0].startswith(f"::error file={place},line=4,col=")
    path.write_text(CLEAN)
    assert vane("check", str(path), "-o", "github") == 0
    assert vane.out == ""


def test_a_workflow_command_is_one_line_whatever_the_message() -> None:
    finding = Finding(Severity.WARNING, Problem("a:b.yaml", 1, 2, "100%\nof 5: x"))
    said = for_machines(Output.GITHUB, [finding], {})
    assert said == "::warning file=a%3Ab.yaml,line=1,col=2,title=vane check::100%25%0Aof 5: x"


def test_sarif_is_what_code_scanning_reads(vane: Cli, tmp_path: Path) -> None:
    path = tmp_path / "my rules.yaml"
    path.write_text(WARNED)
    assert vane("check", str(path), "-o", "sarif") == 0
    told = json.loads(vane.out)
    assert told["version"] == "2.1.0"
    (run,) = told["runs"]
    (result,) = run["results"]
    assert result["level"] == "warning"
    assert result["ruleId"] in {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].endswith("/my%20rules.yaml")
    assert place["region"] == {"startLine": 5, "startColumn": 3}


def test_check_starts_without_the_libraries_of_run() -> None:
    script = """
import io, sys
from scheduler.cli.main import main
main(["check", "/nonexistent"], {}, io.StringIO(), io.StringIO())
heavy = {"pydantic", "kubernetes", "aiohttp", "requests", "apscheduler"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", script], check=True)
