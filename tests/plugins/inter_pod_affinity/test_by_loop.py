"""InterPodAffinity beside a plain loop over nodes and Pods, written from the specification, on random clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from scheduler.framework.status import Code, PreFilterResult, Rejection, Status
from scheduler.model.objects import Node, PodAffinity, PodAffinityTerm
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.model.state import ClusterState
from scheduler.model.structs import Labels, LabelSelector, Requirement
from scheduler.plugins.inter_pod_affinity.carried_terms import CarriedTerms
from scheduler.plugins.inter_pod_affinity.plugin import (
    REASON_AFFINITY,
    REASON_ANTI_AFFINITY,
    REASON_EXISTING,
    InterPodAffinity,
)
from tests.builders import NO_SIGNALS, cluster_of, make_node, make_pod, object_of
from tests.contracts.contents import contents, differing
from tests.worlds import each_seed

KEYS = ("zone", "rack", "kubernetes.io/hostname", "nowhere")
NAMESPACES: dict[str, Labels] = {"default": {"team": "red"}, "other": {"team": "blue"}, "bare": {}}
"""The namespaces with an object; there are Pods in `unknown`, too."""

EXPRESSIONS = [
    {"key": "app", "operator": "In", "values": ["web", "db"]},
    {"key": "app", "operator": "NotIn", "values": ["web"]},
    {"key": "tier", "operator": "Exists"},
    {"key": "tier", "operator": "DoesNotExist"},
    {"key": "team", "operator": "In", "values": ["red"]},
    {"key": "team", "operator": "NotIn", "values": ["red"]},
]
SELECTORS: list[Any] = [
    *[{"matchLabels": {"app": "web"}}] * 4,
    {"matchLabels": {"team": "red"}},
    {},
    None,
    *({"matchExpressions": [one]} for one in EXPRESSIONS),
]

MANY = 9
"""More terms than are counted one by one."""

World = tuple[list[Node], list[PodInfo], PodInfo]


def make_term(random: Random) -> dict[str, Any]:
    fields: dict[str, Any] = {"topologyKey": random.choice(KEYS), "labelSelector": random.choice(SELECTORS)}
    if random.random() < 0.3:
        fields["namespaces"] = random.choices([*NAMESPACES, "unknown"], k=random.randint(0, 2))
    if random.random() < 0.3:
        fields["namespaceSelector"] = random.choice(SELECTORS)
    return fields


def make_affinity(random: Random, times: int) -> dict[str, Any]:
    required, preferred = (
        [make_term(random) for _ in range(random.choice([0, 0, 1, 2]))] * times for _ in ("required", "preferred")
    )
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": required,
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": random.randint(1, 100), "podAffinityTerm": one} for one in preferred
        ],
    }


def random_pod(random: Random, name: str, node: str = "", times: int = 1) -> PodInfo:
    """Return a Pod that has each of its terms so many times."""
    kinds = {kind: make_affinity(random, times) for kind in ("podAffinity", "podAntiAffinity") if random.random() < 0.6}
    labels = {"app": random.choice(["web", "web", "db"]), **({"tier": "1"} if random.random() < 0.3 else {})}
    namespace = random.choice(["default", "default", "default", "other", "unknown"])
    return make_pod(name, namespace=namespace, node=node, labels=labels, spec={"affinity": kinds})


def random_world(random: Random, times: int = 1) -> World:
    n = random.randint(1, 8)
    nodes = [
        make_node(f"n{i}", labels={key: random.choice("abc") for key in KEYS[:2] if random.random() < 0.8})
        for i in range(n)
    ]
    # The last node may have Pods without being there.
    there = [
        random_pod(random, f"placed-{i}", f"n{random.randint(0, n)}", random.choice([1, times]))
        for i in range(random.randint(0, 8))
    ]
    return nodes, there, random_pod(random, "pod", times=times)


def state_of(nodes: Sequence[Node], there: Sequence[PodInfo]) -> ClusterState:
    objects = [object_of("Namespace", {"metadata": {"name": n, "labels": labels}}) for n, labels in NAMESPACES.items()]
    return cluster_of(nodes, there, [InterPodAffinity()], objects)


# -- the loop ------------------------------------------------------------------------------------------------


def holds(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.match_labels or {}).items()):
        return False
    return all(holds_one(one, labels.get(one.key)) for one in selector.match_expressions or [])


def holds_one(requirement: Requirement, value: str | None) -> bool:
    if requirement.operator in ("Exists", "DoesNotExist"):
        return (value is not None) == (requirement.operator == "Exists")
    return (value in (requirement.values or [])) == (requirement.operator == "In")


def means(term: PodAffinityTerm, owner: PodInfo, pod: PodInfo, *, is_incoming: bool) -> bool:
    """Return whether a term of `owner` means `pod`; one to place finds only namespaces with an object by label."""
    if not holds(term.label_selector, pod.labels):
        return False
    if not term.namespaces and term.namespace_selector is None:
        return pod.namespace == owner.namespace
    if pod.namespace in (term.namespaces or []):
        return True
    if is_incoming and term.namespace_selector != LabelSelector() and pod.namespace not in NAMESPACES:
        return False
    return holds(term.namespace_selector, NAMESPACES.get(pod.namespace, {}))


def lists(pod: PodInfo) -> tuple[PodAffinity, PodAffinity]:
    affinity = pod.pod.spec.affinity
    assert affinity is not None
    return affinity.pod_affinity or PodAffinity(), affinity.pod_anti_affinity or PodAffinity()


@dataclass
class Loop:
    """kube-scheduler's counts by (topology key, value), Pod by Pod."""

    nodes: Sequence[Node]
    there: Sequence[PodInfo]
    pod: PodInfo
    near: Counter[tuple[str, str]] = field(default_factory=Counter)
    away: Counter[tuple[str, str]] = field(default_factory=Counter)
    existing: Counter[tuple[str, str]] = field(default_factory=Counter)
    score: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        labels = {node.metadata.name: node.metadata.labels or {} for node in self.nodes}
        for other in self.there:
            if other.pod.spec.node_name in labels:
                self.count(other, labels[other.pod.spec.node_name])

    def count(self, other: PodInfo, labels: Mapping[str, str]) -> None:
        self.count_own(other, labels)
        self.count_theirs(other, labels)

    def count_own(self, other: PodInfo, labels: Mapping[str, str]) -> None:
        near, away = lists(self.pod)
        if near.required and all(means(term, self.pod, other, is_incoming=True) for term in near.required):
            for term in near.required:
                add(self.near, term, labels, 1)
        for term in away.required:
            if means(term, self.pod, other, is_incoming=True):
                add(self.away, term, labels, 1)
        for sign, own in ((1, near), (-1, away)):
            for one in own.preferred:
                if means(one.pod_affinity_term, self.pod, other, is_incoming=True):
                    add(self.score, one.pod_affinity_term, labels, sign * one.weight)

    def count_theirs(self, other: PodInfo, labels: Mapping[str, str]) -> None:
        theirs, their_away = lists(other)
        for term in their_away.required:
            if means(term, other, self.pod, is_incoming=False):
                add(self.existing, term, labels, 1)
        for term in theirs.required:
            if means(term, other, self.pod, is_incoming=False):
                add(self.score, term, labels, 1)
        for sign, own in ((1, theirs), (-1, their_away)):
            for one in own.preferred:
                if means(one.pod_affinity_term, other, self.pod, is_incoming=False):
                    add(self.score, one.pod_affinity_term, labels, sign * one.weight)

    @property
    def is_filter_skipped(self) -> bool:
        near, away = lists(self.pod)
        return not (self.existing or near.required or away.required)

    def refusal(self, node: Node) -> tuple[Code, str] | None:
        labels = node.metadata.labels or {}
        near, away = lists(self.pod)
        pairs = [(term.topology_key, labels.get(term.topology_key)) for term in near.required]
        if any(value is None for _, value in pairs):
            return Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON_AFFINITY
        is_first = not self.near and all(means(term, self.pod, self.pod, is_incoming=True) for term in near.required)
        if not is_first and any((key, str(value)) not in self.near for key, value in pairs):
            return Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON_AFFINITY
        if any((term.topology_key, labels.get(term.topology_key, "")) in self.away for term in away.required):
            return Code.UNSCHEDULABLE, REASON_ANTI_AFFINITY
        if any(pair in self.existing for pair in labels.items()):
            return Code.UNSCHEDULABLE, REASON_EXISTING
        return None

    def raw(self, node: Node) -> int:
        return sum(self.score[pair] for pair in (node.metadata.labels or {}).items())


