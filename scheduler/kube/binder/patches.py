"""Patches that plugins ask for: annotations and nominations of Pods, fields of other objects."""

from __future__ import annotations

import asyncio

import msgspec

from scheduler.kube.api_objects import BriefMeta
from scheduler.kube.binder import events
from scheduler.kube.binder.failure_reports import FailureReports
from scheduler.kube.binder.fence import Fence
from scheduler.kube.binder.http import MERGE_PATCH, STRATEGIC_MERGE_PATCH, ApiAnswer, ApiHttp, NoAnswerError, text_of
from scheduler.kube.binder.messages import PatchRequest, PatchResult, WriteRequest
from scheduler.kube.binder.retry import Chance, Tries
from scheduler.model.structs import MALFORMED_JSON

MAX_PATCHES = 8

_NOT_SENT = "not sent: the lease's deadline has passed"


class _Written(msgspec.Struct):
    metadata: BriefMeta


_written = msgspec.json.Decoder(_Written)


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
        path, body = f"{request.pod.path}/status", msgspec.json.encode(events.pod_patch(request))
        tries = Tries(self._chance, retry_conflict=True)
        failure: ApiAnswer | NoAnswerError
        while True:
            if self._fence.is_closed:
                return PatchResult(number=request.number, outcome="expired", message=_NOT_SENT)
            try:
                failure = answer = await self._http.request(
                    "PATCH", path, body, STRATEGIC_MERGE_PATCH, fence=self._fence
                )
                if answer.is_ok:
                    return PatchResult(number=request.number, outcome="patched")
                if answer.code == 404 or answer.refuses_uid:
                    return PatchResult(number=request.number, outcome="deleted", message=answer.message)
            except NoAnswerError as error:
                failure = error
            if not await tries.again(failure):
                return PatchResult(number=request.number, outcome="failed", message=text_of(failure))


class ObjectPatches:
    """Patches other objects than Pods, at most `MAX_PATCHES` at a time.

    A conflict is not tried again: the newer version of the object may contradict the decision. A lost answer can end in
    a conflict too, with the object as it was wanted; the next attempt finds it so.
    """

    def __init__(self, http: ApiHttp, fence: Fence, chance: Chance) -> None:
        self._http = http
        self._fence = fence
        self._chance = chance
        self._slots = asyncio.Semaphore(MAX_PATCHES)

    async def patch(self, request: WriteRequest) -> PatchResult:
        """Patch the object; raises nothing: whatever happens is an outcome, told in the API server's words."""
        async with self._slots:
            tries = Tries(self._chance)
            failure: ApiAnswer | NoAnswerError
            while True:
                if self._fence.is_closed:
                    return PatchResult(number=request.number, outcome="expired", message=_NOT_SENT)
                try:
                    failure = answer = await self._http.request(
                        "PATCH", request.path, request.body, MERGE_PATCH, fence=self._fence
                    )
                    if answer.is_ok:
                        version = _written.decode(answer.body).metadata.resource_version
                        return PatchResult(number=request.number, outcome="patched", resource_version=version)
                except NoAnswerError as error:
                    failure = error
                except MALFORMED_JSON as error:
                    return PatchResult(number=request.number, outcome="failed", message=f"not an object: {error}")
                if not await tries.again(failure):
                    message = failure.message if isinstance(failure, ApiAnswer) else str(failure)
                    return PatchResult(number=request.number, outcome="failed", message=message)
