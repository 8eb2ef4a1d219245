"""Every snippet of the tutorial runs, and its table names what there is."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from scheduler.app.plugin_sources import GROUP
from scheduler.app.profiles import build_profiles
from scheduler.decision.decide import decide
from scheduler.framework.profile import POINTS, Profile
from scheduler.settings.load import load
from tests.builders import make_node, make_pod, snapshot_of

PAGE = Path(__file__).resolve().parents[2] / "scheduler" / "plugins" / "README.md"
TEXT = PAGE.read_text(encoding="utf-8")
SNIPPETS = {name: text for name, text in re.findall(r"^```\w+ (\S+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with every snippet under its name, which Python finds."""
    for name, text in SNIPPETS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        monkeypatch.delitem(sys.modules, Path(name).stem, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def profile_of(folder: Path, installed: list[EntryPoint] | None = None) -> Profile:
    return build_profiles(load({"config": str(folder / "vane.yaml")}, {}), installed or [])["vane"]


def test_every_snippet_has_a_name() -> None:
    assert set(SNIPPETS) == {"acme.py", "vane.yaml", "slow.py", "pyproject.toml", "test_acme.py"}
    assert TEXT.count("```") == 2 * len(SNIPPETS)


def test_the_first_plugin_is_enabled_by_the_first_configuration(folder: Path) -> None:
    profile = profile_of(folder)
    assert {plugin.name: weight for plugin, weight in profile.score}["FewPods"] == 5
    busy = [make_pod(f"p{i}", node="a") for i in range(30)]
    decision = decide(make_pod(), snapshot_of([make_node("a"), make_node("b"), make_node("c")], busy), profile)
    assert decision.diagnosis.reasons() == {"node(s) had too many pods": 1}
    assert profile.events["FewPods"]


def test_the_plugin_node_by_node_works(folder: Path) -> None:
    text = (folder / "vane.yaml").read_text().partition("      pluginConfig:")[0]
    (folder / "vane.yaml").write_text(text.replace("acme:FewPods", "slow:NoSpot"))
    nodes = [make_node("a", labels={"example.com/spot": "true"}), make_node("b")]
    assert decide(make_pod(priority=1000), snapshot_of(nodes), profile_of(folder)).node_name == "b"
    assert len(decide(make_pod(priority=999), snapshot_of(nodes), profile_of(folder)).feasible) == 2


def test_the_entry_point_is_found_by_its_name(folder: Path) -> None:
    offered = tomllib.loads((folder / "pyproject.toml").read_text())["project"]["entry-points"]
    assert list(offered) == [GROUP]
    installed = [EntryPoint(name, value, GROUP) for name, value in offered[GROUP].items()]
    (folder / "vane.yaml").write_text((folder / "vane.yaml").read_text().replace("acme:FewPods", "FewPods"))
    assert profile_of(folder, installed).filter[-1].name == "FewPods"


def test_the_test_of_the_tutorial_passes_and_can_fail(folder: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), "test_acme.py"]
    environ = {"PYTHONPATH": f"{PAGE.parents[2]}:{folder}", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "acme.py").write_text(SNIPPETS["acme.py"].replace(">= self._most", "> self._most"))
    assert subprocess.run(command, cwd=folder, env=environ, capture_output=True, check=False).returncode == 1


def test_the_first_plugin_is_as_short_as_promised() -> None:
    lines = SNIPPETS["acme.py"].splitlines()
    body = [line for line in lines if line and not line.startswith(("import ", "from "))]
    assert len(body) <= 20


def test_the_table_names_every_point_and_method() -> None:
    rows = re.findall(r"^\| (\d+) \| (?:part of )?`(\w+)` \| (.*?) \|", TEXT, re.MULTILINE)
    assert [int(number) for number, _, _ in rows] == list(range(1, 14))
    assert list(dict.fromkeys(point for _, point, _ in rows)) == list(POINTS)
    for _, point, methods in rows:
        assert all(hasattr(POINTS[point], name) for name in re.findall(r"`(\w+)`", methods)), point


def test_a_wrong_plugin_ends_the_command_with_1_and_its_place(folder: Path) -> None:
    text = (folder / "vane.yaml").read_text().replace("acme:FewPods", "acme:ManyPods")
    (folder / "vane.yaml").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "scheduler", "run", "--config", "vane.yaml", "--kubeconfig", "nowhere"],
        cwd=folder,
        env={"PYTHONPATH": f"{PAGE.parents[2]}:{folder}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        "vane.yaml:9:22: scheduler.profiles[0].plugins.multiPoint.enabled[0].name: cannot be imported: module acme has"
        " no 'ManyPods'"
    )
