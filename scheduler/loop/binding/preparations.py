"""Reserve and PreBind as far as they change more than the Pod: what is assumed, written and waited for before a bind.

Source: kube-scheduler v1.37 schedule_one.go bindingCycle and volumebinding/binder.go BindPodVolumes (behaviour).
"""

from __future__ import annotations

from scheduler.cluster.assumed import ApiObjects
from scheduler.cluster.cache import Cache
from scheduler.cluster.catalog import given_back
from scheduler.cluster.queue import SchedulingQueue
from scheduler.errors import InvalidObjectError, PluginError
from scheduler.framework.instructions import PatchObject, PatchPod, WaitFor
from scheduler.framework.plugin import PreBindPlugin
from scheduler.kube.binder.messages import PatchResult
from scheduler.loop.attempt import Flight, LostError, Walk
from scheduler.loop.binding.awaited_objects import AwaitedObjects
from scheduler.loop.binding.plugin_runner import PluginRunner
from scheduler.loop.instructions import Instructions
from scheduler.loop.ports import Clock


class Preparations:
    """Steps of a Pod's walk; `awaited` are the Pods that wait in PreBind for objects."""

    def __init__(
        self,
        cache: Cache,
        queue: SchedulingQueue,
        instructions: Instructions,
        runner: PluginRunner,
        clock: Clock,
    ) -> None:
        self._assumed = cache.assumed
        self._api = ApiObjects(cache.state, cache.assumed)
        self._queue = queue
        self._instructions = instructions
        self._runner = runner
        self._clock = clock
        self.awaited = AwaitedObjects()

    def reserve(self, flight: Flight) -> None:
        """Run Reserve, and assume the objects that it returns."""
        for plugin, reserved in self._runner.reserve(flight.placement):
            flight.placement = flight.placement.with_state(plugin, reserved.state)
            for item in reserved.objects:
                try:
                    key = self._assumed.assume(item)
                except InvalidObjectError as error:
                    message = f'running Reserve plugin "{plugin.name}": {error}'
                    raise PluginError(plugin.name, "Reserve", message) from error
                flight.assumed[key] = item

    def give_back(self, flight: Flight) -> None:
        """Forget what is assumed but not written, so that other Pods can use it."""
        self.awaited.remove(flight.placement.pod.uid)
        for item in flight.assumed.values():
            shown = self._assumed.forget(item)
            event = None if shown is None else given_back(item, shown)
            if event is not None:
                self._queue.on_event(event, self._clock())
        flight.assumed.clear()

    def prebind(self, flight: Flight) -> Walk:
        """Run PreBind; where the Pod has to wait, its node is written to its status first, for autoscalers to see."""
        placement, runner, began_s = flight.placement, self._runner, self._clock()
        for plugin in placement.profile.prebind:
            flight.preparing = plugin.name
            if plugin.blocking:
                self._run_in_pool(flight, plugin)
                answer = yield
            else:
                answer = runner.prebind(plugin, placement)
            steps = runner.prebind_steps(plugin, placement, answer, began_s)
            if any(isinstance(step, WaitFor) for step in steps):
                yield from self._nominate(flight)
            for step in steps:
                if isinstance(step, PatchPod):
                    yield from self.patch_pod(flight, step, plugin.name, "PreBind")
                elif isinstance(step, PatchObject):
                    yield from self._write(flight, step, plugin.name)
                else:
                    yield from self._wait(flight, step, plugin)
        flight.preparing = ""
        runner.lap("PreBind", "Success", placement, began_s)

    def patch_pod(self, flight: Flight, patch: PatchPod, plugin: str, point: str) -> Walk:
        """Have the Pod patched."""
        self._instructions.patch(patch, flight.settle)
        result: PatchResult = yield
        if result.outcome == "deleted":
            raise LostError(result.outcome)
        if result.outcome != "patched":
            raise PluginError(plugin, point, f'running {point} plugin "{plugin}": {result.message}')

    def _run_in_pool(self, flight: Flight, plugin: PreBindPlugin) -> None:
        runner, placement = self._runner, flight.placement
        self._instructions.run_in_pool(lambda: runner.prebind(plugin, placement), flight.settle)

    def _nominate(self, flight: Flight) -> Walk:
        """Write the node to the Pod's status, and wait, so that the bind comes after it. A failure is ignored."""
        pod, node_name = flight.placement.pod, flight.placement.node_name
        is_told = flight.is_nominated or pod.pod.status.nominated_node_name == node_name
        flight.is_nominated = True
        if not is_told:
            self._instructions.patch(PatchPod.of(pod, {}, node_name), flight.settle)
            yield

    def _write(self, flight: Flight, patch: PatchObject, plugin: str) -> Walk:
        self._instructions.write(patch, flight.settle)
        result: PatchResult = yield
        if result.outcome != "patched":
            raise PluginError(plugin, "PreBind", f'running PreBind plugin "{plugin}": {result.message}')
        key = patch.kind, patch.namespace, patch.name
        flight.written[key] = result.resource_version
        flight.assumed.pop(key, None)

    def _wait(self, flight: Flight, wait: WaitFor, plugin: PreBindPlugin) -> Walk:
        uid, now_s = flight.placement.pod.uid, self._clock()
        self.awaited.add(uid, now_s + wait.timeout_s)
        while True:
            keys = self._unseen(flight) or self._runner.still_awaits(plugin, flight.placement, self._api)
            if not keys:
                break
            now_s = self._clock()
            if self.awaited.is_late(uid, now_s):
                message = f'running PreBind plugin "{plugin.name}": {wait.too_late}'
                raise PluginError(plugin.name, "PreBind", message)
            self.awaited.watch(uid, {*keys, ("Node", "", flight.placement.node_name)}, now_s)
            yield
        self.awaited.remove(uid)

    def _unseen(self, flight: Flight) -> set[tuple[str, str, str]]:
        """Return what was written and has not come back through the watch yet."""
        unseen = set()
        for key, version in flight.written.items():
            shown = self._assumed.shown(key)
            if shown is not None and _is_older(shown.metadata.resource_version, version):
                unseen.add(key)
        return unseen


def _is_older(version: str, other: str) -> bool:
    """Return whether one resourceVersion comes before another: decimal numbers since Kubernetes 1.35."""
    return version.isdecimal() and other.isdecimal() and int(version) < int(other)
