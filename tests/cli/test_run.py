from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.settings.options import OPTIONS
from tests.cli.command import Cli


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
        pytest.param(
            ["--secure"],
            'vane run: unrecognized arguments: --secure (did you mean "--secure-port"?).',
            id="a flag cut short",
        ),
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
