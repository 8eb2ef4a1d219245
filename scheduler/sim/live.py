"""The live screen, drawn with rich: the phase, nodes by zone as bars, the last decisions and why."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Final, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from scheduler.sim.law import HOT
from scheduler.sim.nodes import ZONES
from scheduler.sim.phases import SHIFT, Phase
from scheduler.sim.reasons import Told
from scheduler.sim.screen import ArmView, Screen, TourMoment
from scheduler.sim.world import NodeState

_MOST_DECISIONS: Final = 9
_OTHER_LINES: Final = 15
"""What the panels take without the decisions: head, arms, and the frame of the decisions with two that wait."""
_LONGEST_BAR: Final = 10
_WARM: Final = 0.6
_PICTURE_WIDTH: Final = 118
_PICTURE_HEIGHT: Final = 40
_PICTURE_AT: Final = 0.75
"""At which part of the shift's phase the picture is taken: the samples have seen it by then."""


class _Picture:
    """What is on the screen now."""

    def __init__(self) -> None:
        self._told: deque[Told] = deque(maxlen=_MOST_DECISIONS)
        self._note: Sequence[str] = ()
        self._phase: Phase | None = None

    def begin(self, phase: Phase) -> None:
        self._phase = phase
        self._note = ()

    def note(self, lines: Sequence[str]) -> None:
        self._note = lines

    def take(self, moment: TourMoment) -> None:
        self._told.extend(moment.told)

    def draw(self, moment: TourMoment, width: int, height: int) -> RenderableType:
        parts: list[RenderableType] = [self._head(moment)]
        n_free = height - _OTHER_LINES
        if self._note:
            # Without the names of the file and the place in it.
            diff = _diff([line for line in self._note if not line.startswith(("---", "+++", "@@"))])
            parts.append(Panel(diff, title="the edit", border_style="yellow", padding=(0, 1)))
            n_free -= len(diff.plain.splitlines()) + 2
        parts += [_arms(moment.arms, width), self._decisions(moment, min(max(n_free, 1), _MOST_DECISIONS))]
        return Group(*parts)

    def _head(self, moment: TourMoment) -> RenderableType:
        phase = moment.phase
        title = Text(f" {phase.title} ", style="bold reverse")
        text = Text.assemble(title, f"  {phase.look_at}")
        return Panel(text, title="vane demo", subtitle=f"{moment.at_s:.0f} of {moment.length_s:.0f} s", padding=(0, 1))

    def _decisions(self, moment: TourMoment, n_shown: int) -> RenderableType:
        table = Table.grid(padding=(0, 2))
        table.add_column(style="bold", no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        for told in list(self._told)[-n_shown:]:
            table.add_row(told.pod, told.node or "-", Text(told.why, style="green" if told.is_by_rule else "dim"))
        for pod, message in moment.arms[0].failures[:2]:
            table.add_row(pod, Text("waits", style="red"), Text(message, style="red"))
        subtitle = f"oldest sample: {moment.sample}"
        return Panel(table, title="latest decisions and why", subtitle=subtitle, height=n_shown + 4, padding=(0, 1))


def _arms(arms: Sequence[ArmView], width: int) -> RenderableType:
    # A zone's column holds the node's name, the bar, the number of Pods, and a space.
    column = (width // len(arms) - 4) // len(ZONES)
    bar = min(max(column - 8, 2), _LONGEST_BAR)
    grid = Table.grid(expand=True)
    for _ in arms:
        grid.add_column(ratio=1)
    grid.add_row(*(_arm(arm, bar) for arm in arms))
    return grid


def _arm(arm: ArmView, bar: int) -> RenderableType:
    grid = Table.grid(expand=True, padding=(0, 1))
    for _ in ZONES:
        grid.add_column(ratio=1, no_wrap=True)
    grid.add_row(*(Text(f"{zone} {100.0 * arm.zone_cpu(zone):.0f} %", style="bold") for zone in ZONES))
    by_zone = [[state for state in arm.states if state.node.zone == zone] for zone in ZONES]
    for row in zip(*by_zone, strict=True):
        grid.add_row(*(_node(state, bar) for state in row))
    title = arm.title if arm.is_prometheus_up else f"{arm.title}, Prometheus DOWN"
    counts = f"{arm.n_bound} of {arm.n_created} Pods bound   {arm.hot_pod_s:.0f} hot Pod-seconds"
    return Panel(grid, title=title, subtitle=counts, border_style="cyan" if arm.is_prometheus_up else "red")


def _node(state: NodeState, bar: int) -> Text:
    style = "red" if state.cpu > HOT else "yellow" if state.cpu > _WARM else "green"
    kind, _, number = state.node.name.partition("-")
    filled = round(bar * state.cpu)
    return Text.assemble(
        f"{kind if state.node.cards else number:<4}",
        ("█" * filled, style),
        ("·" * (bar - filled), "dim"),
        f"{state.n_pods:>3}",
    )


def _diff(lines: Sequence[str]) -> Text:
    styles = {"+": "green", "-": "red", "@": "cyan"}
    return Text("\n").join(Text(line, style=styles.get(line[:1], "")) for line in lines)


class LiveScreen:
    """Draws over the terminal while the tour runs, and leaves it as it was."""

    def __init__(self, console: Console) -> None:
        self._picture = _Picture()
        self._console = console
        self._live = Live(console=self._console, screen=True, auto_refresh=False)
        self._is_on = False

    def begin(self, phase: Phase) -> None:
        if not self._is_on:
            self._is_on = True
            self._live.start()
        self._picture.begin(phase)

    def note(self, lines: Sequence[str]) -> None:
        if lines:
            self._picture.note(lines)

    def show(self, moment: TourMoment) -> None:
        self._picture.take(moment)
        width, height = self._console.size
        self._live.update(self._picture.draw(moment, width, height), refresh=True)

    def close(self) -> None:
        if self._is_on:
            self._is_on = False
            self._live.stop()


class PictureScreen:
    """Another screen, and an SVG file of what the live one shows once the load has shifted."""

    def __init__(self, screen: Screen, file: Path) -> None:
        self._screen = screen
        self._file = file
        self._picture = _Picture()
        self._is_taken = False

    def begin(self, phase: Phase) -> None:
        self._picture.begin(phase)
        self._screen.begin(phase)

    def note(self, lines: Sequence[str]) -> None:
        self._screen.note(lines)

    def show(self, moment: TourMoment) -> None:
        self._picture.take(moment)
        phase = moment.phase
        taken_s = phase.begins_s + _PICTURE_AT * (phase.ends_s - phase.begins_s)
        if not self._is_taken and phase.key == SHIFT and moment.at_s > taken_s:
            self._is_taken = True
            console = Console(file=StringIO(), record=True, width=_PICTURE_WIDTH, force_terminal=True)
            console.print(self._picture.draw(moment, _PICTURE_WIDTH, _PICTURE_HEIGHT))
            svg = console.export_svg(title="vane demo", unique_id="vane-demo")
            # Without the fonts that it would fetch from elsewhere: any with fixed width will do.
            self._file.write_text(re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL))
        self._screen.show(moment)

    def close(self) -> None:
        self._screen.close()


def live_screen(out: TextIO) -> LiveScreen | None:
    """Return a screen on this terminal; None if it is none, or one that cannot be drawn over."""
    console = Console(file=out)
    return LiveScreen(console) if out.isatty() and not console.is_dumb_terminal else None
