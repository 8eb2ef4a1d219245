from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from scheduler.sim.arm import Feed
from scheduler.sim.demo import choose_screen
from scheduler.sim.live import LiveScreen, PictureScreen
from scheduler.sim.nodes import make_nodes
from scheduler.sim.phases import EDIT, SHIFT, timetable
from scheduler.sim.reasons import Told, tell
from scheduler.sim.screen import ArmView, PlainScreen, TourMoment
from scheduler.sim.workloads import Behaviour
from scheduler.sim.world import SimWorld
from tests.sim.test_reasons import decision

PHASES = {phase.key: phase for phase in timetable(is_fast=False)}


def moment(key: str, after_s: float = 5.0, told: tuple[Told, ...] = ()) -> TourMoment:
    world = SimWorld(make_nodes(), seed=1)
    world.start("1", "batch-1", "node-b2", Behaviour(6.9, 0.0))
    message = "0/12 nodes are available: 12 Insufficient cpu."
    arms = [
        ArmView(feed.value, world.states(0.0), 9, 8, 3.0, is_prometheus_up, (("web-9", message),))
        for feed, is_prometheus_up in ((Feed.RULES, False), (Feed.NONE, True))
    ]
    return TourMoment(PHASES[key].begins_s + after_s, 48.0, PHASES[key], arms, told, "CPU 31 %, 0.8 s old")


def test_plain_lines_say_what_happens() -> None:
    out = io.StringIO()
    screen = PlainScreen(out)
    screen.begin(PHASES[EDIT])
    screen.note(["-old", "+new"])
    told = tell(decision())
    screen.show(moment(EDIT, told=(told,)))
    screen.show(moment(EDIT, after_s=5.5))
    screen.close()
    said = out.getvalue()
    assert "A rule file is edited" in said
    assert "    +new\n" in said
    assert "  web-1     -> node-a1  avoid-hot-nodes: CPU 31 %, 0.8 s old\n" in said
    assert said.count("waits: 0/12 nodes are available: 12 Insufficient cpu.") == 1
    assert said.count("with rules: 8/9 Pods bound") == 1
    assert "1 hot nodes, Prometheus DOWN | without rules" in said


@pytest.mark.parametrize("size", [(120, 45), (80, 24), (40, 10)])
def test_the_live_screen_shows_the_same_on_any_terminal(size: tuple[int, int]) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=size[0], height=size[1], legacy_windows=False)
    screen = LiveScreen(console)
    screen.begin(PHASES[EDIT])
    screen.note(["--- demo.yaml", "-old", "+new"])
    screen.show(moment(EDIT, told=(tell(decision()),)))
    screen.close()
    assert isinstance(console.file, io.StringIO)
    drawn = console.file.getvalue()
    assert "A rule file is edited" in drawn
    if size[0] >= 80:
        for text in ("+new", "with rules", "without rules", "Prometheus DOWN", "web-1", "avoid-hot-nodes: CPU 31 %"):
            assert text in drawn
    assert "demo.yaml" not in drawn


def test_the_picture_is_what_the_live_screen_shows_after_the_shift(tmp_path: Path) -> None:
    file = tmp_path / "demo.svg"
    plain = io.StringIO()
    screen = PictureScreen(PlainScreen(plain), file)
    screen.begin(PHASES[SHIFT])
    screen.show(moment(SHIFT, after_s=1.0))
    assert not file.exists()
    screen.show(moment(SHIFT, after_s=12.0, told=(tell(decision()),)))
    screen.close()
    svg = file.read_text()
    assert "avoid-hot-nodes" in svg
    assert "@font-face" not in svg
    assert len(svg) < 100_000
    assert "Load shifts" in plain.getvalue()


def test_without_a_terminal_the_lines_are_plain() -> None:
    assert isinstance(choose_screen(io.StringIO(), None), PlainScreen)
