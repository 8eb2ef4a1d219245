"""The plugin itself: candidates, their victims, and the pick among them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Final

import numpy as np

from scheduler.framework.diagnosis import Diagnosis, Refusal
from scheduler.framework.events import Action, ClusterEvent, EventInterest, QueueingHint, Resource
from scheduler.framework.intree_args import DefaultPreemptionArgs
from scheduler.framework.plugin import DryRun, PostFilterPlugin, PreEnqueuePlugin
from scheduler.framework.status import Code, PostFilterResult, Status
from scheduler.framework.usage_by_priority import UsageByPriority
from scheduler.model.arrays import BoolArray, IntArray
from scheduler.model.hashes import mix64
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.plugins.default_preemption.disruption_budgets import DisruptionBudgets

REASON_NEVER = "not eligible due to preemptionPolicy=Never."
REASON_TERMINATING = "not eligible due to a terminating pod on the nominated node."
REASON_UNDER_WAY = "waiting for the preemption for this pod to be finished"
REASON_NO_VICTIMS = "No preemption victims found for incoming pod"
REASON_NOT_HELPFUL = "Preemption is not helpful for scheduling"
REASON_PREFILTER = "not found"
"""What kube-scheduler's DynamicResources says at PostFilter where PreFilter ended early; no other plugin is asked."""

_LOWEST_PRIORITY = -(2**31)
_FEW, _MANY = 64, 512
"""How many nodes are tried at once: at least, and while all the candidates that are wanted break budgets."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node on which the Pod fits once the victims, most important first, have gone."""

    row: int
    victims: tuple[PodInfo, ...]
    n_violations: int


@dataclass(slots=True)
class Search:
    """What came of trying nodes: `refusals`, masks bool (n_rows,), say why the others are no candidates."""

    candidates: list[Candidate] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)


class DefaultPreemption(PreEnqueuePlugin, PostFilterPlugin):
    """Nominates the node where the least is lost, and names the Pods that must leave it.

    Nodes that cannot be freed, whatever leaves, are found in columns; the others are tried from a place on that the
    Pod's UID decides (at random in kube-scheduler), until there are enough.

    Source: kube-scheduler v1.37 defaultpreemption/default_preemption.go and framework/preemption/preemption.go
    (behaviour).
    """

    indexes = (UsageByPriority,)
    kinds = ("PodDisruptionBudget",)
    Args = DefaultPreemptionArgs

    def __init__(self, args: DefaultPreemptionArgs | None = None) -> None:
        self._args = args or DefaultPreemptionArgs()
        self._under_way: set[str] = set()

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        """Keep the Pod waiting while its victims are being evicted: with half of them gone it would choose others."""
        if pod.uid not in self._under_way:
            return None
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (REASON_UNDER_WAY,))

    def preempting(self, pod: PodInfo, is_under_way: bool) -> None:
        (self._under_way.add if is_under_way else self._under_way.discard)(pod.uid)

    def postfilter(
        self, state: object, pod: PodInfo, snapshot: Snapshot, diagnosis: Diagnosis, dry_run: DryRun
    ) -> PostFilterResult:
        if diagnosis.prefilter is not None and diagnosis.prefilter.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return PostFilterResult(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (REASON_PREFILTER,)))
        ineligible = _why_not_eligible(pod, snapshot, diagnosis)
        if ineligible:
            return _refused(ineligible)
        search = self.search(pod, snapshot, diagnosis, dry_run)
        faults = [refusal.reason for refusal in search.refusals if refusal.code is Code.ERROR]
        if faults and not search.candidates:
            return PostFilterResult(Status(Code.ERROR, (f"preemption: {_all_of(faults)}",)))
        if not search.candidates:
            return _refused(_refusal_text(snapshot, search), nomination="")
        chosen = pick(search.candidates, snapshot, pod.seed)
        name = snapshot.nodes.names[chosen.row]
        found = f"found a potential placement for pod on node {name}, preempting {len(chosen.victims)} victims"
        return PostFilterResult(None, name, f"preemption: {found}", chosen.victims)

    def search(self, pod: PodInfo, snapshot: Snapshot, diagnosis: Diagnosis, dry_run: DryRun) -> Search:
        """Try nodes that the removal of Pods may free, until there are enough candidates."""
        search = Search()
        open_ = self._open_rows(pod, snapshot, diagnosis, dry_run, search)
        n_potential = int(np.count_nonzero(_potential(snapshot, diagnosis)))
        share = n_potential * self._args.min_candidate_nodes_percentage // 100
        n_wanted = min(n_potential, max(share, self._args.min_candidate_nodes_absolute))
        start = pod.seed % max(len(open_), 1)
        rows = [*open_[start:].tolist(), *open_[:start].tolist()]
        budgets = DisruptionBudgets(snapshot.catalog)
        is_harmless = False
        while rows and not (is_harmless and len(search.candidates) >= n_wanted):
            n_missing = n_wanted - len(search.candidates)
            n_now = max(n_missing, _FEW) if n_missing > 0 else _MANY
            found = _try_rows(rows[:n_now], pod, snapshot, dry_run, budgets)
            rows = rows[n_now:]
            search.refusals += found.refusals
            for candidate in found.candidates:
                search.candidates.append(candidate)
                is_harmless = is_harmless or candidate.n_violations == 0
                if is_harmless and len(search.candidates) >= n_wanted:
                    break
        if n_wanted == 0:
            # A share of few nodes may come to none. kube-scheduler has no room for a candidate then, and takes none.
            search.candidates.clear()
        return search

    def events(self) -> Sequence[EventInterest]:
        return (EventInterest(Resource.ASSIGNED_POD, Action.DELETE, _never),)

    def _open_rows(
        self, pod: PodInfo, snapshot: Snapshot, diagnosis: Diagnosis, dry_run: DryRun, search: Search
    ) -> IntArray:
        """Return the potential rows that have to be tried; `search` gets the refusals of the others."""
        potential, nodes = _potential(snapshot, diagnosis), snapshot.nodes
        requested, n_pods = snapshot.index(UsageByPriority).left_below(pod.priority, nodes)
        spared = potential & (n_pods == nodes.n_pods)
        code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        if spared.any():
            search.refusals.append(Refusal(self.name, code, REASON_NO_VICTIMS, spared))
        open_ = potential & ~spared
        if open_.any():
            hopeless = dry_run.hopeless(np.flatnonzero(open_), snapshot.supposing(requested, n_pods))
            search.refusals += hopeless
            for refusal in hopeless:
                open_ = open_ & ~refusal.mask
        return np.flatnonzero(open_)


