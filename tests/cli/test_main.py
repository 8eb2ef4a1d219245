from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from scheduler import __version__
from scheduler.cli.main import NOT_BUILT, main
from scheduler.settings.options import OPTIONS
from scheduler.settings.settings import Settings

RULES = """\
apiVersion: vane.dev/v1
kind: Rules
signals:
  cpu: {expr: node_load1, by: node, range: [0, 1]}
rules:
  - {name: cool, signal: cpu, score: {best: 0, worst: 1}}
"""


class Cli:
    """The command with everything around it in hand."""

    def __init__(self) -> None:
        self.out = ""
        self.err = ""
        self.ran: list[Settings] = []

    def __call__(self, *argv: str, environ: dict[str, str] | None = None, run_code: int = 0) -> int:
        out, err = io.StringIO(), io.StringIO()

        def run(settings: Settings) -> int:
            self.ran.append(settings)
            return run_code

        code = main(argv, environ or {}, out, err, run)
        self.out, self.err = out.getvalue(), err.getvalue()
        return code


@pytest.fixture
def vane() -> Cli:
    return Cli()


@pytest.mark.parametrize("word", ["--help", "-h", "help"])
def test_help_names_every_command(vane: Cli, word: str) -> None:
    assert vane(word) == 0
    for command in ("vane run", "vane demo", "vane check", "vane version", *NOT_BUILT):
        assert command in vane.out
    assert vane.err == ""


def test_no_command_is_wrong_usage(vane: Cli) -> None:
    assert vane() == 1
    assert vane.out == ""
    assert "vane run" in vane.err


@pytest.mark.parametrize("word", ["version", "--version"])
def test_version(vane: Cli, word: str) -> None:
    assert vane(word) == 0
    assert vane.out == f"vane {__version__}\n"


@pytest.mark.parametrize("command", NOT_BUILT)
def test_later_commands_are_refused_by_name(vane: Cli, command: str) -> None:
    assert vane(command, "--any", "thing") == 1
    assert vane.err == f"vane {command}: not built yet\n"


def test_an_unknown_command_is_refused(vane: Cli) -> None:
    assert vane("runn") == 1
    assert (
        vane.err
        == "vane: no such command, got 'runn'. Write run, check, rules, demo, top or version; see vane --help\n"
    )


def test_run_hands_over_settings_and_returns_the_code(vane: Cli) -> None:
    flags = ["--rules", "a", "--rules=b", "--prometheus-header", "A=1", "-v", "4", "--unauthenticated-metrics"]
    assert vane("run", *flags, environ={"VANE_SCHEDULER_NAME": "x"}, run_code=1) == 1
    (settings,) = vane.ran
    assert settings.rules == (Path("a"), Path("b"))
    assert settings.prometheus.headers == (("A", "1"),)
    assert settings.logging.verbosity == 4
    assert settings.serving.unauthenticated_metrics
    assert settings.scheduler_name == "x"


@pytest.mark.parametrize("flag", ["--secure-port=1", "--secure_port=1"])
def test_underscores_count_as_dashes_in_flag_names(vane: Cli, flag: str) -> None:
    assert vane("run", flag, "--scheduler_name", "a_b") == 0
    assert (vane.ran[0].serving.secure_port, vane.ran[0].scheduler_name) == (1, "a_b")


@pytest.mark.parametrize("flags", [["-v", "4"], ["-v=4"], ["-v4"], ["--v=4"], ["--verbosity", "4"]])
def test_verbosity_in_every_form(vane: Cli, flags: list[str]) -> None:
    assert vane("run", *flags) == 0
    assert vane.ran[0].logging.verbosity == 4


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(["--foo"], "vane run: unrecognized arguments: --foo. See vane run --help", id="unknown flag"),
        pytest.param(["--secure"], "vane run: unrecognized arguments: --secure.", id="a flag cut short"),
        pytest.param(["x"], "vane run: unrecognized arguments: x.", id="an argument"),
        pytest.param(["--rules"], "vane run: argument --rules: expected one argument.", id="a flag without value"),
        pytest.param(["--secure-port", "x"], "--secure-port: must be a whole number", id="a wrong value"),
        pytest.param(["--config", "/none"], "/none: cannot be read", id="no such file"),
    ],
)
def test_wrong_usage_of_run_is_one_message_and_code_1(vane: Cli, words: list[str], expected: str) -> None:
    assert vane("run", *words) == 1
    assert vane.err.startswith(expected)
    assert vane.err.count("\n") == 1
    assert (vane.out, vane.ran) == ("", [])


def test_help_of_run_names_every_flag_and_variable(vane: Cli) -> None:
    assert vane("run", "--help", "--whatever") == 0
    words = vane.out.split()
    for option in OPTIONS:
        assert f"--{option.flag}" in words
        assert any(option.variable in word for word in words), option.variable
    assert max(len(line) for line in vane.out.splitlines()) <= 110
    assert vane.ran == []


def test_check_reports_rule_files(vane: Cli, tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(RULES)
    assert vane("check", str(tmp_path)) == 0
    assert "cool" in vane.out
    (tmp_path / "bad.yaml").write_text("apiVersion: vane.dev/v1\nkind: Rules\nsignal: {}\n")
    assert vane("check", str(tmp_path)) == 1
    assert f"{tmp_path}/bad.yaml:3:1: " in vane.out


def test_check_with_queries_reads_the_settings_of_run(vane: Cli) -> None:
    assert vane("check", "--prometheus", "ftp://p") == 1
    assert vane.err.startswith("--prometheus: ")
    assert vane("check", "--prometheus-token-file", "/a/file") == 1
    assert vane.err == "vane check: no Prometheus has an address. Write --prometheus URL\n"
    assert vane("check", "--secure-port", "1") == 1
    assert "unrecognized arguments: --secure-port" in vane.err


@pytest.mark.parametrize("command", ["demo", "check", "version"])
def test_the_other_commands_have_help_and_refuse_flags(vane: Cli, command: str) -> None:
    assert vane(command, "--help") == 0
    assert vane.out.startswith(f"usage: vane {command}")
    assert vane(command, "--foo") == 1
    assert vane.err == f"vane {command}: unrecognized arguments: --foo. See vane {command} --help\n"


def test_the_module_runs_as_a_program() -> None:
    done = subprocess.run([sys.executable, "-m", "scheduler", "explain"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "vane explain: not built yet\n")


def test_check_starts_without_the_libraries_of_run() -> None:
    script = """
import io, sys
from scheduler.cli.main import main
main(["check", "/nonexistent"], {}, io.StringIO(), io.StringIO())
heavy = {"pydantic", "kubernetes", "aiohttp", "requests", "apscheduler"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", script], check=True)


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
