"""Built-in signals: what is read from the snapshot instead of being asked for, exact at its moment and always fresh.

A count is that of the Pods which are placed now, of all schedulers, before the Pod at hand: so a limit of `max: 2` lets
a third one come. Pods that are being deleted count until they are gone. With a window those that have gone
count too, if they were placed within it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduler.framework.matching_pods import Clause, Match, MatchingPods
from scheduler.model.arrays import BoolArray, FloatArray, IntArray, read_only
from scheduler.model.history import Question
from scheduler.model.label_selectors import Selector, Term
from scheduler.model.labels import ABSENT
from scheduler.model.pods import PodInfo
from scheduler.model.requests import CPU, PODS
from scheduler.model.rules import BuiltIn, BuiltInKind, ByKind, Rule, Signal, Unit
from scheduler.model.signals import SignalColumn
from scheduler.model.snapshot import Snapshot
from scheduler.model.views import NodeView

_MILLICORES = 1000.0
_PERCENT = 100.0
_SHARES = (Unit.RATIO, Unit.PERCENT)


@dataclass(frozen=True, slots=True, eq=False)
class Emptied:
    """How a signal differs where Pods have left single rows: each row misses its own, and nothing of what left others.

    before, after
        int64 (n_rows,): the amounts on each row with all Pods there, and without those that have left it.
    """

    before: IntArray
    after: IntArray


def built_in_column(signal: Signal, pod: PodInfo | None, snapshot: Snapshot) -> SignalColumn:
    """Return a built-in signal as it is for this Pod; without a Pod only where it does not depend on one."""
    return SignalColumn(signal, _values(signal, pod, snapshot), 0.0)


def built_in_values(
    signal: Signal, pod: PodInfo | None, snapshot: Snapshot, emptied: Emptied | None = None
) -> FloatArray:
    """Return float64 (n_rows,), in the signal's unit; NaN only outside its domains, and where a share is of nothing."""
    nodes = snapshot.nodes
    of_rows = amounts(signal, pod, snapshot) if emptied is None else emptied.before
    values = summed(signal, of_rows, nodes)
    if emptied is not None:
        left = of_rows - emptied.after
        # Nobody's Pods but those of live nodes are in a sum.
        values -= left if signal.by is ByKind.NODE else np.where(nodes.alive, left, 0)
    if signal.unit in _SHARES:
        whole = summed(signal, _allocatable(_resource(signal), nodes), nodes)
        share: FloatArray = np.full(nodes.n_rows, np.nan)
        np.divide(values, whole, out=share, where=whole > 0)
        return share * _PERCENT if signal.unit is Unit.PERCENT else share
    return values / _MILLICORES if _resource(signal) == CPU else values


def amounts(signal: Signal, pod: PodInfo | None, snapshot: Snapshot) -> IntArray:
    """Return int64 (n_rows,), what lies on each node: Pods, millicores or whole units."""
    built_in, nodes = _built_in(signal), snapshot.nodes
    match built_in.kind:
        case BuiltInKind.COUNT:
            return _counts(built_in, pod, snapshot)
        case BuiltInKind.PODS:
            return nodes.n_pods
        case BuiltInKind.REQUESTED:
            row = nodes.resources.get(built_in.resource)
            return _nothing(nodes) if row is None else nodes.requested[row]
        case BuiltInKind.ALLOCATABLE:
            return _allocatable(built_in.resource, nodes)


def counted_pods(built_in: BuiltIn, pod: PodInfo) -> Match | None:
    """Return which Pods count for a Pod, None where it lacks one of the labels: then nobody is like it."""
    terms = []
    for key in built_in.same:
        value = pod.labels.get(key)
        if value is None:
            return None
        terms.append(Term(key, "In", (value,)))
    namespaces = None if built_in.all_namespaces else frozenset({pod.namespace})
    return Match((Clause(namespaces, Selector(tuple(terms))),))


