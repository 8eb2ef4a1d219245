"""The filter phase: PreFilter, node sets, the nominated node, Filter.

Source: kube-scheduler v1.37 schedule_one.go findNodesThatFitPod and framework/runtime (behaviour). Other
than there, all nodes are looked at, always.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from scheduler.errors import PluginError
from scheduler.framework.answers import filter_fault, prefilter_answer, raised, rejections
from scheduler.framework.diagnosis import Diagnosis, Refusal
from scheduler.framework.observer import SUCCESS, Observer
from scheduler.framework.plugin import FilterPlugin, PreFilterPlugin, Tally
from scheduler.framework.profile import UNREADABLE_PODS, Profile
from scheduler.framework.status import Code, PreFilterResult, Rejection, Status
from scheduler.model.arrays import BoolArray, IntArray, Rows
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot

ALL_ROWS = slice(None)
_UNREADABLE_REASON = "node(s) had a pod that could not be read"


@dataclass(slots=True)
class Filtered:
    """What the filter phase leaves behind: who stands, why the others do not, PreFilter's states.

    `run` asks the filters again; None without nodes.
    """

    standing: BoolArray
    diagnosis: Diagnosis
    states: Mapping[str, object]
    nominated: bool = False
    run: FilterRun | None = None


@dataclass(slots=True)
class _PreFiltered:
    states: dict[str, object] = field(default_factory=dict)
    skipped: set[str] = field(default_factory=set)
    refusal: Status | None = None
    plugins: tuple[str, ...] = ()
    node_names: frozenset[str] | None = None
    restricted_by: list[str] = field(default_factory=list)


def filter_phase(
    pod: PodInfo, snapshot: Snapshot, profile: Profile, candidates: IntArray | None, observer: Observer
) -> Filtered:
    """Return the nodes that can take the Pod; `candidates` (int64 rows) limits who is looked at."""
    nodes = snapshot.nodes
    standing = nodes.alive.copy()
    n_nodes = nodes.n_alive
    if candidates is not None:
        chosen = np.zeros(nodes.n_rows, dtype=np.bool_)
        chosen[candidates] = True
        standing &= chosen
    if n_nodes == 0:
        return Filtered(standing, Diagnosis(0), {})
    found = _run_prefilter(pod, snapshot, profile, observer)
    observer.lap("PreFilter", SUCCESS if found.refusal is None else found.refusal.code.label)
    run = FilterRun(pod, snapshot, profile, found, observer)
    if found.refusal is not None:
        nobody = np.zeros(nodes.n_rows, dtype=np.bool_)
        return Filtered(nobody, Diagnosis(n_nodes, (), found.refusal, found.plugins), found.states, run=run)
    nominee = run.nominated_row()
    if nominee is not None and standing[nominee] and run.passes(nominee):
        only = np.zeros(nodes.n_rows, dtype=np.bool_)
        only[nominee] = True
        observer.lap("Filter", SUCCESS)
        return Filtered(only, Diagnosis(n_nodes), found.states, nominated=True, run=run)
    standing = run.filter_all(standing)
    # As with kube-scheduler, that nobody passes is no failure of the point.
    observer.lap("Filter", SUCCESS)
    return Filtered(standing, Diagnosis(n_nodes, tuple(run.refusals)), found.states, run=run)


def _run_prefilter(pod: PodInfo, snapshot: Snapshot, profile: Profile, observer: Observer) -> _PreFiltered:
    found = _PreFiltered()
    for plugin in profile.prefilter:
        result = _call_prefilter(plugin, pod, snapshot)
        observer.ran("PreFilter", plugin.name, result.code.label if isinstance(result, Status) else SUCCESS)
        if isinstance(result, PreFilterResult):
            found.states[plugin.name] = result.state
            if result.node_names is not None:
                _restrict(found, plugin.name, result.node_names)
                if found.refusal is not None and found.refusal.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                    return found
        elif result.code is Code.SKIP:
            found.skipped.add(plugin.name)
        else:
            found.refusal, found.plugins = result, (plugin.name,)
            if result.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return found
    return found


def _call_prefilter(plugin: PreFilterPlugin, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status:
    try:
        found = plugin.prefilter(pod, snapshot)
    except Exception as error:  # a plugin's fault fails this attempt only
        raise raised(plugin, "PreFilter", error) from error
    return prefilter_answer(plugin, found)


def _restrict(found: _PreFiltered, plugin: str, names: frozenset[str]) -> None:
    found.node_names = names if found.node_names is None else found.node_names & names
    found.restricted_by.append(plugin)
    if not found.node_names:
        by = sorted(found.restricted_by)
        if len(by) == 1:
            reason = f"node(s) didn't satisfy plugin {by[0]}"
        else:
            reason = f"node(s) didn't satisfy plugin(s) [{' '.join(by)}] simultaneously"
        found.refusal, found.plugins = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,)), tuple(by)


class FilterRun:
    """The Filter plugins of one attempt, run over any rows; `plugins` are those that PreFilter did not switch off."""

    def __init__(
        self, pod: PodInfo, snapshot: Snapshot, profile: Profile, found: _PreFiltered, observer: Observer
    ) -> None:
        self.pod = pod
        self.snapshot = snapshot
        self.plugins = [plugin for plugin in profile.filter if plugin.name not in found.skipped]
        self._counting = [plugin for plugin in self.plugins if _counts(plugin)]
        self._found = found
        self._observer = observer
        self.refusals: list[Refusal] = []

    @property
    def states(self) -> Mapping[str, object]:
        """PreFilter's states by plugin."""
        return self._found.states

    def nominated_row(self) -> int | None:
        name = self.pod.pod.status.nominated_node_name
        return self.snapshot.nodes.row_of(name) if name else None

    def passes(self, row: int) -> bool:
        """Return whether one node passes, with and without the Pods nominated to it."""
        rows = np.array([row], dtype=np.int64)
        if self.rivals(self.snapshot.nodes.names[row]) and self._refused_with_rivals(row):
            return False
        return bool(self._run(rows, np.ones(1, dtype=np.bool_), self._found.states, []).all())

    def filter_all(self, standing: BoolArray) -> BoolArray:
        """Return who still stands of `standing`; `refusals` says why the others do not."""
        standing = self._apply_node_set(standing)
        standing = self._apply_unreadable(standing)
        for name in self.snapshot.nominated:
            row = self.snapshot.nodes.row_of(name)
            if row is not None and standing[row] and self.rivals(name):
                refused = self._refused_with_rivals(row)
                self.refusals += [self._widened(refusal, row) for refusal in refused]
                standing[row] = not refused
        return self._run(ALL_ROWS, standing, self._found.states, self.refusals)

    def _run(self, rows: Rows, standing: BoolArray, states: Mapping[str, object], refusals: list[Refusal]) -> BoolArray:
        for plugin in self.plugins:
            found = self.ask(plugin, states.get(plugin.name), self.snapshot, rows, standing.shape)
            self._observer.ran("Filter", plugin.name, SUCCESS)
            standing = sifted(plugin.name, found, standing, refusals)
        return standing

    def ask(
        self, plugin: FilterPlugin, state: object, snapshot: Snapshot, rows: Rows, shape: tuple[int, ...]
    ) -> list[Rejection]:
        """Return one plugin's rejections among `rows`; the masks have `shape`."""
        try:
            found = plugin.filter(state, self.pod, snapshot, rows)
            return rejections(plugin, found, shape)
        except PluginError:
            raise
        except Exception as error:  # a plugin's fault fails this attempt only
            raise raised(plugin, "Filter", error) from error

    def tally(self, plugin: FilterPlugin, pods: Sequence[PodInfo]) -> Tally | None:
        """Return one plugin's tally of some Pods."""
        try:
            return plugin.tally(self.states.get(plugin.name), self.pod, self.snapshot, pods)
        except Exception as error:  # a plugin's fault fails this attempt only
            raise raised(plugin, "Filter", error) from error

    def counting(self, states: Mapping[str, object], pod: PodInfo, row: int, sign: int) -> Mapping[str, object]:
        """Return PreFilter's states once `pod` has been placed on `row` (sign 1) or removed from it (-1)."""
        if not self._counting:
            return states
        changed: dict[str, object] = dict(states)
        for plugin in self._counting:
            count = plugin.add_pod if sign > 0 else plugin.remove_pod
            try:
                changed[plugin.name] = count(states.get(plugin.name), pod, row, self.snapshot)
            except Exception as error:  # a plugin's fault fails this attempt only
                raise raised(plugin, "Filter", error) from error
        return changed

    def _apply_node_set(self, standing: BoolArray) -> BoolArray:
        names = self._found.node_names
        if names is None:
            return standing
        nodes = self.snapshot.nodes
        inside = np.zeros(nodes.n_rows, dtype=np.bool_)
        inside[[row for row in map(nodes.row_of, names) if row is not None]] = True
        nominee = self.nominated_row()
        if nominee is not None:
            # It was looked at first, wherever it is; what refused it there is its reason.
            inside[nominee] = True
        by = self._found.restricted_by
        reason = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(by))}]"
        return self._refuse(standing, ~inside, by[0], reason)

    def _apply_unreadable(self, standing: BoolArray) -> BoolArray:
        unreadable = self.snapshot.nodes.n_unreadable_pods > 0
        return self._refuse(standing, unreadable, UNREADABLE_PODS, _UNREADABLE_REASON)

    def _refuse(self, standing: BoolArray, refused: BoolArray, plugin: str, reason: str) -> BoolArray:
        mask = refused & standing
        if not mask.any():
            return standing
        self.refusals.append(Refusal(plugin, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reason, mask))
        return standing & ~mask

    def rivals(self, node_name: str) -> list[PodInfo]:
        """Return the Pods nominated to a node that this Pod may not push aside."""
        nominated = self.snapshot.nominated.get(node_name, {})
        return [pod for pod in nominated.values() if pod.uid != self.pod.uid and pod.priority >= self.pod.priority]

    def _refused_with_rivals(self, row: int) -> list[Refusal]:
        states = self.states
        refusals: list[Refusal] = []
        with self.snapshot.trial() as trial:
            for rival in self.rivals(self.snapshot.nodes.names[row]):
                trial.place(rival, row)
                states = self.counting(states, rival, row, 1)
            rows = np.array([row], dtype=np.int64)
            self._run(rows, np.ones(1, dtype=np.bool_), states, refusals)
        return refusals

    def _widened(self, refusal: Refusal, row: int) -> Refusal:
        mask = np.zeros(self.snapshot.nodes.n_rows, dtype=np.bool_)
        mask[row] = True
        return Refusal(refusal.plugin, refusal.code, refusal.reason, mask, refusal.rule)


def _counts(plugin: FilterPlugin) -> bool:
    kind, base = type(plugin), FilterPlugin
    return kind.add_pod is not base.add_pod or kind.remove_pod is not base.remove_pod


def sifted(plugin: str, found: list[Rejection], standing: BoolArray, refusals: list[Refusal]) -> BoolArray:
    """Return who still stands after one plugin's rejections, and append what it refused to `refusals`.

    Raises
    ------
    PluginError
        It told a fault about one of `standing`.
    """
    if not found:
        return standing
    survivors = standing.copy()
    for rejection in found:
        mask = rejection.mask & standing
        if mask.any():
            if rejection.code is Code.ERROR:
                raise filter_fault(plugin, rejection.reason)
            refusals.append(Refusal(plugin, rejection.code, rejection.reason, mask, rejection.rule))
            survivors &= ~mask
    return survivors
