"""Runs the plugins of the points after `decide`, and times them: Reserve, Permit, PreBind, Bind, PostBind.

Source: kube-scheduler v1.37 framework/runtime/framework.go (behaviour).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeVar

from scheduler.errors import PluginError, VaneError
from scheduler.framework.instructions import Bind, Instruction, PatchPod, Preparation
from scheduler.framework.plugin import (
    ApiView,
    BindPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PreBindPlugin,
    ReservePlugin,
)
from scheduler.framework.status import Code, Reserved, Status, Wait
from scheduler.loop.attempt import Placement
from scheduler.loop.ports import Clock
from scheduler.metrics import Metrics
from scheduler.model.catalog import ObjectKey
from scheduler.model.pods import PodInfo

log = logging.getLogger(__name__)

MAX_WAIT_S = 15 * 60.0
"""kube-scheduler's longest wait at Permit."""

T = TypeVar("T")


class RefusedError(VaneError):
    """A plugin refused the node that was chosen; the Pod goes back to the queue."""

    def __init__(self, plugin: str, status: Status) -> None:
        self.plugin = plugin
        self.status = status
        super().__init__(", ".join(status.reasons))


class PluginRunner:
    """Each call raises PluginError where a plugin raises or breaks its contract, RefusedError where it refuses."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock

    def reserve(self, placement: Placement) -> Iterator[tuple[ReservePlugin, Reserved]]:
        """Yield what plugins set aside, one after the other."""
        began_s = self._clock()
        for plugin in placement.profile.reserve:
            answer = self._call(plugin, "Reserve", placement, plugin.reserve)
            if isinstance(answer, Reserved):
                yield plugin, answer
            else:
                self._check_refusal(plugin, "Reserve", answer, placement, began_s)
        self._lap("Reserve", "Success", placement, began_s)

    def unreserve(self, placement: Placement) -> None:
        """Undo `reserve` in reverse order; one plugin's fault keeps no other from its undo."""
        for plugin in reversed(placement.profile.reserve):
            try:
                plugin.unreserve(placement.state_of(plugin), placement.pod, placement.node_name)
            except Exception:  # only this plugin's own state may be wrong now
                log.exception("Unreserve of plugin %s raised for Pod %s", plugin.name, placement.pod)

    def permit(self, placement: Placement) -> dict[str, Wait]:
        """Return the waits that plugins ask for, by plugin; none: the Pod may be bound."""
        began_s = self._clock()
        waits: dict[str, Wait] = {}
        for plugin in placement.profile.permit:
            answer = self._call(plugin, "Permit", placement, plugin.permit)
            if isinstance(answer, Wait):
                waits[plugin.name] = self._checked_wait(plugin, answer)
            else:
                self._check_refusal(plugin, "Permit", answer, placement, began_s)
        self._lap("Permit", "Wait" if waits else "Success", placement, began_s)
        return waits

    def reconsider(self, plugin: PermitPlugin, placement: Placement, pod: PodInfo) -> bool:
        """Ask a plugin that keeps the Pod waiting once more; return whether the Pod may go on."""
        answer = self._call(plugin, "Permit", placement, plugin.reconsider, pod)
        if isinstance(answer, Wait):
            return False
        self._check_refusal(plugin, "Permit", answer, placement, self._clock())
        return True

    def prebind(self, plugin: PreBindPlugin, placement: Placement) -> object:
        """Return what the plugin answers, unchecked: it may be called on another thread."""
        return self._call(plugin, "PreBind", placement, plugin.prebind)

    def prebind_steps(
        self, plugin: PreBindPlugin, placement: Placement, answer: object, began_s: float
    ) -> Sequence[Preparation]:
        """Return what a PreBind plugin's answer asks for."""
        if isinstance(answer, list | tuple):
            for step in answer:
                if not isinstance(step, Preparation):
                    raise _wrong(plugin, "PreBind", step, "PatchPod, PatchObject or WaitFor")
            return answer
        self._check_refusal(plugin, "PreBind", answer, placement, began_s)
        return ()

    def still_awaits(self, plugin: PreBindPlugin, placement: Placement, api: ApiView) -> Collection[ObjectKey]:
        def ask(state: object, pod: PodInfo, node_name: str) -> Collection[ObjectKey]:
            return plugin.still_awaits(state, pod, node_name, api)

        return self._call(plugin, "PreBind", placement, ask)

    def bind(self, placement: Placement) -> tuple[BindPlugin, Bind | PatchPod]:
        """Return the first Bind plugin that takes the Pod, and how it is to be bound."""
        for plugin in placement.profile.bind:
            answer = self._call(plugin, "Bind", placement, plugin.bind)
            if isinstance(answer, Bind | PatchPod):
                return plugin, answer
            if answer is not None:
                raise _wrong(plugin, "Bind", answer, "Bind, PatchPod or None")
        last = placement.profile.bind[-1].name
        raise PluginError(last, "Bind", f"no Bind plugin took Pod {placement.pod.key}")

    def postbind(self, plugin: PostBindPlugin, placement: Placement) -> object:
        """Return what the plugin answers, unchecked: it may be called on another thread."""
        return self._call(plugin, "PostBind", placement, plugin.postbind)

    def postbind_instructions(self, plugin: PostBindPlugin, answer: object) -> Sequence[Instruction]:
        if not isinstance(answer, list | tuple):
            raise _wrong(plugin, "PostBind", answer, "a sequence of instructions")
        for instruction in answer:
            if not isinstance(instruction, Instruction):
                raise _wrong(plugin, "PostBind", instruction, "an instruction")
        return answer

    def lap(self, point: str, status: str, placement: Placement, began_s: float) -> None:
        """Count the time of a whole point that began at `began_s`."""
        self._lap(point, status, placement, began_s)

    def _call(
        self,
        plugin: Plugin,
        point: str,
        placement: Placement,
        method: Callable[[object, PodInfo, str], T],
        pod: PodInfo | None = None,
    ) -> T:
        try:
            return method(placement.state_of(plugin), pod or placement.pod, placement.node_name)
        except Exception as error:  # a plugin's fault fails this attempt only
            raise PluginError(plugin.name, point, f'running {point} plugin "{plugin.name}": {error}') from error

    def _check_refusal(self, plugin: Plugin, point: str, answer: object, placement: Placement, began_s: float) -> None:
        if answer is None:
            return
        if not isinstance(answer, Status):
            raise _wrong(plugin, point, answer, "a Status or None")
        if answer.code not in (Code.SUCCESS, Code.SKIP):
            self._lap(point, answer.code.label, placement, began_s)
            raise RefusedError(plugin.name, answer)

    def _checked_wait(self, plugin: Plugin, wait: Wait) -> Wait:
        if not wait.timeout_s >= 0:  # written so that NaN fails
            raise _wrong(plugin, "Permit", wait.timeout_s, "a timeout of 0 seconds or more")
        return Wait(min(wait.timeout_s, MAX_WAIT_S), wait.patches)

    def _lap(self, point: str, status: str, placement: Placement, began_s: float) -> None:
        profile = placement.attempt.scheduler_name
        self._metrics.extension_point_duration(point, profile, status).observe(self._clock() - began_s)


def _wrong(plugin: Plugin, point: str, answer: object, expected: str) -> PluginError:
    message = f'running {point} plugin "{plugin.name}": it returns {answer!r}, it should be {expected}'
    return PluginError(plugin.name, point, message)
