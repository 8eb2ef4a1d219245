"""The filter phase: PreFilter, node sets, the nominated node, Filter.

Source: kube-scheduler v1.37 schedule_one.go findNodesThatFitPod and framework/runtime (behaviour). Other
than there, all nodes are looked at, always.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scheduler.decision.dry_run import PreemptionDryRun
from scheduler.decision.filter_run import ALL_ROWS, FilterRun, sifted
from scheduler.framework.diagnosis import Diagnosis, Refusal
from scheduler.framework.observer import SUCCESS, Observer
from scheduler.framework.plugin import PreFilterPlugin
from scheduler.framework.plugin_faults import is_refusal, plugin_call, wrong
from scheduler.framework.profile import Profile
from scheduler.framework.status import Code, PreFilterResult, Rejection, Status
from scheduler.model.arrays import BoolArray, IntArray
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.model.views import NodeView


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
    refused_first: set[str] = field(default_factory=set)


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
    plugins = [plugin for plugin in profile.filter if plugin.name not in found.skipped]
    run = FilterRun(pod, snapshot, plugins, found.states, observer)
    if found.refusal is not None:
        nobody = np.zeros(nodes.n_rows, dtype=np.bool_)
        return Filtered(nobody, Diagnosis(n_nodes, (), found.refusal, found.plugins), found.states, run=run)
    refusals: list[Refusal] = []
    name = pod.pod.status.nominated_node_name
    nominee = nodes.row_of(name) if name else None
    if nominee is not None and standing[nominee] and _passes(run, nominee, found):
        only = np.zeros(nodes.n_rows, dtype=np.bool_)
        only[nominee] = True
        observer.lap("Filter", SUCCESS)
        return Filtered(only, Diagnosis(n_nodes), found.states, nominated=True, run=run)
    standing = _allowed(found, nominee, nodes, standing, refusals)
    standing = _beside_rivals(run, standing, refusals)
    standing = run.filter(ALL_ROWS, standing, refusals)
    # As with kube-scheduler, the point does not fail if no node passes.
    observer.lap("Filter", SUCCESS)
    return Filtered(standing, Diagnosis(n_nodes, tuple(refusals)), found.states, run=run)


def _run_prefilter(pod: PodInfo, snapshot: Snapshot, profile: Profile, observer: Observer) -> _PreFiltered:
    found = _PreFiltered()
    for plugin in profile.prefilter:
        result = prefilter(plugin, pod, snapshot)
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


def _passes(run: FilterRun, row: int, found: _PreFiltered) -> bool:
    """Return whether one node passes, with and without the Pods nominated to it.

    Who refuses it is named beside the plugins whose node sets leave others out, as kube-scheduler does.
    """
    refusals: list[Refusal] = []
    if run.rivals(run.snapshot.nodes.names[row]):
        needed, refusals = PreemptionDryRun(run).needed({row: ()})
        passes = row in needed
    else:
        passes = bool(run.filter(np.array([row], dtype=np.int64), np.ones(1, dtype=np.bool_), refusals).all())
    found.refused_first.update(refusal.plugin for refusal in refusals if refusal.code is not Code.ERROR)
    return passes


def _allowed(
    found: _PreFiltered, nominee: int | None, nodes: NodeView, standing: BoolArray, refusals: list[Refusal]
) -> BoolArray:
    """Return who stands of the nodes that PreFilter leaves."""
    if found.node_names is None:
        return standing
    inside = np.zeros(nodes.n_rows, dtype=np.bool_)
    inside[[row for row in map(nodes.row_of, found.node_names) if row is not None]] = True
    if nominee is not None:
        # It was looked at first, wherever it is; what refused it there is its reason.
        inside[nominee] = True
    by = sorted({*found.restricted_by, *found.refused_first})
    reason = f"node(s) didn't satisfy plugin(s) [{' '.join(by)}]"
    outside = Rejection(~inside, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reason)
    return sifted(found.restricted_by[0], [outside], standing, refusals)


def _beside_rivals(run: FilterRun, standing: BoolArray, refusals: list[Refusal]) -> BoolArray:
    """Return who stands once the Pods nominated to a node, that this Pod may not push aside, count as placed there.

    A node with a fault still stands: the filters without the nominated Pods find the fault.
    """
    nodes = run.snapshot.nodes
    rows = [(name, nodes.row_of(name)) for name in run.snapshot.nominated]
    crowded = {row: () for name, row in rows if row is not None and standing[row] and run.rivals(name)}
    if not crowded:
        return standing
    _, found = PreemptionDryRun(run).needed(crowded)
    told = [refusal for refusal in found if refusal.code is not Code.ERROR]
    refusals += told
    return standing & ~np.logical_or.reduce([refusal.mask for refusal in told]) if told else standing


@plugin_call("PreFilter")
def prefilter(plugin: PreFilterPlugin, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status:
    """Return a PreFilter plugin's answer as what it is."""
    found: Any = plugin.prefilter(pod, snapshot)
    if isinstance(found, PreFilterResult):
        if found.node_names is not None and not isinstance(found.node_names, frozenset | set):
            raise wrong(plugin, "PreFilter", "node names", found.node_names, "a frozenset or None")
        return found
    if isinstance(found, Status) and (found.code is Code.SKIP or is_refusal(found)):
        return found
    raise wrong(plugin, "PreFilter", "", found, "PreFilterResult, SKIP or a refusal")
