"""decide: the one pure function behind the live loop, explain, what-if, simulation and backtest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from scheduler.errors import PluginError, UnsupportedPodError
from scheduler.framework.answers import postfilter_answer, raised
from scheduler.framework.decision import Decision, WeighedTerm
from scheduler.framework.diagnosis import Diagnosis
from scheduler.framework.filtering import Filtered, filter_phase
from scheduler.framework.observer import ERROR, SUCCESS, UNOBSERVED, Observer
from scheduler.framework.profile import Profile
from scheduler.framework.scoring import choose, score_phase
from scheduler.framework.status import Code
from scheduler.model.arrays import IntArray
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.model.unsupported import unsupported

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
    needs = unsupported(pod.pod)
    if needs:
        raise UnsupportedPodError(needs)
    try:
        return _decided(pod, snapshot, profile, candidates, observer)
    except PluginError as error:
        observer.ran(error.point, error.plugin, ERROR)
        observer.lap("Score" if error.point == "NormalizeScore" else error.point, ERROR)
        raise


def _decided(
    pod: PodInfo, snapshot: Snapshot, profile: Profile, candidates: IntArray | None, observer: Observer
) -> Decision:
    filtered = filter_phase(pod, snapshot, profile, candidates, observer)
    feasible: IntArray = np.flatnonzero(filtered.standing)
    if len(feasible) == 0:
        diagnosis, nomination = _run_postfilter(pod, snapshot, profile, filtered, observer)
        return Decision(-1, "", feasible, diagnosis, (), _NOTHING, _NOTHING, pod.seed, nomination=nomination)
    nodes = snapshot.nodes
    if len(feasible) == 1:
        row, best = int(feasible[0]), feasible
        terms: tuple[WeighedTerm, ...] = ()
        total: IntArray = np.zeros(1, dtype=np.int64)
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


def _run_postfilter(
    pod: PodInfo, snapshot: Snapshot, profile: Profile, filtered: Filtered, observer: Observer
) -> tuple[Diagnosis, str | None]:
    """Return the diagnosis with what the PostFilter plugins say, and their nomination.

    Source: kube-scheduler v1.37 framework/runtime RunPostFilterPlugins (behaviour).
    """
    diagnosis, nomination, reasons = filtered.diagnosis, None, list[str]()
    if not profile.postfilter or diagnosis.n_nodes == 0:
        return diagnosis, None
    for plugin in profile.postfilter:
        try:
            found = plugin.postfilter(filtered.states.get(plugin.name), pod, snapshot, diagnosis)
        except Exception as error:  # a plugin's fault fails this attempt only
            raise raised(plugin, "PostFilter", error) from error
        result = postfilter_answer(plugin, found)
        observer.ran("PostFilter", plugin.name, SUCCESS if result.refusal is None else result.refusal.code.label)
        if result.refusal is None:
            observer.lap("PostFilter", SUCCESS)
            return diagnosis, result.nominated_node_name
        nomination = nomination if result.nominated_node_name is None else result.nominated_node_name
        if result.refusal.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            reasons = list(result.refusal.reasons)
            break
        reasons += result.refusal.reasons
    observer.lap("PostFilter", Code.UNSCHEDULABLE.label)
    return replace(diagnosis, postfilter=", ".join(reasons)), nomination