def add(counts: Counter[tuple[str, str]], term: PodAffinityTerm, labels: Mapping[str, str], n: int) -> None:
    if term.topology_key in labels:
        counts[term.topology_key, labels[term.topology_key]] += n


# -- the columns beside it -----------------------------------------------------------------------------------


def found_refusals(rejections: Sequence[Rejection], n: int) -> list[list[tuple[Code, str]]]:
    return [[(one.code, one.reason) for one in rejections if one.mask[row]] for row in range(n)]


def expected_refusals(loop: Loop) -> list[list[tuple[Code, str]]]:
    return [[] if (refusal := loop.refusal(node)) is None else [refusal] for node in loop.nodes]


def filtered(snapshot: Snapshot, pod: PodInfo, state: Any = None) -> Any:
    """Return (PreFilter's state, refusals by row), (None, []) where it is skipped."""
    plugin = InterPodAffinity()
    if state is None:
        result = plugin.prefilter(pod, snapshot)
        if isinstance(result, Status):
            return None, []
        assert isinstance(result, PreFilterResult)
        state = result.state
    return state, found_refusals(plugin.filter(state, pod, snapshot, slice(None)), snapshot.nodes.n_rows)


def check(snapshot: Snapshot, loop: Loop) -> None:
    plugin = InterPodAffinity()
    state, refused = filtered(snapshot, loop.pod)
    assert (state is None) == loop.is_filter_skipped
    if state is not None:
        assert refused[: len(loop.nodes)] == expected_refusals(loop)
    pulls = plugin.prescore(loop.pod, snapshot, slice(None))
    assert isinstance(pulls, Status) == (not loop.score)
    if not isinstance(pulls, Status):
        (term,) = plugin.score(pulls, loop.pod, snapshot, slice(None))
        assert term.values.tolist()[: len(loop.nodes)] == [loop.raw(node) for node in loop.nodes]


