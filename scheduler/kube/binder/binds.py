"""PodBinder: binds Pods, here and in other clusters, whatever becomes of the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import msgspec

from scheduler.kube.api_objects import BriefMeta
from scheduler.kube.binder import events
from scheduler.kube.binder.failure_reports import FailureReports
from scheduler.kube.binder.fence import Fence
from scheduler.kube.binder.http import ApiAnswer, ApiHttp, NoAnswerError, text_of
from scheduler.kube.binder.messages import BindRequest, BindResult, EventRequest, Outcome, PodRef
from scheduler.kube.binder.retry import Chance, Tries
from scheduler.model.structs import MALFORMED_JSON

MAX_BINDS = 40

_encode = msgspec.json.Encoder().encode


class _BoundPodSpec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    scheduling_gates: list[msgspec.Raw] | None = None


class _BoundPod(msgspec.Struct):
    metadata: BriefMeta = BriefMeta()
    spec: _BoundPodSpec = msgspec.field(default_factory=_BoundPodSpec)


_pods = msgspec.json.Decoder(_BoundPod)


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
        # Before it takes a slot: a report that waits for its answer must hold up no other Pod's bind.
        await self._reports.settle(request.pod.uid)
        async with self._slots:
            if request.cluster:
                result = await self._bind_there(request)
            else:
                result = await self._bind(request, self._servers[""], request.pod)
        return msgspec.structs.replace(result, duration_s=self._clock() - received_s)

    async def _bind_there(self, request: BindRequest) -> BindResult:
        """Bind the Pod of that name in another cluster.

        What ends it there (no such Pod, another node) does not end the Pod here: it is reported, and tried again later.
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
        """Return the Pod of the same namespace and name, or why there is none to bind."""
        pod, tries = request.pod, Tries(self._chance)
        failure: ApiAnswer | NoAnswerError
        while True:
            try:
                failure = answer = await http.request("GET", pod.path)
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
                return _result(request, "failed", failure if isinstance(failure, ApiAnswer) else None, message=message)

    async def _bind(self, request: BindRequest, http: ApiHttp, pod: PodRef) -> BindResult:
        path = f"{pod.path}/binding"
        body = _encode(events.binding(request, pod))
        tries = Tries(self._chance)
        is_lost = False  # whether an earlier request may have been carried out without us hearing of it
        failure: ApiAnswer | NoAnswerError
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
                if answer.code in (404, 409):
                    # A 404 may be that of something between us and the API server, which knows no such path.
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
        self, request: BindRequest, http: ApiHttp, ref: PodRef, conflict: ApiAnswer, is_lost: bool
    ) -> BindResult | None:
        """Ask what became of the Pod, which the UID tells from one of the same name; None: try to bind it again."""
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


async def _ask(http: ApiHttp, pod: PodRef) -> ApiAnswer | None:
    """Return the Pod, or 404; None without an answer. A lost question, unlike a lost bind, has changed nothing."""
    try:
        answer = await http.request("GET", pod.path)
    except NoAnswerError:
        return None
    return answer if answer.is_ok or answer.code == 404 else None


def _failed(request: BindRequest, failure: ApiAnswer | NoAnswerError) -> BindResult:
    if isinstance(failure, ApiAnswer):
        return _result(request, "failed", failure)
    return _result(request, "failed", message=str(failure))


def _result(
    request: BindRequest, outcome: Outcome, answer: ApiAnswer | None = None, node_name: str = "", message: str = ""
) -> BindResult:
    return BindResult(
        uid=request.pod.uid,
        outcome=outcome,
        node_name=node_name or request.node_name,
        code=answer.code if answer is not None else 0,
        message=message or (answer.message if answer is not None and not answer.is_ok else ""),
        duration_s=0.0,
    )