def pick(candidates: Sequence[Candidate], snapshot: Snapshot, seed: int) -> Candidate:
    """Return the candidate on which the least is lost; the Pod's seed decides among equals."""
    best = candidates
    for loss in _LOSSES:
        losses = [loss(candidate) for candidate in best]
        least = min(losses)
        best = [candidate for candidate, one in zip(best, losses, strict=True) if one == least]
    rows = np.array([candidate.row for candidate in best], dtype=np.int64)
    return best[int(np.argmin(mix64(snapshot.nodes.name_hash[rows] ^ np.uint64(seed))))]


def _top(candidate: Candidate) -> int:
    return candidate.victims[0].priority


def _total(candidate: Candidate) -> int:
    return sum(victim.priority - _LOWEST_PRIORITY for victim in candidate.victims)


def _earliest(candidate: Candidate) -> float:
    """Return when the first of the most important victims started, the latest being the smallest."""
    top = _top(candidate)
    return -min(victim.started_s for victim in candidate.victims if victim.priority == top)


_LOSSES: Final[Sequence[Callable[[Candidate], float]]] = (
    lambda candidate: candidate.n_violations,
    _top,
    _total,
    lambda candidate: len(candidate.victims),
    _earliest,
)
"""What kube-scheduler compares, one after the other, smallest best."""


def _try_rows(
    rows: Sequence[int], pod: PodInfo, snapshot: Snapshot, dry_run: DryRun, budgets: DisruptionBudgets
) -> Search:
    here: dict[int, list[PodInfo]] = {}
    protected: dict[int, list[PodInfo]] = {}
    removable: dict[int, list[PodInfo]] = {}
    priority = pod.priority
    for row in rows:
        lower = [one for one in snapshot.pods_on(row) if one.priority < priority]
        lower.sort(key=_importance)
        violations = budgets.violated_by(lower)
        here[row], protected[row] = lower, list(compress(lower, violations))
        # Those whose removal breaks a budget are the first to come back, the most important one first.
        removable[row] = protected[row] + list(compress(lower, map(operator.not_, violations)))
    needed, refusals = dry_run.needed(removable)
    search = Search([], refusals)
    for row, going in needed.items():
        if not going:
            search.refusals.append(_nobody_has_to_go(snapshot, row))
            continue
        n_violations = len(set(protected[row]).intersection(going))
        search.candidates.append(Candidate(row, _most_important_first(going, here[row]), n_violations))
    return search


