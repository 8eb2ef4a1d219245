"""decide: the one pure function behind the live loop, explain, what-if, simulation and backtest."""

from __future__ import annotations

import numpy as np

from scheduler.errors import UnsupportedPodError
from scheduler.framework.decision import Decision, WeighedTerm
from scheduler.framework.filtering import filter_phase
from scheduler.framework.observer import UNOBSERVED, Observer
from scheduler.framework.profile import Profile
from scheduler.framework.scoring import choose, score_phase
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
    filtered = filter_phase(pod, snapshot, profile, candidates, observer)
    feasible: IntArray = np.flatnonzero(filtered.standing)
    if len(feasible) == 0:
        return Decision(-1, "", feasible, filtered.diagnosis, (), _NOTHING, _NOTHING, pod.seed)
    nodes = snapshot.nodes
    if len(feasible) == 1:
        row, best = int(feasible[0]), feasible
        terms: tuple[WeighedTerm, ...] = ()
        total: IntArray = np.zeros(1, dtype=np.int64)
    else:
        terms, total = score_phase(pod, snapshot, profile, feasible, filtered.states, observer)
        row, best = choose(total, feasible, nodes.name_hash, pod.seed)
    return Decision(
        row, nodes.names[row], feasible, filtered.diagnosis, terms, total, best, pod.seed, filtered.nominated
    )
