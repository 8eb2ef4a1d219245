from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "scheduler"
README = PACKAGE / "README.md"
MAX_LINES = 400

# One violation of each contract and the line of the report that must name it.
VIOLATIONS = {
    "a plugin that reads the clock": ("plugins/node_name.py", "import time", "scheduler.plugins.node_name -> time"),
    "a core that logs": ("framework/status.py", "import logging", "scheduler.framework.status -> logging"),
    "a model that counts": (
        "model/labels.py",
        "from scheduler import metrics",
        "scheduler.model.labels -> scheduler.metrics",
    ),
    "a plugin that knows another": (
        "plugins/taints.py",
        "from scheduler.plugins import node_name",
        "scheduler.plugins.taints -> scheduler.plugins.node_name",
    ),
    "a volume plugin that knows another": (
        "plugins/volumes/volume_zone.py",
        "from scheduler.plugins.volumes import volume_restrictions",
        "scheduler.plugins.volumes.volume_zone -> scheduler.plugins.volumes.volume_restrictions",
    ),
    "a layer that calls up": (
        "framework/index.py",
        "from scheduler import loop",
        "scheduler.framework.index -> scheduler.loop",
    ),
    "siblings that know each other": (
        "cluster/heap.py",
        "from scheduler import signals",
        "scheduler.cluster.heap -> scheduler.signals",
    ),
    "a library without its owner": ("loop/ports.py", "import aiohttp", "scheduler.loop.ports -> aiohttp"),
    "a module without a layer": ("stray.py", "", "scheduler.stray"),
}


def sources(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "cache" not in path.relative_to(folder).parts)


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as main; main()"]
    return subprocess.run(
        [*command, "--no-cache", "--no-logo"], cwd=folder, capture_output=True, text=True, check=False
    )


def test_no_file_is_long() -> None:
    lines = {
        path: len(path.read_text().splitlines()) for folder in (PACKAGE, ROOT / "tests") for path in sources(folder)
    }
    assert {str(path.relative_to(ROOT)): n for path, n in lines.items() if n > MAX_LINES} == {}


def test_every_package_says_what_it_is() -> None:
    packages = [path for path in sources(PACKAGE) if path.name == "__init__.py"]
    assert PACKAGE / "__init__.py" in packages
    assert [str(path) for path in packages if not ast.get_docstring(ast.parse(path.read_text()))] == []


def test_every_folder_with_code_is_a_package() -> None:
    folders = {path.parent for path in sources(PACKAGE)}
    assert [str(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


def test_the_readme_names_only_what_exists() -> None:
    named = set(re.findall(r"`([\w/]+(?:\.py|/))`", README.read_text()))
    assert named
    assert sorted(name for name in named if not (PACKAGE / name).exists()) == []


KIND_TEST = re.compile(r"ByKind\.|BuiltInKind\.|\.by (is|in|not|==|!=)|(built_in|label_match) is")
ASKED_FOR_THE_KIND = ("rules/", "signals/format/", "signals/asking/groupings")


def test_few_ask_for_the_kind_of_a_signal() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in sources(PACKAGE)
        if not str(path.relative_to(PACKAGE)).startswith(ASKED_FOR_THE_KIND)
        for line in path.read_text().splitlines()
        if KIND_TEST.search(line)
    ]
    assert len(found) <= 8, found


def test_import_contracts_hold() -> None:
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_import_contracts_bite(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "scheduler", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name, line, _ in VIOLATIONS.values():
        path = tmp_path / "scheduler" / name
        path.write_text((path.read_text() if path.exists() else "") + f"\n{line}\n")
    report = " ".join(lint_imports(tmp_path).stdout.split())  # which wraps long lines
    assert [what for what, (_, _, expected) in VIOLATIONS.items() if expected not in report] == [], report
