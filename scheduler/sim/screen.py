"""What every screen shows, and the plain screen: lines of text for pipes, logs and terminals without rich."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TextIO

import numpy as np

from scheduler.sim.law import HOT
from scheduler.sim.nodes import ZONES
from scheduler.sim.phases import Phase
from scheduler.sim.reasons import Told
from scheduler.sim.world import NodeState


@dataclass(frozen=True, slots=True)
class ArmView:
    """One arm at one moment; `failures` are Pods that fit nowhere so far, with the scheduler's words."""

    title: str
    states: Sequence[NodeState]
    n_created: int
    n_bound: int
    hot_pod_s: float
    is_prometheus_up: bool
    failures: Sequence[tuple[str, str]]

    @property
    def n_hot(self) -> int:
        return sum(state.cpu > HOT for state in self.states)

    def zone_cpu(self, zone: str) -> float:
        """Return the mean CPU use of a zone's nodes."""
        return float(np.mean([state.cpu for state in self.states if state.node.zone == zone]))


@dataclass(frozen=True, slots=True)
class TourMoment:
    """The tour at `at_s` seconds after its start; `told` are the decisions of the first arm since the last moment.

    sample
        The oldest sample that its latest decision rested on, in words.
    """

    at_s: float
    length_s: float
    phase: Phase
    arms: Sequence[ArmView]
    told: Sequence[Told]
    sample: str


class Screen(Protocol):
    """Shows the tour while it runs."""

    def begin(self, phase: Phase) -> None: ...
    def note(self, lines: Sequence[str]) -> None:
        """Show lines that belong to the phase under way, as the diff of an edited file."""

    def show(self, moment: TourMoment) -> None: ...
    def close(self) -> None: ...


_STATUS_EVERY_S: Final = 2.0
_LINES_PER_MOMENT: Final = 2


class PlainScreen:
    """The same facts as lines, few enough to be read: some decisions, and every two seconds how things stand."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._next_status_s = 0.0
        self._failed: set[str] = set()

    def begin(self, phase: Phase) -> None:
        self._say("", f"--- {phase.begins_s:.0f} s: {phase.title}", f"    {phase.look_at}")

    def note(self, lines: Sequence[str]) -> None:
        self._say(*(f"    {line}" for line in lines))

    def show(self, moment: TourMoment) -> None:
        self._say(*(decision_line(told) for told in moment.told[-_LINES_PER_MOMENT:]))
        for pod, message in moment.arms[0].failures:
            if pod not in self._failed:
                self._failed.add(pod)
                self._say(f"  {pod:<9} waits: {message}")
        if moment.at_s >= self._next_status_s:
            self._next_status_s = moment.at_s + _STATUS_EVERY_S
            arms = " | ".join(map(arm_line, moment.arms))
            self._say(f"  [{moment.at_s:4.1f} s] {arms} | {moment.sample}")

    def close(self) -> None:
        """Nothing is left to do."""

    def _say(self, *lines: str) -> None:
        for line in lines:
            self._out.write(line + "\n")
        self._out.flush()


def decision_line(told: Told) -> str:
    if not told.node:
        return f"  {told.pod:<9} fits nowhere: {told.why}"
    return f"  {told.pod:<9} -> {told.node:<8} {told.why}"


def arm_line(arm: ArmView) -> str:
    zones = " ".join(f"{zone[-1]} {100 * arm.zone_cpu(zone):.0f}" for zone in ZONES)
    up = "" if arm.is_prometheus_up else ", Prometheus DOWN"
    return f"{arm.title}: {arm.n_bound}/{arm.n_created} Pods bound, CPU % {zones}, {arm.n_hot} hot nodes{up}"
