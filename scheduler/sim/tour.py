"""The tour: arms side by side on the same arrivals, moved through the phases in real time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from scheduler.errors import VaneError
from scheduler.sim.arm import Arm, Feed, TourPlan
from scheduler.sim.law import Shift
from scheduler.sim.phases import (
    BACK,
    DOWN,
    EDIT,
    FIRST_PODS,
    PODS_PER_S,
    SHIFT,
    SHIFTED_BY,
    SHIFTED_ZONE,
    Phase,
    begin_of,
    edit_rules,
)
from scheduler.sim.reasons import Told, sample, tell
from scheduler.sim.screen import ArmView, Screen, TourMoment
from scheduler.sim.statistics import Figures
from scheduler.sim.workloads import arrivals

_STEP_S: Final = 0.1
_BEAT_S: Final = 1.0
_LOOK_S: Final = 0.5
_LAST_ARRIVAL_S: Final = 1.0
_READY_S: Final = 30.0


class SteadyClock:
    """Seconds since 1970: the wall clock as it was at the start, moved on by the monotonic one, so it never steps."""

    def __init__(self) -> None:
        self._offset_s = datetime.now(UTC).timestamp() - time.monotonic()

    def __call__(self) -> float:
        return self._offset_s + time.monotonic()


class NotReadyError(VaneError):
    """A scheduler did not get ready in time."""


def make_plan(seed: int, phases: Sequence[Phase]) -> TourPlan:
    length_s = phases[-1].ends_s
    # The last ones are to be bound before the figures are read.
    coming = arrivals(seed, length_s - _LAST_ARRIVAL_S, FIRST_PODS, PODS_PER_S)
    shift = Shift(SHIFTED_ZONE, begin_of(phases, SHIFT), SHIFTED_BY)
    return TourPlan(seed, coming, shift)


class Tour:
    """Runs the arms of the given feeds through the phases; the first arm is the one that the screen explains.

    Use as an async context manager: leaving it stops every server and every scheduler.
    """

    def __init__(
        self,
        feeds: Sequence[Feed],
        plan: TourPlan,
        phases: Sequence[Phase],
        folder: Path,
        clock: Callable[[], float],
    ) -> None:
        self._clock = clock
        self.arms = [Arm(feed, plan, folder / feed.name.lower(), self._clock) for feed in feeds]
        self._plan = plan
        self._phases = phases
        self._sample = "no sample yet"
        self._next_arrival = 0
        self._beaten_s = self._clock()

    async def __aenter__(self) -> Tour:
        return self

    async def __aexit__(self, *_: object) -> None:
        ended = await asyncio.gather(*(arm.stop() for arm in self.arms), return_exceptions=True)
        for error in ended:
            if error is not None:
                raise error

    async def start(self, environ: Mapping[str, str], port: int) -> None:
        """Start every arm, the first one's API server on `port`; return once all schedulers are ready."""
        for i, arm in enumerate(self.arms):
            arm.folder.mkdir()
            await arm.start(environ, port if i == 0 else 0)
        deadline_s = time.monotonic() + _READY_S
        while not all([await arm.is_ready() for arm in self.arms]):
            if time.monotonic() > deadline_s:
                tails = "\n".join(arm.scheduler.log_tail() for arm in self.arms if arm.scheduler is not None)
                raise NotReadyError(f"the schedulers are not ready after {_READY_S:.0f} s:\n{tails}")
            self._beat(0.0, is_counted=False)
            await asyncio.sleep(_STEP_S)

    async def run(self, screen: Screen) -> Mapping[Feed, Figures]:
        """Go through all phases and return what each arm came to."""
        began_s = self._clock()
        looked_s = -_LOOK_S
        for phase in self._phases:
            screen.begin(phase)
            screen.note(await self._enter(phase))
            while (at_s := self._clock() - began_s) < phase.ends_s:
                self._arrive_until(at_s)
                self._beat(at_s, is_counted=True)
                if at_s >= looked_s + _LOOK_S:
                    looked_s = at_s
                    screen.show(await self._moment(at_s, phase))
                await asyncio.sleep(_STEP_S)
        return {arm.feed: arm.ledger.figures() for arm in self.arms}

    async def go_on(self) -> None:
        """Keep everything running after the tour, for ever; Pods that were to end still do."""
        began_s = self._clock() - self._phases[-1].ends_s
        while True:
            self._beat(self._clock() - began_s, is_counted=False)
            for arm in self.arms:
                if arm.scheduler is not None:
                    arm.scheduler.check()
            await asyncio.sleep(_STEP_S)

    async def _enter(self, phase: Phase) -> Sequence[str]:
        """Change what the phase changes, and return what is to be seen of it."""
        if phase.key == EDIT:
            diffs = [edit_rules(arm.rule_file) for arm in self.arms if arm.feed is not Feed.NONE]
            return diffs[0] if diffs else ()
        if phase.key == DOWN:
            await asyncio.gather(*(arm.close_prometheus() for arm in self.arms))
        elif phase.key == BACK:
            await asyncio.gather(*(arm.open_prometheus() for arm in self.arms))
        return ()

    def _arrive_until(self, at_s: float) -> None:
        coming = self._plan.arrivals
        while self._next_arrival < len(coming) and coming[self._next_arrival].at_s <= at_s:
            for arm in self.arms:
                arm.arrive(coming[self._next_arrival])
            self._next_arrival += 1

    def _beat(self, at_s: float, is_counted: bool) -> None:
        now_s = self._clock()
        elapsed_s = now_s - self._beaten_s
        if elapsed_s >= _BEAT_S:
            self._beaten_s = now_s
            for arm in self.arms:
                arm.beat(at_s, elapsed_s, is_counted)

    async def _moment(self, at_s: float, phase: Phase) -> TourMoment:
        told: list[Told] = []
        for arm in self.arms:
            if arm.scheduler is not None:
                arm.scheduler.check()
        pages = self.arms[0].pages
        if pages is not None:
            decisions = await pages.new_decisions()
            told = [tell(decision) for decision in decisions]
            uses = [use for use in decisions[-1]["rules"] if use["age_s"] is not None] if decisions else []
            if uses:
                self._sample = sample(max(uses, key=lambda use: float(use["age_s"])))
            elif decisions:
                self._sample = "no sample young enough"
        views = [_view(arm) for arm in self.arms]
        return TourMoment(at_s, self._phases[-1].ends_s, phase, views, told, self._sample)


def _view(arm: Arm) -> ArmView:
    figures = arm.ledger.figures()
    return ArmView(
        title=arm.feed.value,
        states=arm.states,
        n_created=figures.n_created,
        n_bound=figures.n_bound,
        hot_pod_s=figures.hot_pod_s,
        is_prometheus_up=arm.is_prometheus_up,
        failures=tuple(arm.failures.items()),
    )
