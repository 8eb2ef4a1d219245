"""FilterRun: the Filter plugins of one attempt, asked about any rows, with the Pods as they are or on trial."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from scheduler.errors import PluginError
from scheduler.framework.diagnosis import Refusal
from scheduler.framework.observer import SUCCESS, Observer
from scheduler.framework.plugin import FilterPlugin, Tally
from scheduler.framework.plugin_faults import NODE_CODES, plugin_call, wrong
from scheduler.framework.status import Code, Rejection
from scheduler.model.arrays import BoolArray, Rows
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot

ALL_ROWS = slice(None)


class FilterRun:
    """The plugins that PreFilter did not switch off, with PreFilter's states by plugin."""

    def __init__(
        self,
        pod: PodInfo,
        snapshot: Snapshot,
        plugins: Sequence[FilterPlugin],
        states: Mapping[str, object],
        observer: Observer,
    ) -> None:
        self.pod = pod
        self.snapshot = snapshot
        self.plugins = plugins
        self.states = states
        self.counting = [plugin for plugin in plugins if _counts(plugin)]
        self._observer = observer

    def filter(self, rows: Rows, standing: BoolArray, refusals: list[Refusal]) -> BoolArray:
        """Return which of `standing`, bool (len(rows),), pass; `refusals` gets why the others do not."""
        for plugin in self.plugins:
            found = rejections(plugin, self.states.get(plugin.name), self.pod, self.snapshot, rows, standing.shape)
            self._observer.ran("Filter", plugin.name, SUCCESS)
            standing = sifted(plugin.name, found, standing, refusals)
        return standing

    def ask(
        self, plugin: FilterPlugin, state: object, snapshot: Snapshot, rows: Rows, shape: tuple[int, ...]
    ) -> list[Rejection]:
        """Return one plugin's rejections among `rows`; the masks have `shape`."""
        return rejections(plugin, state, self.pod, snapshot, rows, shape)

    def tally(self, plugin: FilterPlugin, pods: Sequence[PodInfo]) -> Tally | None:
        """Return one plugin's tally of some Pods."""
        return tally(plugin, self.states.get(plugin.name), self.pod, self.snapshot, pods)

    def counted(
        self, plugins: Sequence[FilterPlugin], states: Mapping[str, object], pod: PodInfo, row: int, sign: int
    ) -> Mapping[str, object]:
        """Return PreFilter's states once `pod` has been placed on `row` (sign 1) or removed from it (-1).

        Those of some plugins of `counting`; the others' stay as they are.
        """
        if not plugins:
            return states
        changed: dict[str, object] = dict(states)
        for plugin in plugins:
            changed[plugin.name] = counted(plugin, states.get(plugin.name), pod, row, self.snapshot, sign)
        return changed

    def rivals(self, node_name: str) -> list[PodInfo]:
        """Return the Pods nominated to a node that this Pod may not push aside."""
        nominated = self.snapshot.nominated.get(node_name, {})
        return [pod for pod in nominated.values() if pod.uid != self.pod.uid and pod.priority >= self.pod.priority]


def _counts(plugin: FilterPlugin) -> bool:
    kind, base = type(plugin), FilterPlugin
    return kind.add_pod is not base.add_pod or kind.remove_pod is not base.remove_pod


def sifted(plugin: str, found: list[Rejection], standing: BoolArray, refusals: list[Refusal]) -> BoolArray:
    """Return which rows still stand after one plugin's rejections, and append what it refused to `refusals`.

    Raises
    ------
    PluginError
        It told a fault about one of `standing`.
    """
    if not found:
        return standing
    survivors = standing.copy()
    seen, mask, refuses = None, standing, False
    for rejection in found:
        # One mask may stand for thousands of reasons.
        if rejection.mask is not seen:
            seen, mask = rejection.mask, rejection.mask & standing
            refuses = bool(mask.any())
            survivors &= ~mask
        if refuses:
            if rejection.code is Code.ERROR:
                raise filter_fault(plugin, rejection.reason)
            refusals.append(Refusal(plugin, rejection.code, rejection.reason, mask, rejection.rule))
    return survivors


def filter_fault(plugin: str, text: str) -> PluginError:
    """Return the fault that a Filter plugin has told of a node, in kube-scheduler's words."""
    return PluginError(plugin, "Filter", f'running "{plugin}" filter plugin: {text}')


@plugin_call("Filter")
def rejections(
    plugin: FilterPlugin, state: object, pod: PodInfo, snapshot: Snapshot, rows: Rows, shape: tuple[int, ...]
) -> list[Rejection]:
    """Return a Filter plugin's answer; masks are bool of `shape`."""
    found: Any = plugin.filter(state, pod, snapshot, rows)
    if not isinstance(found, Iterable):
        raise wrong(plugin, "Filter", "", found, "a sequence of Rejection")
    answers = list(found)
    for one in answers:
        if not isinstance(one, Rejection):
            raise wrong(plugin, "Filter", "", one, "Rejection")
        mask: Any = one.mask
        if not isinstance(mask, np.ndarray):
            raise wrong(plugin, "Filter", "a mask", mask, f"a bool array of {shape}")
        if mask.shape != shape or mask.dtype != np.bool_:
            message = f'plugin "{plugin.name}" returns a mask of {mask.dtype} {mask.shape}, it should be bool {shape}'
            raise PluginError(plugin.name, "Filter", message)
        if one.code not in NODE_CODES:
            expected = "UNSCHEDULABLE, UNSCHEDULABLE_AND_UNRESOLVABLE or ERROR"
            raise wrong(plugin, "Filter", "the code", one.code, expected)
        if not isinstance(one.reason, str):
            raise wrong(plugin, "Filter", "the reason", one.reason, "a text")
    return answers


@plugin_call("Filter")
def tally(
    plugin: FilterPlugin, state: object, pod: PodInfo, snapshot: Snapshot, pods: Sequence[PodInfo]
) -> Tally | None:
    """Return a Filter plugin's tally of some Pods."""
    return plugin.tally(state, pod, snapshot, pods)


@plugin_call("Filter")
def counted(plugin: FilterPlugin, state: object, pod: PodInfo, row: int, snapshot: Snapshot, sign: int) -> object:
    """Return PreFilter's state once `pod` has been placed on `row` (sign 1) or removed from it (-1)."""
    found: object = (plugin.add_pod if sign > 0 else plugin.remove_pod)(state, pod, row, snapshot)
    return found
