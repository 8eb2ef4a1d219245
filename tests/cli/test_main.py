from __future__ import annotations

import subprocess
import sys

import pytest

from scheduler import __version__
from scheduler.cli.main import COMMANDS, NOT_BUILT
from tests.cli.command import Cli


@pytest.mark.parametrize("word", ["--help", "-h", "help"])
def test_help_names_every_command(vane: Cli, word: str) -> None:
    assert vane(word) == 0
    for command in (*COMMANDS, "version"):
        assert f"vane {command}" in vane.out
    assert vane.err == ""


def test_help_names_only_what_is_built(vane: Cli) -> None:
    assert vane("--help") == 0
    assert "ot built" not in vane.out
    assert [command for command in NOT_BUILT if f"vane {command}" in vane.out] == []


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
    assert vane("fly") == 1
    known = "run, check, rules, demo, top, schema, completion or version"
    assert vane.err == f"vane: no such command, got 'fly'. Write {known}; see vane --help\n"


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["chek"], "check"),
        (["tpo"], "top"),
        (["check", "--prometeus", "http://p"], "--prometheus"),
        (["check", "--strickt"], "--strict"),
        (["run", "--leader_elct=false"], "--leader-elect"),
        (["top", "--limt", "5"], "--limit"),
        (["rules", "tset"], "test"),
        (["rules", "test", "--rael", "x"], "--real"),
        (["demo", "--sed", "7"], "--seed"),
        (["schema", "rules"], "Rules"),
        (["completion", "fsh"], "fish"),
    ],
)
def test_a_misspelt_word_is_answered_with_the_one_that_was_meant(vane: Cli, words: list[str], meant: str) -> None:
    assert vane(*words) != 0
    assert f'(did you mean "{meant}"?)' in vane.err
    assert vane.out == ""


@pytest.mark.parametrize(("command", "code"), [("demo", 1), ("check", 2), ("version", 1)])
def test_the_other_commands_have_help_and_refuse_flags(vane: Cli, command: str, code: int) -> None:
    assert vane(command, "--help") == 0
    assert vane.out.startswith(f"usage: vane {command}")
    assert vane(command, "--foo") == code
    assert vane.err == f"vane {command}: unrecognized arguments: --foo. See vane {command} --help\n"


def test_the_module_runs_as_a_program() -> None:
    done = subprocess.run([sys.executable, "-m", "scheduler", "explain"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "vane explain: not built yet\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_listed_and_tells_of_itself(vane: Cli, command: str) -> None:
    vane("--help")
    assert f"\n  vane {command} " in vane.out
    assert vane(command, "--help") == 0
    assert vane.out.startswith(f"usage: vane {command}")
