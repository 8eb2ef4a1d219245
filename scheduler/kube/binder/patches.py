"""PodPatches: writes annotations and nominations that plugins ask for."""

from __future__ import annotations

import asyncio

import msgspec

from scheduler.kube.binder import events
from scheduler.kube.binder.about_pods import is_other_pod, pod_path, text_of
from scheduler.kube.binder.fence import Fence
from scheduler.kube.binder.http import STRATEGIC_MERGE_PATCH, Answer, ApiHttp, NoAnswerError
from scheduler.kube.binder.messages import PatchRequest, PatchResult
from scheduler.kube.binder.pods import FailureReports
from scheduler.kube.binder.retry import Chance, Tries

MAX_PATCHES = 8


class PodPatches:
    """Carries out patches, at most `MAX_PATCHES` at a time, those of one Pod in the order they came in.

    They go to `pods/status`, whose strategy takes metadata over as well as the status, so that the right to patch
    Pods, which would let labels and images be changed too, is not needed.
    """

    def __init__(self, http: ApiHttp, reports: FailureReports, fence: Fence, chance: Chance) -> None:
        self._http = http
        self._reports = reports
        self._fence = fence
        self._chance = chance
        self._slots = asyncio.Semaphore(MAX_PATCHES)
        self._last: dict[str, asyncio.Future[None]] = {}

    async def patch(self, request: PatchRequest) -> PatchResult:
        """Patch the Pod; raises nothing: whatever happens is an outcome."""
        uid = request.pod.uid
        before, ended = self._last.get(uid), asyncio.get_running_loop().create_future()
        self._last[uid] = ended
        try:
            if before is not None:
                await before
            # A plugin's patch follows a decision: what was reported of an earlier attempt is no longer so.
            await self._reports.settle(uid)
            async with self._slots:
                return await self._patch(request)
        finally:
            ended.set_result(None)
            if self._last[uid] is ended:
                del self._last[uid]

    async def _patch(self, request: PatchRequest) -> PatchResult:
        path, body = f"{pod_path(request.pod)}/status", msgspec.json.encode(events.pod_patch(request))
        tries = Tries(self._chance, retry_conflict=True)
        failure: Answer | NoAnswerError
        while True:
            if self._fence.is_closed:
                return PatchResult(
                    number=request.number, outcome="expired", message="not sent: the lease's deadline has passed"
                )
            try:
                failure = answer = await self._http.request(
                    "PATCH", path, body, STRATEGIC_MERGE_PATCH, fence=self._fence
                )
                if answer.is_ok:
                    return PatchResult(number=request.number, outcome="patched")
                if answer.code == 404 or is_other_pod(answer):
                    return PatchResult(number=request.number, outcome="deleted", message=answer.message)
            except NoAnswerError as error:
                failure = error
            if not await tries.again(failure):
                return PatchResult(number=request.number, outcome="failed", message=text_of(failure))
