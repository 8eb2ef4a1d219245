"""Carries out what plugins ask for, besides binds: patches, notifications, calls in the pool."""

from __future__ import annotations

import itertools
import logging
import queue
import threading
from collections.abc import Callable

import msgspec

from scheduler.errors import PluginError
from scheduler.framework.instructions import Bind, Instruction, Notify, PatchObject, PatchPod
from scheduler.framework.plugin import PostBindPlugin
from scheduler.kube.binder.messages import EvictRequest, EvictResult, PatchRequest, PatchResult, PodRef, WriteRequest
from scheduler.kube.resources import path_of
from scheduler.loop.attempt import Placement
from scheduler.loop.binding.plugin_runner import PluginRunner
from scheduler.loop.messages import PoolDone, Settle
from scheduler.loop.ports import Binder, Send

log = logging.getLogger(__name__)

_POOL_THREADS = 8


class Instructions:
    """Sends instructions out and hands each outcome to what waits for it."""

    def __init__(self, binder: Binder, send: Send, pool_done: Callable[[PoolDone], None]) -> None:
        self._binder = binder
        self._send = send
        self._pool = PluginPool(pool_done)
        self._numbers = itertools.count(1)
        self._awaited: dict[int, Settle] = {}

    def patch(self, patch: PatchPod, settle: Settle) -> None:
        """Have a Pod patched; `settle` gets the PatchResult."""
        number = next(self._numbers)
        self._awaited[number] = settle
        self._binder.patch(_request(patch, number))

    def write(self, patch: PatchObject, settle: Settle) -> None:
        """Have an object of the catalog patched; `settle` gets the PatchResult."""
        number = next(self._numbers)
        self._awaited[number] = settle
        self._binder.write(_write_request(patch, number))

    def patched(self, result: PatchResult) -> None:
        """Hand a patch's outcome to what waits for it; where nothing does, only failures are logged."""
        settle = self._awaited.pop(result.number, None)
        if settle is not None:
            settle(result, None)
        elif result.outcome == "failed":
            log.warning("a patch that a plugin asked for failed", extra={"error": result.message})

    def evict(self, request: EvictRequest, settle: Settle) -> None:
        """Have a Pod removed; `settle` gets the EvictResult. The request gets its number here."""
        number = next(self._numbers)
        self._awaited[number] = settle
        self._binder.evict(msgspec.structs.replace(request, number=number))

    def evicted(self, result: EvictResult) -> None:
        """Hand an eviction's outcome to what waits for it."""
        settle = self._awaited.pop(result.number, None)
        if settle is not None:
            settle(result, None)

    def run_in_pool(self, call: Callable[[], object], settle: Settle) -> None:
        """Run a plugin's call on another thread; `settle` gets its answer on this one."""
        self._pool.submit(call, settle)

    def carry_out(self, instruction: Instruction) -> None:
        """Carry out an instruction whose outcome nothing waits for."""
        match instruction:
            case PatchPod():
                self._binder.patch(_request(instruction, next(self._numbers)))
            case Notify():
                self._send(instruction)
            case Bind():
                log.error(
                    "ignored a Bind that a plugin returned from a point other than Bind",
                    extra={"pod": f"{instruction.namespace}/{instruction.name}"},
                )

    def after_bind(self, runner: PluginRunner, plugin: PostBindPlugin, placement: Placement) -> None:
        """Run one PostBind plugin and carry out what it returns; its errors are logged and change nothing."""

        def settle(answer: object, error: Exception | None) -> None:
            try:
                if error is not None:
                    raise error
                for instruction in runner.postbind_instructions(plugin, answer):
                    self.carry_out(instruction)
            except PluginError as fault:
                log.warning("PostBind failed", extra={"pod": placement.pod.key, "error": str(fault)})

        if plugin.blocking:
            self._pool.submit(lambda: runner.postbind(plugin, placement), settle)
            return
        try:
            answer = runner.postbind(plugin, placement)
        except PluginError as fault:
            settle(None, fault)
        else:
            settle(answer, None)


class PluginPool:
    """Calls run on a few daemon threads, which never keep the process from ending; `done` gets what came of each.

    The number of waiting calls is bounded by that of the Pods that are being bound.
    """

    def __init__(self, done: Callable[[PoolDone], None]) -> None:
        self._done = done
        self._calls: queue.SimpleQueue[tuple[Callable[[], object], Settle]] = queue.SimpleQueue()
        self._n_threads = 0
        self._n_open = 0
        self._lock = threading.Lock()

    def submit(self, call: Callable[[], object], settle: Settle) -> None:
        """Run `call` on one of the threads; `settle` travels with its outcome."""
        with self._lock:
            self._n_open += 1
            is_short = self._n_threads < min(_POOL_THREADS, self._n_open)
            self._n_threads += is_short
        if is_short:
            threading.Thread(target=self._work, name="plugin-pool", daemon=True).start()
        self._calls.put((call, settle))

    def _work(self) -> None:
        while True:
            call, settle = self._calls.get()
            try:
                outcome = PoolDone(settle, call())
            except Exception as error:  # noqa: BLE001 - whatever a plugin raises fails its Pod's attempt
                outcome = PoolDone(settle, None, error)
            with self._lock:
                self._n_open -= 1
            self._done(outcome)


def _request(patch: PatchPod, number: int) -> PatchRequest:
    return PatchRequest(
        number=number,
        pod=PodRef(namespace=patch.namespace, name=patch.name, uid=patch.uid),
        annotations=dict(patch.annotations),
        nominated_node_name=patch.nominated_node_name,
    )


def _write_request(patch: PatchObject, number: int) -> WriteRequest:
    metadata = {"resourceVersion": patch.resource_version, "annotations": dict(patch.annotations)}
    return WriteRequest(
        number=number,
        path=path_of(patch.kind, patch.namespace, patch.name),
        body=msgspec.json.encode({"metadata": metadata, **({"spec": dict(patch.spec)} if patch.spec else {})}),
    )