def summed(signal: Signal, of_rows: IntArray, nodes: NodeView) -> FloatArray:
    """Return float64 (n_rows,): each node's amount, or the sum over all live nodes of its domain or of the cluster."""
    if signal.by is ByKind.NODE:
        return of_rows.astype(np.float64)
    if signal.by is ByKind.CLUSTER:
        return np.full(nodes.n_rows, float(of_rows[nodes.alive].sum()))
    codes = nodes.label_codes(signal.label)
    if codes is None:
        return np.full(nodes.n_rows, np.nan)
    # A node that is gone has no labels, and a row without the label reads the first entry: code -1.
    # Most counts are of few nodes, so only those are summed.
    some = np.flatnonzero(of_rows != 0)
    n_codes = len(nodes.label_values(signal.label)) + 1
    sums = np.bincount(codes[some] - ABSENT, weights=of_rows[some], minlength=n_codes).astype(np.float64, copy=False)
    sums[0] = np.nan
    by_row: FloatArray = sums.take(codes - ABSENT)
    return by_row


def read_signal(rule: Rule, snapshot: Snapshot) -> Signal | None:
    """Return the built-in signal of a rule, None where it has one that is asked for, or none."""
    signal = snapshot.signals.rules.signals.get(rule.signal)
    return signal if signal is not None and signal.built_in is not None else None


def refused_now(
    rule: Rule, pod: PodInfo | None, snapshot: Snapshot, emptied: Emptied | None = None
) -> BoolArray | None:
    """Return bool (n_rows,), what a rule that reads the snapshot alone refuses; None: nobody.

    By its label match, or by a built-in signal: values that change with each Pod are compared without hysteresis, and
    a node without a value is not refused.
    """
    if rule.label_match is not None:
        wanted = None if pod is None else pod.labels.get(rule.label_match.pod_label)
        return label_mismatch(wanted, rule.label_match.node_label, snapshot.nodes)
    signal, limits = read_signal(rule, snapshot), rule.filter
    if signal is None or limits is None:
        return None
    values = _values(signal, pod, snapshot) if emptied is None else built_in_values(signal, pod, snapshot, emptied)
    refused = np.zeros(values.shape, dtype=np.bool_) if limits.max is None else values > limits.max
    return refused if limits.min is None else refused | (values < limits.min)


def label_mismatch(wanted: str | None, node_label: str, nodes: NodeView) -> BoolArray | None:
    """Return bool (n_rows,), True where the node's label has not the Pod's value; None for a Pod without a value."""
    if wanted is None:
        return None
    codes, code = nodes.label_codes(node_label), nodes.label_values(node_label).get(wanted)
    if codes is None or code is None:
        return np.ones(nodes.n_rows, dtype=np.bool_)
    mismatch: BoolArray = codes != code
    return mismatch


def _values(signal: Signal, pod: PodInfo | None, snapshot: Snapshot) -> FloatArray:
    """Return `built_in_values`, read-only: filter, score and record of one decision share them."""
    same = _built_in(signal).same
    like = None if pod is None or not same else (pod.namespace, *(pod.labels.get(key) for key in same))
    return snapshot.once((signal.name, like), lambda: read_only(built_in_values(signal, pod, snapshot)))


def _counts(built_in: BuiltIn, pod: PodInfo | None, snapshot: Snapshot) -> IntArray:
    if pod is None:
        raise ValueError("a count depends on the Pod, and there is none")
    match = counted_pods(built_in, pod)
    if match is None:
        return _nothing(snapshot.nodes)
    counts = snapshot.index(MatchingPods).on_rows(match, snapshot.nodes.n_rows)
    if not built_in.window_s:
        return counts
    labels = tuple((key, pod.labels[key]) for key in built_in.same)
    question = Question(None if built_in.all_namespaces else pod.namespace, labels)
    return counts + snapshot.placed_within(built_in.window_s, question)


def _resource(signal: Signal) -> str:
    built_in = _built_in(signal)
    return PODS if built_in.kind is BuiltInKind.PODS else built_in.resource


def _built_in(signal: Signal) -> BuiltIn:
    if signal.built_in is None:
        raise ValueError(f"signal {signal.name!r} is asked for, not read")
    return signal.built_in


def _allocatable(resource: str, nodes: NodeView) -> IntArray:
    row = nodes.resources.get(resource)
    return _nothing(nodes) if row is None else nodes.allocatable[row]


def _nothing(nodes: NodeView) -> IntArray:
    return np.zeros(nodes.n_rows, dtype=np.int64)
