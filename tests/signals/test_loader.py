from __future__ import annotations

import os
from pathlib import Path

import pytest

from scheduler.errors import ConfigError, RuleFilesError
from scheduler.model.rules import RuleSet
from scheduler.signals.loader import RuleLoader
from tests.signals.asking.scripted import Clock


def text(expr: str = "node_load1") -> str:
    return f"apiVersion: vane.dev/v1\nkind: Rules\nsignals:\n  load:\n    expr: max by (instance) ({expr})\n"


class World:
    """A loader, what it reported, and its clock."""

    def __init__(self, path: Path) -> None:
        self.clock = Clock()
        self.loaded: list[RuleSet] = []
        self.errors: list[str] = []
        self.loader = RuleLoader([path], self.loaded.append, self.errors.append, self.clock)

    def look(self, times: int = 2) -> None:
        for _ in range(times):
            self.clock.now_s += 0.25
            self.loader.poll()


def test_the_first_load_gives_the_rules_or_raises(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    with pytest.raises(ConfigError, match=r"rules\.yaml"):
        World(path).loader.load()
    path.write_text("nonsense")
    with pytest.raises(RuleFilesError, match=r"rules\.yaml:1:1"):
        World(path).loader.load()
    path.write_text(text())
    rules = World(path).loader.load()
    assert (rules.generation, set(rules.signals)) == (1, {"load"})


def test_warnings_are_logged_with_each_load(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(text("mad_over_time(x[5m])"))
    world = World(path)
    world.loader.load()
    world.loader.log_warnings()
    assert [one.getMessage().partition(": signal")[0] for one in caplog.records] == [f"rule files: {path}:5:11"]
    path.write_text(text("limitk(2, x)"))
    world.look()
    assert "limitk is experimental" in caplog.records[-1].getMessage()
    known = RuleLoader(
        [path], world.loaded.append, world.errors.append, features={"": {"promql-experimental-functions"}}
    )
    caplog.clear()
    known.load()
    known.log_warnings()
    assert caplog.records == []


def test_a_change_is_loaded_within_a_second_and_once(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(text())
    world = World(path)
    world.loader.load()
    world.look(4)
    assert world.loaded == []
    path.write_text(text("node_load15"))
    world.look(3)
    assert [rules.generation for rules in world.loaded] == [2]
    assert "node_load15" in world.loaded[0].signals["load"].expr
    world.look(4)
    assert len(world.loaded) == 1


def test_files_are_looked_at_four_times_a_second_at_most(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(text())
    world = World(path)
    world.loader.load()
    path.write_text(text("node_load15"))
    for _ in range(100):
        world.clock.now_s += 0.002
        world.loader.poll()
    assert world.loaded == []


def test_a_bad_change_is_reported_once_and_nothing_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(text())
    world = World(path)
    world.loader.load()
    path.write_text(text("sum("))
    world.look(8)
    assert world.loaded == []
    assert len(world.errors) == 1
    assert "rules.yaml:5:" in world.errors[0]
    path.write_text(text())
    world.look(3)
    assert [rules.generation for rules in world.loaded] == [2], "a refused load counts for nothing"


def test_a_file_that_goes_away_leaves_the_rules_and_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(text())
    world = World(path)
    world.loader.load()
    path.unlink()
    world.look(4)
    assert (world.loaded, len(world.errors)) == ([], 1)


def test_a_file_being_written_is_left_until_it_is_still(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(text())
    world = World(path)
    world.loader.load()
    for i in range(4):
        path.write_text("apiVersion: vane.dev/v1\n" + " " * i)
        world.look(1)
    assert world.errors == []
    path.write_text(text("node_load15"))
    world.look(3)
    assert (len(world.loaded), world.errors) == (1, [])


def test_the_swap_of_a_mounted_configmap_counts(tmp_path: Path) -> None:
    for version, expr in (("..1", "node_load1"), ("..2", "node_load15")):
        (tmp_path / version).mkdir()
        (tmp_path / version / "rules.yaml").write_text(text(expr))
    os.symlink("..1", tmp_path / "..data")
    os.symlink("..data/rules.yaml", tmp_path / "rules.yaml")
    world = World(tmp_path)
    assert "node_load1)" in world.loader.load().signals["load"].expr
    os.symlink("..2", tmp_path / "..new")
    os.replace(tmp_path / "..new", tmp_path / "..data")
    world.look(3)
    assert ["node_load15" in rules.signals["load"].expr for rules in world.loaded] == [True]


def test_a_server_nobody_has_configured_keeps_the_previous_rules(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(text())
    clock = Clock()
    loaded: list[RuleSet] = []
    errors: list[str] = []
    loader = RuleLoader([path], loaded.append, errors.append, clock, servers=frozenset({"far"}))
    loader.load()

    def change(server: str) -> None:
        path.write_text(f"{text()}    server: {server}\n")
        for _ in range(3):
            clock.now_s += 0.25
            loader.poll()

    change("fair")
    assert loaded == []
    assert "server: unknown server, got 'fair'" in errors[0]
    assert "known: far" in errors[0]
    change("far")
    assert loaded[0].signals["load"].server == "far"
