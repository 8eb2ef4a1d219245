"""decide: the one pure function behind the live loop, explain, what-if, simulation and backtest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from scheduler.decision.decision import Decision, WeighedTerm
from scheduler.decision.dry_run import PreemptionDryRun
from scheduler.decision.filter_phase import Filtered, filter_phase
from scheduler.decision.score_phase import choose, score_phase
from scheduler.decision.shadows import watched
from scheduler.errors import PluginError, UnsupportedPodError
from scheduler.framework.diagnosis import Diagnosis
from scheduler.framework.observer import ERROR, SUCCESS, UNOBSERVED, Observer
from scheduler.framework.plugin import DryRun, PostFilterPlugin
from scheduler.framework.plugin_faults import NODE_CODES, is_refusal, plugin_call, wrong
from scheduler.framework.profile import Profile
from scheduler.framework.status import Code, PostFilterResult
from scheduler.model.arrays import IntArray
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot

_NOTHING: IntArray = np.zeros(0, dtype=np.int64)


def decide(
    pod: PodInfo,
    snapshot: Snapshot,
    profile: Profile,
    candidates: IntArray | None = None,
    observer: Observer = UNOBSERVED,
) -> Decision:
    """Return where the Pod goes, or why nowhere. State in, decision out.

    The nominated node is tried first and taken unscored; a single feasible node is taken unscored.

    Parameters
    ----------
    candidates
        int64 rows that alone may be chosen; None: all nodes.

    Raises
    ------
    UnsupportedPodError
        The Pod needs something that is not built.
    PluginError
        A plugin raised or broke its contract.
    InvalidObjectError
        The Pod's spec has an impossible value.
    """
    if pod.unsupported:
        raise UnsupportedPodError(pod.unsupported)
    try:
        decision = _decided(pod, snapshot, profile, candidates, observer)
        return watched(decision, pod, snapshot, profile)
    except PluginError as error:
        observer.ran(error.point, error.plugin, ERROR)
        observer.lap("Score" if error.point == "NormalizeScore" else error.point, ERROR)
        raise


def _decided(
    pod: PodInfo, snapshot: Snapshot, profile: Profile, candidates: IntArray | None, observer: Observer
) -> Decision:
    filtered = filter_phase(pod, snapshot, profile, candidates, observer)
    feasible: IntArray = np.flatnonzero(filtered.standing)
    if len(feasible):
        return _placed(pod, snapshot, profile, filtered, feasible, observer)
    return _refused(pod, snapshot, profile, filtered, observer)


def _placed(
    pod: PodInfo, snapshot: Snapshot, profile: Profile, filtered: Filtered, feasible: IntArray, observer: Observer
) -> Decision:
    nodes = snapshot.nodes
    terms: tuple[WeighedTerm, ...] = ()
    if len(feasible) == 1:
        total: IntArray = np.zeros(1, dtype=np.int64)
        row, best = int(feasible[0]), feasible
    else:
        terms, total = score_phase(pod, snapshot, profile, feasible, filtered.states, observer)
        row, best = choose(total, feasible, nodes.name_hash, pod.seed)
    return Decision(
        row=row,
        node_name=nodes.names[row],
        feasible=feasible,
        diagnosis=filtered.diagnosis,
        terms=terms,
        total=total,
        best=best,
        seed=pod.seed,
        nominated=filtered.nominated,
        states=filtered.states,
    )


def _refused(pod: PodInfo, snapshot: Snapshot, profile: Profile, filtered: Filtered, observer: Observer) -> Decision:
    found = _run_postfilter(pod, snapshot, profile, filtered, observer)
    return Decision(
        row=-1,
        node_name="",
        feasible=_NOTHING,
        diagnosis=found.diagnosis,
        terms=(),
        total=_NOTHING,
        best=_NOTHING,
        seed=pod.seed,
        nomination=found.nomination,
        victims=found.victims,
        preempted_by=found.plugin,
    )


@dataclass(frozen=True, slots=True)
class _PostFiltered:
    diagnosis: Diagnosis
    nomination: str | None = None
    victims: tuple[PodInfo, ...] = ()
    plugin: str = ""


def _run_postfilter(
    pod: PodInfo, snapshot: Snapshot, profile: Profile, filtered: Filtered, observer: Observer
) -> _PostFiltered:
    """Return the diagnosis with what the PostFilter plugins say, their nomination and their victims.

    Source: kube-scheduler v1.37 framework/runtime RunPostFilterPlugins (behaviour).
    """
    diagnosis, nomination, reasons = filtered.diagnosis, None, list[str]()
    if not profile.postfilter or filtered.run is None:
        return _PostFiltered(diagnosis)
    dry_run = PreemptionDryRun(filtered.run)
    for plugin in profile.postfilter:
        result = postfilter(plugin, filtered.states.get(plugin.name), pod, snapshot, diagnosis, dry_run)
        observer.ran("PostFilter", plugin.name, SUCCESS if result.refusal is None else result.refusal.code.label)
        if result.refusal is None:
            observer.lap("PostFilter", SUCCESS)
            told = replace(diagnosis, postfilter=result.message)
            return _PostFiltered(told, result.nominated_node_name, result.victims, plugin.name)
        if result.refusal.code is Code.ERROR:
            observer.lap("PostFilter", ERROR)
            return _PostFiltered(replace(diagnosis, postfilter=", ".join(result.refusal.reasons)))
        nomination = nomination if result.nominated_node_name is None else result.nominated_node_name
        if result.refusal.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            reasons = list(result.refusal.reasons)
            break
        reasons += result.refusal.reasons
    observer.lap("PostFilter", Code.UNSCHEDULABLE.label)
    return _PostFiltered(replace(diagnosis, postfilter=", ".join(reasons)), nomination)


@plugin_call("PostFilter")
def postfilter(
    plugin: PostFilterPlugin,
    state: object,
    pod: PodInfo,
    snapshot: Snapshot,
    diagnosis: Diagnosis,
    dry_run: DryRun,
) -> PostFilterResult:
    """Return a PostFilter plugin's answer as what it is."""
    found: Any = plugin.postfilter(state, pod, snapshot, diagnosis, dry_run)
    if not isinstance(found, PostFilterResult):
        raise wrong(plugin, "PostFilter", "", found, "PostFilterResult")
    refusal, node = found.refusal, found.nominated_node_name
    if refusal is not None and not is_refusal(refusal, NODE_CODES):
        raise wrong(plugin, "PostFilter", "the refusal", refusal, "a refusal or None")
    if node is not None and not isinstance(node, str):
        raise wrong(plugin, "PostFilter", "the nominated node", node, "a name or None")
    if not isinstance(found.message, str):
        raise wrong(plugin, "PostFilter", "the message", found.message, "a text")
    if not isinstance(found.victims, tuple) or not all(isinstance(victim, PodInfo) for victim in found.victims):
        raise wrong(plugin, "PostFilter", "the victims", found.victims, "a tuple of PodInfo")
    return found