def _nobody_has_to_go(snapshot: Snapshot, row: int) -> Refusal:
    """Return the fault of a node that was refused although the Pod fits there beside everyone."""
    mask = np.zeros(snapshot.nodes.n_rows, dtype=np.bool_)
    mask[row] = True
    return Refusal("", Code.ERROR, f'expected at least one victim pod on node "{snapshot.nodes.names[row]}"', mask)


def _most_important_first(pods: tuple[PodInfo, ...], here: Sequence[PodInfo]) -> tuple[PodInfo, ...]:
    """Return Pods of a node sorted; equal ones keep their order, those that have not started that of `here`."""
    if math.inf not in [pod.started_s for pod in pods]:
        return tuple(sorted(pods, key=_importance))
    place = {pod.uid: place if pod.started_s == math.inf else 0 for place, pod in enumerate(here)}
    return tuple(sorted(pods, key=lambda pod: (_importance(pod), place[pod.uid])))


def _importance(pod: PodInfo) -> tuple[int, float]:
    """Return the key that puts the most important Pod first.

    Those that have not started count as started one after the other.
    """
    return -pod.priority, pod.started_s


def _potential(snapshot: Snapshot, diagnosis: Diagnosis) -> BoolArray:
    """Return bool (n_rows,): the nodes that the removal of Pods may free."""
    if diagnosis.prefilter is not None:
        return snapshot.nodes.alive.copy()
    may = np.zeros(snapshot.nodes.n_rows, dtype=np.bool_)
    may_not = may.copy()
    for refusal in diagnosis.refusals:
        mask = may if refusal.code is Code.UNSCHEDULABLE else may_not
        mask |= refusal.mask
    potential: BoolArray = may & ~may_not
    return potential


def _why_not_eligible(pod: PodInfo, snapshot: Snapshot, diagnosis: Diagnosis) -> str:
    if pod.pod.spec.preemption_policy == "Never":
        return REASON_NEVER
    row = snapshot.nodes.row_of(pod.pod.status.nominated_node_name)
    if row is None:
        return ""
    if any(one.mask[row] and one.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE for one in diagnosis.refusals):
        return ""
    waits = any(one.priority < pod.priority and _is_leaving(one) for one in snapshot.pods_on(row))
    return REASON_TERMINATING if waits else ""


def _is_leaving(pod: PodInfo) -> bool:
    """Return whether a Pod is being deleted because a scheduler preempted it."""
    if pod.pod.metadata.deletion_timestamp is None:
        return False
    conditions = pod.pod.status.conditions or ()
    return any(
        one.type == "DisruptionTarget" and one.status == "True" and one.reason == "PreemptionByScheduler"
        for one in conditions
    )


def _refused(text: str, nomination: str | None = None) -> PostFilterResult:
    return PostFilterResult(Status(Code.UNSCHEDULABLE, (f"preemption: {text}",)), nomination)


def _refusal_text(snapshot: Snapshot, search: Search) -> str:
    """Return the count of reasons of the nodes that were tried; of the rest only that it would not help."""
    rest = snapshot.nodes.alive.copy()
    for refusal in search.refusals:
        rest &= ~refusal.mask
    refusals = search.refusals
    if rest.any():
        not_helpful = Refusal("", Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON_NOT_HELPFUL, rest)
        refusals = [*refusals, not_helpful]
    return Diagnosis(snapshot.nodes.n_alive, tuple(refusals)).message()


def _all_of(faults: Sequence[str]) -> str:
    """Return each fault once. Source: k8s.io/apimachinery util/errors Aggregate (behaviour)."""
    different = list(dict.fromkeys(faults))
    return different[0] if len(different) == 1 else f"[{', '.join(different)}]"


def _never(_pod: PodInfo, _event: ClusterEvent) -> QueueingHint:
    """Victims that leave bring the Pod back by the plugins that had refused it."""
    return QueueingHint.SKIP
