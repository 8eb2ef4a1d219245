"""What a shell completes is what the commands take."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from scheduler.cli.completion import SHELLS
from scheduler.cli.main import COMMANDS
from tests.cli.command import Cli

_ASK = """
source {script}
COMP_WORDS=({line} "")
[ -n "{word}" ] && COMP_WORDS=({line} "{word}")
COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
"$(complete -p vane | sed 's/.* -F \\([^ ]*\\) .*/\\1/')" vane "{word}" ""
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    vane, path = Cli(), tmp_path_factory.mktemp("completion") / "vane"
    assert vane("completion", "bash") == 0
    path.write_text(vane.out)
    return path


def completed(script: Path, line: str, word: str) -> set[str]:
    text = _ASK.format(script=script, line=line, word=word)
    done = subprocess.run(["bash", "-c", text], cwd=script.parent, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("line", "word", "expected"),
    [
        ("vane", "", {*COMMANDS, "version"}),
        ("vane", "ch", {"check"}),
        ("vane rules", "", {"test", "export"}),
        ("vane check", "--prometheus-t", {"--prometheus-token-file"}),
        ("vane check -o", "s", {"sarif"}),
        ("vane top --sort", "", {"value", "age", "name"}),
        ("vane completion", "", set(SHELLS)),
        ("vane schema", "Vane", {"VaneConfiguration"}),
        ("vane run --logging-format", "", {"text", "json"}),
    ],
)
def test_bash_completes(script: Path, line: str, word: str, expected: set[str]) -> None:
    assert completed(script, line, word) - {"-h", "--help"} == expected


def test_bash_completes_files_where_files_are_meant(script: Path) -> None:
    (script.parent / "pack.yaml").touch()
    assert "pack.yaml" in completed(script, "vane check", "pac")
    assert "pack.yaml" in completed(script, "vane run --rules", "pac")


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_gets_every_command_and_flag(vane: Cli, shell: str) -> None:
    assert vane("completion", shell) == 0
    for name in (*COMMANDS, "version"):
        assert name in vane.out
        flags = Cli()
        words = [name, "test"] if name == "rules" else [name]
        assert flags(*words, "--help") == 0
        for flag in (word for word in flags.out.split() if word.startswith("--") and word.strip("-,").isalpha()):
            assert flag.strip("-,.") in vane.out, flag


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_shell_can_read_its_script(vane: Cli, shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} on this machine")
    assert vane("completion", shell) == 0
    (tmp_path / "vane").write_text(vane.out)
    subprocess.run([program, "--no-execute", str(tmp_path / "vane")], check=True)
