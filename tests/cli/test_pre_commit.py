"""The hooks for pre-commit do what they say, run by pre-commit itself in a repository with rule files.

pre-commit would install Vane anew for each hook; here the hooks run the one that is installed,
and are else as they are written.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.command import RULES
from tests.readme import CHECKOUT

HOOKS: dict[str, dict[str, Any]] = {
    hook["id"]: hook for hook in yaml.safe_load((CHECKOUT / ".pre-commit-hooks.yaml").read_text())
}
GOOD = RULES.replace("expr: node_load1", "expr: max by (instance) (node_load1)")
BAD = GOOD.replace("worst: 1", "worst: hot")
WARNED = RULES
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: vane-rules}\ndata:\n  a.yaml: |\n" + re.sub(
    "^", "    ", BAD, flags=re.M
)


class Repository:
    """A git repository whose .pre-commit-config.yaml has the hooks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        programs = Path(sys.executable).parent
        self._environ = os.environ | {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PRE_COMMIT_HOME": str(folder / "cache"),
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        self.git("init", "--quiet")
        self.git("config", "user.name", "somebody")
        self.git("config", "user.email", "somebody@example.com")
        hooks = [hook | {"language": "system"} for hook in HOOKS.values()]
        self.write(".pre-commit-config.yaml", yaml.safe_dump({"repos": [{"repo": "local", "hooks": hooks}]}))

    def git(self, *words: str) -> None:
        subprocess.run(["git", *words], cwd=self.folder, env=self._environ, check=True)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.git("add", name)

    def check(self, hook: str) -> tuple[int, str]:
        """Run one hook on what is staged."""
        words = [sys.executable, "-m", "pre_commit", "run", hook, "--color", "never", "--verbose"]
        done = subprocess.run(
            words, cwd=self.folder, env=self._environ, capture_output=True, text=True, check=False, timeout=120
        )
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "code", "words"),
    [
        pytest.param("rules/a.yaml", GOOD, 0, "1 file, 0 problems, 0 warnings", id="a good file"),
        pytest.param("my-rules/a.yml", GOOD, 0, "1 file, 0 problems", id="another folder"),
        pytest.param("rules/a.yaml", BAD, 1, "rules/a.yaml:6:55: rule 'cool', score, worst: must be", id="a bad file"),
        pytest.param("rules/a.yaml", WARNED, 1, "rules/a.yaml:4:15: warning: ", id="a warning"),
        pytest.param("rules/map.yaml", CONFIG_MAP, 1, "rules/map.yaml:11:59: rule", id="in a ConfigMap"),
        pytest.param("rules/kustomization.yaml", "resources: []\n", 0, "no files to check", id="a kustomization"),
        pytest.param("rules/tests/a.yaml", "kind: RuleTests\n", 0, "no files to check", id="tests of rules"),
        pytest.param("deploy/a.yaml", "kind: Service\n", 0, "no files to check", id="no rules"),
    ],
)  # fmt: skip
def test_changed_files_are_checked(repository: Repository, name: str, text: str, code: int, words: str) -> None:
    repository.write(name, text)
    ended, said = repository.check("vane-check")
    assert (ended, words in said) == (code, True), said


def test_a_folder_is_checked_as_a_whole(repository: Repository) -> None:
    signals, rules = GOOD.split("rules:\n")
    repository.write("rules/signals.yaml", signals)
    repository.git("commit", "--quiet", "--message", "signals")
    repository.write("rules/rules.yaml", f"apiVersion: vane.dev/v1\nkind: Rules\nrules:\n{rules}")
    assert "unknown signal" in repository.check("vane-check")[1]
    code, said = repository.check("vane-check-folder")
    assert (code, "2 files, 0 problems" in said) == (0, True), said


def test_names_are_compared_over_all_changed_files(repository: Repository) -> None:
    repository.write("rules/a.yaml", GOOD)
    repository.write("rules/b.yaml", GOOD)
    code, said = repository.check("vane-check")
    assert (code, "is defined twice" in said) == (1, True), said
