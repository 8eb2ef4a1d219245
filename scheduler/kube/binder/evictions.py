"""PodEvictions: removes the victims of preemptions, after writing to each why."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from scheduler.kube.binder import events
from scheduler.kube.binder.fence import Fence
from scheduler.kube.binder.http import JSON, STRATEGIC_MERGE_PATCH, ApiHttp, NoAnswerError, text_of
from scheduler.kube.binder.messages import EventRequest, EvictRequest, EvictResult
from scheduler.kube.binder.retry import Chance, Tries

MAX_EVICTIONS = 8


class PodEvictions:
    """Carries out evictions, `MAX_EVICTIONS` at a time at most: the condition DisruptionTarget, the deletion, an Event.

    Source: kube-scheduler v1.37 framework/preemption/executor.go (behaviour). Other than there the UID saves a Pod of
    the same name that was made since.
    """

    def __init__(
        self,
        http: ApiHttp,
        on_event: Callable[[EventRequest], None],
        fence: Fence,
        now_ns: Callable[[], int],
        chance: Chance,
    ) -> None:
        self._http = http
        self._on_event = on_event
        self._fence = fence
        self._now_ns = now_ns
        self._chance = chance
        self._slots = asyncio.Semaphore(MAX_EVICTIONS)

    async def evict(self, request: EvictRequest) -> EvictResult:
        """Evict the Pod; raises nothing: whatever happens is an outcome."""
        async with self._slots:
            path = request.pod.path
            told = await self._send(
                request,
                "PATCH",
                f"{path}/status",
                events.disruption_patch(request, self._now_ns()),
                retry_conflict=True,
            )
            if told is not None:
                return told
            ended = await self._send(request, "DELETE", path, events.deletion(request.pod), retry_conflict=False)
            if ended is not None:
                return ended
            self._on_event(events.preempted_event(request))
            return EvictResult(number=request.number, outcome="evicted")

    async def _send(
        self, request: EvictRequest, method: str, path: str, body: events.JsonObject, *, retry_conflict: bool
    ) -> EvictResult | None:
        """Return None where it was carried out, else how the eviction ends."""
        tries = Tries(self._chance, retry_conflict=retry_conflict)
        content_type = STRATEGIC_MERGE_PATCH if method == "PATCH" else JSON
        while True:
            if self._fence.is_closed:
                message = "not sent: the lease's deadline has passed"
                return EvictResult(number=request.number, outcome="expired", message=message)
            try:
                answer = await self._http.request(
                    method, path, msgspec.json.encode(body), content_type, fence=self._fence
                )
            except NoAnswerError as error:
                if not await tries.again(error):
                    return EvictResult(number=request.number, outcome="failed", message=str(error))
                continue
            if answer.is_ok:
                return None
            if answer.code == 404 or answer.refuses_uid:
                return EvictResult(number=request.number, outcome="gone", message=answer.message)
            if not await tries.again(answer):
                return EvictResult(number=request.number, outcome="failed", message=text_of(answer))
