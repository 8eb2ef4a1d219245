"""Reports that only change a text: written at a steady pace, so that a wave of refusals is none at the API server.

When a rule frees a few nodes for thousands of Pods, all but a few are refused again, with other numbers in the text of
their condition. Nothing acts on that text; new conditions and new reasons go at once.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from scheduler.kube.binder.messages import FailureReport

APART_S = 0.025
"""At most 40 a second go out, so that no more than 50 come in within any one, whatever holds some of them up."""

_LOOK_S = 0.005


def changes_only_text(report: FailureReport) -> bool:
    """Whether the Pod has the condition already, for the same reason, and nothing else is to be written."""
    return (
        report.current_status == "False"
        and report.current_reason == report.reason
        and report.nominated_node_name is None
    )


class PacedReports:
    """Hands on reports in order of their Pods, `APART_S` seconds apart; of several on one Pod the last counts.

    None is handed on while there is no room, because requests take long: what waited together would come in together.
    """

    def __init__(
        self,
        submit: Callable[[FailureReport], None],
        has_room: Callable[[], bool],
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._submit = submit
        self._has_room = has_room
        self._clock = clock
        self._sleep = sleep
        self._waiting: OrderedDict[str, FailureReport] = OrderedDict()
        self._next_s = float("-inf")
        self._pump: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, report: FailureReport) -> None:
        self._waiting[report.pod.uid] = report
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._run())

    def discard(self, uid: str) -> None:
        self._waiting.pop(uid, None)

    async def _run(self) -> None:
        while self._waiting:
            now_s = self._clock()
            if now_s < self._next_s or not self._has_room():
                await self._sleep(max(self._next_s - now_s, _LOOK_S))
                continue
            self._next_s = now_s + APART_S
            self._submit(self._waiting.popitem(last=False)[1])
