from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from scheduler.signals.files import read_rule_files
from scheduler.signals.format.rule_files import parse_rule_files
from scheduler.sim.arm import Feed
from scheduler.sim.demo import choose_screen
from scheduler.sim.edit import AFTER, BEFORE, edit_rules
from scheduler.sim.live import LiveScreen, PictureScreen
from scheduler.sim.nodes import make_nodes
from scheduler.sim.phases import EDIT, SHIFT, timetable
from scheduler.sim.reasons import Told, tell
from scheduler.sim.screen import ArmView, Moment, PlainScreen
from scheduler.sim.statistics import Ledger
from scheduler.sim.summary import summary
from scheduler.sim.workloads import Behaviour
from scheduler.sim.world import World

PHASES = {phase.key: phase for phase in timetable(is_fast=False)}
TERM = {"plugin": "SignalScore", "weight": 2.0, "values": [80, 40]}
FIT = {"plugin": "NodeResourcesFit", "name": "", "weight": 1.0, "values": [50, 50], "contribution": [50_000, 50_000]}
USE = {"rule": "avoid-hot-nodes", "signal": "node_cpu_use", "freshness": "fresh", "age_s": 0.84, "value": 0.312}


def decision(**changed: object) -> dict[str, Any]:
    return {
        "number": 7,
        "pod": "shop/web-1",
        "node": "node-a1",
        "message": "",
        "n_feasible": 12,
        "refusals": [],
        "terms": [FIT, {**TERM, "name": "avoid-hot-nodes", "contribution": [160_000, 80_000]}],
        "rules": [USE],
        **changed,
    }


def refusal(n_nodes: int, rule: str = "avoid-hot-nodes") -> dict[str, object]:
    return {"plugin": "SignalFilter", "rule": rule, "reason": "…", "n_nodes": n_nodes}


def test_a_decision_names_the_rule_its_sample_and_its_age() -> None:
    told = tell(decision(refusals=[refusal(3), refusal(2, rule="")]))
    assert told == Told(
        7, "web-1", "node-a1", "avoid-hot-nodes: CPU 31 %, 0.8 s old; 3 refused by avoid-hot-nodes", True, 3
    )


@pytest.mark.parametrize(
    ("changed", "why", "is_by_rule"),
    [
        ({"terms": [FIT]}, "all equal: drawn by the Pod's UID", False),
        ({"terms": [{**FIT, "contribution": [60_000, 50_000]}]}, "least requested", False),
        ({"n_feasible": 1, "terms": []}, "the only node left", False),
        ({"rules": [{**USE, "value": None, "age_s": None}]}, "avoid-hot-nodes: node_cpu_use has no sample", True),
        ({"rules": [{**USE, "freshness": "fading"}]}, "avoid-hot-nodes: CPU 31 %, 0.8 s old, fading", True),
        ({"rules": [{**USE, "signal": "web_p99", "value": 87.4}]}, "avoid-hot-nodes: p99 87 ms, 0.8 s old", True),
        ({"rules": [{**USE, "signal": "mine", "value": 0.5}]}, "avoid-hot-nodes: mine 0.5, 0.8 s old", True),
    ],
)
def test_what_made_the_difference(changed: dict[str, object], why: str, is_by_rule: bool) -> None:
    told = tell(decision(**changed))
    assert (told.why, told.is_by_rule) == (why, is_by_rule)


def test_a_pod_that_fits_nowhere_keeps_the_schedulers_words() -> None:
    message = '0/12 nodes are available: 12 node(s) rejected by rule "avoid-hot-nodes".'
    told = tell(decision(node="", message=message, refusals=[refusal(12)], terms=[]))
    assert (told.node, told.why, told.n_refused) == ("", message, 12)


def test_the_edit_changes_one_line_and_the_rules_still_load(tmp_path: Path) -> None:
    shipped = Path("scheduler/sim/rules/demo.yaml").read_text()
    file = tmp_path / "demo.yaml"
    file.write_text(shipped)
    diff = edit_rules(file)
    changed = [line for line in diff if line[0] in "+-" and not line.startswith(("+++", "---"))]
    assert changed == [f"-    {BEFORE}", f"+    {AFTER}"]
    assert [path.name for path in tmp_path.iterdir()] == ["demo.yaml"]
    rules = {rule.name: rule for rule in parse_rule_files(read_rule_files([tmp_path])).rules}
    limit = rules["avoid-hot-nodes"].filter
    assert limit is not None
    assert limit.max == 0.65
    with pytest.raises(ValueError, match="0 lines"):
        edit_rules(file)


@pytest.mark.parametrize("is_fast", [False, True])
def test_phases_follow_each_other_and_stay_under_a_minute(is_fast: bool) -> None:
    phases = timetable(is_fast)
    assert [phase.begins_s for phase in phases[1:]] == [phase.ends_s for phase in phases[:-1]]
    assert phases[0].begins_s == 0.0
    assert phases[-1].ends_s <= (20.0 if is_fast else 50.0)


def moment(key: str, after_s: float = 5.0, told: tuple[Told, ...] = ()) -> Moment:
    world = World(make_nodes(), seed=1)
    world.start("1", "batch-1", "node-b2", Behaviour(6.9, 0.0))
    message = "0/12 nodes are available: 12 Insufficient cpu."
    arms = [
        ArmView(feed.value, world.states(0.0), 9, 8, 3.0, is_prometheus_up, (("web-9", message),))
        for feed, is_prometheus_up in ((Feed.RULES, False), (Feed.NONE, True))
    ]
    return Moment(PHASES[key].begins_s + after_s, 48.0, PHASES[key], arms, told, "CPU 31 %, 0.8 s old")


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


def test_the_summary_is_a_line_per_figure_and_a_column_per_arm() -> None:
    ledger = Ledger()
    ledger.created("1", 0.0)
    ledger.bound("1", 0.012)
    text = summary({Feed.RULES: ledger.figures(), Feed.NONE: Ledger().figures()}, seed=5)
    assert "seed 5" in text
    assert "Pods placed" + " " * 24 + f"{'1 of 1':>18}{'0 of 0':>18}" in text
    assert f"{'12 ms':>18}{'-':>18}" in text
    assert max(map(len, text.splitlines())) <= 120