def test_the_worlds_reach_every_refusal_and_scores() -> None:
    loops = [Loop(*random_world(Random(seed))) for seed in range(300)]
    refused = {refusal and refusal[1] for loop in loops for node in loop.nodes for refusal in [loop.refusal(node)]}
    assert refused == {REASON_AFFINITY, REASON_ANTI_AFFINITY, REASON_EXISTING, None}
    assert {bool(loop.score) for loop in loops} == {loop.is_filter_skipped for loop in loops} == {True, False}


@each_seed(300)
def test_columns_are_what_the_loop_finds(random: Random) -> None:
    nodes, there, pod = random_world(random)
    loop = Loop(nodes, there, pod)
    check(Snapshot(state_of(nodes, there), NO_SIGNALS, 0.0), loop)


@each_seed(300)
def test_columns_for_many_terms_are_what_the_loop_finds(random: Random) -> None:
    nodes, there, pod = random_world(random, MANY)
    check(Snapshot(state_of(nodes, there), NO_SIGNALS, 0.0), Loop(nodes, there, pod))


@each_seed(300)
def test_counts_follow_the_pods(random: Random) -> None:
    """Asked before, between and after: the answers kept from earlier questions follow each Pod."""
    nodes, there, pod = random_world(random, random.choice([1, MANY]))
    state, placed = state_of(nodes, ()), list[PodInfo]()
    check(Snapshot(state, NO_SIGNALS, 0.0), Loop(nodes, placed, pod))
    for other in there:
        state.place(other, state.nodes.ensure_row(other.pod.spec.node_name))
        placed.append(other)
        if random.random() < 0.5:
            gone = placed.pop(random.randrange(len(placed)))
            state.displace(gone, state.nodes.ensure_row(gone.pod.spec.node_name))
        check(Snapshot(state, NO_SIGNALS, 0.0), Loop(nodes, placed, pod))


@each_seed(300)
def test_a_state_moved_along_is_the_state_of_the_moved_world(random: Random) -> None:
    nodes, there, pod = random_world(random, random.choice([1, MANY]))
    n_first = random.randint(0, len(there))
    snapshot = Snapshot(state_of(nodes, there[:n_first]), NO_SIGNALS, 0.0)
    plugin, (state, _) = InterPodAffinity(), filtered(snapshot, pod)
    if state is None:
        return
    leaving = there[: random.randint(0, n_first)]
    coming = [other for other in there[n_first:] if snapshot.nodes.row_of(other.pod.spec.node_name) is not None]
    before = filtered(snapshot, pod, state)[1]
    now = state
    for other in coming:
        now = plugin.add_pod(now, other, int(snapshot.nodes.row_of(other.pod.spec.node_name) or 0), snapshot)
    for other in leaving:
        now = plugin.remove_pod(now, other, int(snapshot.nodes.row_of(other.pod.spec.node_name) or 0), snapshot)

    loop = Loop(nodes, [*there[len(leaving) : n_first], *coming], pod)
    assert filtered(snapshot, pod, now)[1][: len(nodes)] == expected_refusals(loop)
    assert filtered(snapshot, pod, state)[1] == before
    rows = np.array(random.sample(range(len(nodes)), random.randint(0, len(nodes))), dtype=np.int64)
    part = found_refusals(plugin.filter(now, pod, snapshot, rows), len(rows))
    assert part == [expected_refusals(loop)[row] for row in rows.tolist()]


@each_seed(300)
def test_an_index_that_keeps_few_subjects_answers_alike(random: Random) -> None:
    nodes, there, pod = random_world(random)
    others = [random_pod(random, "other") for _ in range(2)]
    state = state_of(nodes, ())
    state.indexes = [CarriedTerms(1) if isinstance(index, CarriedTerms) else index for index in state.indexes]
    for number, other in enumerate(there):
        for asking in (*others, pod):
            check(Snapshot(state, NO_SIGNALS, 0.0), Loop(nodes, there[:number], asking))
        state.place(other, state.nodes.ensure_row(other.pod.spec.node_name))


@each_seed(300)
def test_a_trial_undone_leaves_the_index_as_it_was(random: Random) -> None:
    nodes, there, pod = random_world(random, random.choice([1, MANY]))
    coming = [random_pod(random, f"coming-{i}", times=random.choice([1, MANY])) for i in range(random.randint(1, 3))]
    state = state_of(nodes, there)
    snapshot = Snapshot(state, NO_SIGNALS, 0.0)
    check(snapshot, Loop(nodes, there, pod))
    before = contents(state)
    with snapshot.trial() as trial:
        for other in coming:
            trial.place(other, len(nodes) - 1)
        for other in there:
            trial.remove(other, int(snapshot.nodes.row_of(other.pod.spec.node_name) or 0))
    assert differing(before, contents(state)) == {}
    check(snapshot, Loop(nodes, there, pod))
