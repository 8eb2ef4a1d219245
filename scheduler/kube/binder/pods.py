"""What the binder process does to Pods: bind them, and report that they could not be placed."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping

import msgspec

from scheduler.kube.binder import events
from scheduler.kube.binder.about_pods import is_other_pod, pod_path, text_of
from scheduler.kube.binder.fence import Fence
from scheduler.kube.binder.http import STRATEGIC_MERGE_PATCH, Answer, ApiHttp, NoAnswerError
from scheduler.kube.binder.messages import BindRequest, BindResult, EventRequest, FailureReport, Outcome, PodRef
from scheduler.kube.binder.paced import PacedReports, changes_only_text
from scheduler.kube.binder.retry import Chance, Tries
from scheduler.model.structs import MALFORMED_JSON

log = logging.getLogger(__name__)

MAX_BINDS = 40
MAX_REPORTS = 8
MAX_PACED = 4
"""How many reports may be under way where another one that only changes a text is begun."""
MAX_REMEMBERED_REPORTS = 10_000

_encode = msgspec.json.Encoder().encode


class _Metadata(msgspec.Struct, rename="camel"):
    uid: str = ""
    deletion_timestamp: str | None = None


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    scheduling_gates: list[msgspec.Raw] | None = None


class _Pod(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)


_pods = msgspec.json.Decoder(_Pod)


class PodBinder:
    """Carries out binds, at most `MAX_BINDS` at a time; `servers` are the API servers by cluster, "" our own."""

    def __init__(
        self,
        servers: Mapping[str, ApiHttp],
        reports: FailureReports,
        on_event: Callable[[EventRequest], None],
        fence: Fence,
        clock: Callable[[], float],
        chance: Chance,
    ) -> None:
        self._servers = servers
        self._reports = reports
        self._on_event = on_event
        self._fence = fence
        self._clock = clock
        self._chance = chance
        self._slots = asyncio.Semaphore(MAX_BINDS)

    async def bind(self, request: BindRequest, received_s: float) -> BindResult:
        """Bind the Pod; a lost answer is asked for again, and then 409 to the same node is success.

        Raises nothing: whatever happens is an outcome.
        """
        async with self._slots:
            await self._reports.settle(request.pod.uid)
            if request.cluster:
                result = await self._bind_there(request)
            else:
                result = await self._bind(request, self._servers[""], request.pod)
        return msgspec.structs.replace(result, duration_s=self._clock() - received_s)

    async def _bind_there(self, request: BindRequest) -> BindResult:
        """Bind the Pod of that name in another cluster.

        What ends it there (no such Pod, another node) is no end of the Pod here: it is told, and tried again later.
        """
        http = self._servers.get(request.cluster)
        if http is None:
            return _result(request, "failed", message=f"cluster {request.cluster!r} is not among the clusters set")
        found = await self._find(request, http)
        if isinstance(found, BindResult):
            return found
        result = await self._bind(request, http, found)
        if result.outcome in ("bound", "conflict_same_node", "expired"):
            return result
        where = f"Pod {found.namespace}/{found.name} in cluster {request.cluster}"
        what = {
            "conflict_other_node": f"is on node {result.node_name} already",
            "deleted": "has been deleted",
            "gated": "has scheduling gates",
        }.get(result.outcome, f"was not bound: {result.message}")
        return msgspec.structs.replace(result, outcome="failed", node_name=request.node_name, message=f"{where} {what}")

    async def _find(self, request: BindRequest, http: ApiHttp) -> PodRef | BindResult:
        """Return the Pod of the same namespace and name, or why it cannot be had."""
        pod, tries = request.pod, Tries(self._chance)
        failure: Answer | NoAnswerError
        while True:
            try:
                failure = answer = await http.request("GET", pod_path(pod))
                if answer.is_ok:
                    uid = _pods.decode(answer.body).metadata.uid
                    return PodRef(namespace=pod.namespace, name=pod.name, uid=uid)
                if answer.code == 404:
                    message = f"there is no Pod {pod.namespace}/{pod.name} in cluster {request.cluster} (yet)"
                    return _result(request, "failed", answer, message=message)
            except NoAnswerError as error:
                failure = error
            except MALFORMED_JSON as error:
                failure = NoAnswerError(f"not a Pod: {error}", sent=False)
            if not await tries.again(failure):
                message = f"cluster {request.cluster}: {text_of(failure)}"
                return _result(request, "failed", failure if isinstance(failure, Answer) else None, message=message)

    async def _bind(self, request: BindRequest, http: ApiHttp, pod: PodRef) -> BindResult:
        path = f"{pod_path(pod)}/binding"
        body = _encode(events.binding(request, pod))
        tries = Tries(self._chance)
        is_lost = False  # whether an earlier request may have been carried out without us hearing of it
        failure: Answer | NoAnswerError
        while True:
            # Where renewals have failed, the lease may soon be another replica's.
            if self._fence.is_closed:
                state = "unanswered" if is_lost else "not sent"
                return _result(request, "expired", message=f"{state}: the lease's deadline has passed")
            conflict = False
            try:
                failure = answer = await http.request("POST", path, body, fence=self._fence)
                if answer.is_ok:
                    self._on_event(events.scheduled_event(request))
                    return _result(request, "bound", answer)
                if answer.code == 404:
                    return _result(request, "deleted", answer)
                if answer.code == 409:
                    conflict = True
                    result = await self._resolve(request, http, pod, answer, is_lost)
                    if result is not None:
                        return result
            except NoAnswerError as error:
                failure = error
                is_lost = is_lost or error.sent
            if not await tries.again(failure, conflict):
                return _failed(request, failure)

    async def _resolve(
        self, request: BindRequest, http: ApiHttp, ref: PodRef, conflict: Answer, is_lost: bool
    ) -> BindResult | None:
        """Ask what became of the Pod; None: nothing speaks against binding it, so try again."""
        answer = await _ask(http, ref)
        if answer is None:
            return None
        if answer.code == 404:
            return _result(request, "deleted", conflict)
        try:
            pod = _pods.decode(answer.body)
        except MALFORMED_JSON:
            return None
        if pod.metadata.uid != ref.uid:
            return _result(request, "deleted", conflict)
        if pod.spec.node_name == request.node_name:
            if is_lost:  # it was us
                self._on_event(events.scheduled_event(request))
            return _result(request, "conflict_same_node", conflict)
        if pod.spec.node_name:
            return _result(request, "conflict_other_node", conflict, node_name=pod.spec.node_name)
        if pod.metadata.deletion_timestamp is not None:
            return _result(request, "deleted", conflict)
        if pod.spec.scheduling_gates:
            return _result(request, "gated", conflict)
        return None


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
        """Drop what waits for this Pod and let end what is under way, so that no False is written after its bind."""
        self._paced.discard(uid)
        self._waiting.pop(uid, None)
        self._written.pop(uid, None)
        task = self._running.get(uid)
        if task is not None:
            await asyncio.wait([task])

    async def _run(self, uid: str) -> None:
        try:
            async with self._slots:
                while (report := self._waiting.pop(uid, None)) is not None:
                    await self._write(report)
        finally:
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
        if await self._patch(report.pod, _encode(patch)):
            self._written[uid] = wanted
            self._written.move_to_end(uid)
            if len(self._written) > MAX_REMEMBERED_REPORTS:
                self._written.popitem(last=False)

    async def _patch(self, pod: PodRef, body: bytes) -> bool:
        tries = Tries(self._chance, retry_conflict=True)
        failure: Answer | NoAnswerError
        while True:
            try:
                failure = answer = await self._http.request(
                    "PATCH", f"{pod_path(pod)}/status", body, STRATEGIC_MERGE_PATCH
                )
                if answer.is_ok:
                    return True
                if answer.code == 404 or is_other_pod(answer):
                    return False
            except NoAnswerError as error:
                failure = error
            if not await tries.again(failure):
                log.warning("condition of Pod %s/%s was not written: %s", pod.namespace, pod.name, text_of(failure))
                return False


async def _ask(http: ApiHttp, pod: PodRef) -> Answer | None:
    """Return the Pod, or 404; None where nobody says. A question that is lost is no bind that is lost."""
    try:
        answer = await http.request("GET", pod_path(pod))
    except NoAnswerError:
        return None
    return answer if answer.is_ok or answer.code == 404 else None


def _failed(request: BindRequest, failure: Answer | NoAnswerError) -> BindResult:
    if isinstance(failure, Answer):
        return _result(request, "failed", failure)
    return _result(request, "failed", message=str(failure))


def _result(
    request: BindRequest, outcome: Outcome, answer: Answer | None = None, node_name: str = "", message: str = ""
) -> BindResult:
    return BindResult(
        uid=request.pod.uid,
        outcome=outcome,
        node_name=node_name or request.node_name,
        code=answer.code if answer is not None else 0,
        message=message or (answer.message if answer is not None and not answer.is_ok else ""),
        duration_s=0.0,
    )
