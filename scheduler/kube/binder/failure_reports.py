"""FailureReports: the condition PodScheduled=False of Pods that could not be placed.

Reports that only change a text are written at a steady pace, so that a wave of refusals does not become a wave at the
API server. When a rule frees a few nodes for thousands of Pods, all but a few are refused again, with other numbers in
the text of their condition. Nothing acts on that text; new conditions and new reasons are written at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import msgspec

from scheduler.kube.binder import events
from scheduler.kube.binder.http import STRATEGIC_MERGE_PATCH, ApiAnswer, ApiHttp, NoAnswerError, text_of
from scheduler.kube.binder.messages import FailureReport, PodRef
from scheduler.kube.binder.retry import Chance, Tries

log = logging.getLogger(__name__)

MAX_REPORTS = 8
MAX_PACED = 4
"""How many reports may be under way where another one that only changes a text is begun."""
MAX_REMEMBERED_REPORTS = 10_000

APART_S = 0.025
"""At most 40 a second go out, so that no more than 50 come in within any one, whatever holds some of them up."""

_LOOK_S = 0.005

_encode = msgspec.json.Encoder().encode


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


class FailureReports:
    """Writes the PodScheduled condition; of several reports on one Pod that wait, only the last counts.

    Reports that only change a condition's text are written at a pace of their own, `paced`.
    """

    def __init__(self, http: ApiHttp, now_ns: Callable[[], int], chance: Chance, clock: Callable[[], float]) -> None:
        self._http = http
        self._now_ns = now_ns
        self._chance = chance
        self._slots = asyncio.Semaphore(MAX_REPORTS)
        self._paced = PacedReports(self._start, lambda: len(self._running) < MAX_PACED, clock)
        self._waiting: dict[str, FailureReport] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._overtaken: dict[str, asyncio.Event] = {}
        self._written: OrderedDict[str, tuple[str, str]] = OrderedDict()

    @property
    def n_pending(self) -> int:
        return len(self._waiting) + len(self._running) + len(self._paced)

    def submit(self, report: FailureReport) -> None:
        uid = report.pod.uid
        self._paced.discard(uid)
        if changes_only_text(report) and uid not in self._running:
            self._paced.add(report)
        else:
            self._start(report)

    def _start(self, report: FailureReport) -> None:
        uid = report.pod.uid
        self._waiting[uid] = report
        if uid not in self._running:
            self._running[uid] = asyncio.create_task(self._run(uid))

    async def settle(self, uid: str) -> None:
        """Drop what waits for this Pod and let end what is under way, so that no False is written after its bind.

        Only a request that has been sent is waited for: one that is to be tried again later is given up.
        """
        self._paced.discard(uid)
        self._waiting.pop(uid, None)
        self._written.pop(uid, None)
        overtaken = self._overtaken.get(uid)
        if overtaken is not None:
            overtaken.set()
            await asyncio.wait([self._running[uid]])

    async def _run(self, uid: str) -> None:
        try:
            async with self._slots:
                while (report := self._waiting.pop(uid, None)) is not None:
                    self._overtaken[uid] = asyncio.Event()
                    await self._write(report)
        finally:
            self._overtaken.pop(uid, None)
            del self._running[uid]

    async def _write(self, report: FailureReport) -> None:
        uid = report.pod.uid
        wanted = (report.reason, report.message)
        if self._written.get(uid) == wanted:
            # Our own patch has not come back through the watch yet.
            report = msgspec.structs.replace(
                report, current_status="False", current_reason=report.reason, current_message=report.message
            )
        patch = events.condition_patch(report, self._now_ns())
        if patch is None:
            return
        if await self._patch(report.pod, _encode(patch), self._overtaken[uid]):
            self._written[uid] = wanted
            self._written.move_to_end(uid)
            if len(self._written) > MAX_REMEMBERED_REPORTS:
                self._written.popitem(last=False)

    async def _patch(self, pod: PodRef, body: bytes, overtaken: asyncio.Event) -> bool:
        tries = Tries(self._chance, retry_conflict=True)
        failure: ApiAnswer | NoAnswerError
        while True:
            try:
                failure = answer = await self._http.request("PATCH", f"{pod.path}/status", body, STRATEGIC_MERGE_PATCH)
                if answer.is_ok:
                    return True
                if answer.code == 404 or answer.refuses_uid:
                    return False
            except NoAnswerError as error:
                failure = error
            has_another_try = await _unless(overtaken, tries.again(failure))
            if has_another_try is None:
                return False
            if not has_another_try:
                log.warning(
                    "the condition PodScheduled of Pod %s/%s was not written: %s",
                    pod.namespace,
                    pod.name,
                    text_of(failure),
                )
                return False


async def _unless(event: asyncio.Event, work: Coroutine[Any, Any, bool]) -> bool | None:
    """Return the result of some work; None, with the work cancelled, where the event comes first."""
    working, coming = asyncio.ensure_future(work), asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait((working, coming), return_when=asyncio.FIRST_COMPLETED)
        return None if event.is_set() else working.result()
    finally:
        working.cancel()
        coming.cancel()
