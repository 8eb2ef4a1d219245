"""What a rule reads for one Pod of a signal with two keys: of cards, of workloads on nodes, or of pairs of domains.

**Cards.** A Pod that asks for n cards reads the value of each node's n-th best one, of the worst where fewer are
measured; a filter refuses the node where fewer cards than that are within its limits. Which end is the best one the
rule says: low for a score that falls and for a filter with `max`.

**Workloads.** A Pod reads its own workload on each node. One that has no sample anywhere is new: all nodes are missing,
and none is refused for that, since it could never get a sample.

**Pairs.** A Pod reads the mean over the Pods that it calls, from the node's domain to theirs, each counted where it is
now; those that are being deleted do not count. Pairs without a sample are left out, and a domain has no invented zero
to itself. Of several pairs the filter's limit lies between `max` and `clear`, closer to `clear` the more of the called
Pods are behind pairs that are tripped: with one pair that is plain hysteresis. A Pod whose called Pods are nowhere yet
is not refused for the lack of a sample.
"""

from __future__ import annotations

import fnmatch
import functools

import numpy as np

from scheduler.framework.matching_pods import Clause, Match, MatchingPods
from scheduler.model.arrays import BoolArray, FloatArray, read_only
from scheduler.model.keyed import KeyedColumn
from scheduler.model.label_selectors import selector_of_set
from scheduler.model.pods import PodInfo
from scheduler.model.rules import KEYED, ByKind, Calls, Rule, RuleFilter, Signal
from scheduler.model.signals import SignalColumn
from scheduler.model.snapshot import Snapshot


def keyed_signal(rule: Rule, snapshot: Snapshot) -> Signal | None:
    """Return the rule's signal if it has two keys."""
    signal = snapshot.signals.rules.signals.get(rule.signal)
    return signal if signal is not None and signal.built_in is None and signal.by in KEYED else None


def n_cards(gpu_resources: tuple[str, ...], pod: PodInfo) -> int:
    """Return how many cards a Pod asks for, by the names of resources, in which `*` stands for anything."""
    requests, n = pod.requests, 0
    for name in _cards_among(gpu_resources, pod.requested_resources):
        n += requests[name]
    return n


def called_pods(rule: Rule, pod: PodInfo) -> Match | None:
    """Return which Pods a Pod calls, None where the rule does not go by them."""
    return None if rule.calls is None or rule.calls.pod_label else _match_of(rule.calls, pod)


def keyed_column(rule: Rule, pod: PodInfo, column: SignalColumn, snapshot: Snapshot) -> SignalColumn:
    """Return a signal's column with the values that the Pod reads; as it is before the first answer.

    Its values are the same array in cycle after cycle while nothing has changed for the Pods that read it.
    """
    signal = column.signal
    keyed = snapshot.signals.keyed.get(signal.name)
    if keyed is None:
        return column
    if rule.gpu_resources:
        n = n_cards(rule.gpu_resources, pod)
        values, key = (keyed.of_card(n, is_low_best=_is_low_best(rule)) if n else keyed.nothing()), str(n)
    elif (calls := rule.calls) is not None and not calls.pod_label:
        mean, key = _mean(calls, pod, keyed, snapshot), "" if calls.all_namespaces else pod.namespace
        values = keyed.nothing() if mean is None else mean
    else:
        key = _group_name(rule, signal, pod)
        group = keyed.groups.get(key)
        values, key = (keyed.nothing(), "") if group is None else (keyed.of_group(group), key)
    # A keyed signal has neither anything in flight nor lags by row.
    return SignalColumn(signal, values, column.age_s, column.as_of_unix_s, None, None, key, column.fade_age_s)


def keyed_tripped(rule: Rule, signal: Signal, pod: PodInfo, snapshot: Snapshot) -> BoolArray | None:
    """Return bool (n_rows,), True where the rule's filter refuses the node for its value; None: nowhere."""
    column = snapshot.signals.keyed.get(signal.name)
    if column is None or rule.filter is None or rule.name not in column.trips:
        return None
    if signal.by is ByKind.GPU:
        n = n_cards(rule.gpu_resources, pod)
        return column.lacking_cards(n, rule.name) if n else None
    if rule.calls is not None and not rule.calls.pod_label:
        return _mean_tripped(rule, rule.calls, rule.filter, pod, column, snapshot)
    group = column.groups.get(_group_name(rule, signal, pod))
    return None if group is None else column.tripped_of_group(group, rule.name)


def is_due_a_sample(rule: Rule, signal: Signal, pod: PodInfo, snapshot: Snapshot) -> bool:
    """Whether a node without a sample for this Pod may be refused for that.

    Not where the Pod itself gives nothing to look for: it has no such label, calls nobody who is there, or is of a
    workload that has no sample on any node.
    """
    if signal.by is ByKind.GPU:
        return True
    column = snapshot.signals.keyed.get(signal.name)
    if rule.calls is not None and not rule.calls.pod_label:
        on_rows = snapshot.index(MatchingPods).on_rows(_match_of(rule.calls, pod), snapshot.nodes.n_rows)
        return bool(on_rows.any())
    name = _group_name(rule, signal, pod)
    if signal.by is ByKind.PAIR or column is None or not name:
        return bool(name)
    group = column.groups.get(name)
    return group is not None and column.starts[group] < column.starts[group + 1]


def _group_name(rule: Rule, signal: Signal, pod: PodInfo) -> str:
    """Return what the Pod's label names, empty where it has none."""
    value = pod.labels.get(rule.calls.pod_label if rule.calls is not None else rule.pod_label, "")
    if value and signal.workload is not None and signal.workload.namespace:
        return f"{pod.namespace}/{value}"
    return value


def _is_low_best(rule: Rule) -> bool:
    score = rule.score
    if score is not None:
        ys = score.curve.ys
        return ys[0] >= ys[-1]
    return rule.filter is None or rule.filter.max is not None


def _mean(calls: Calls, pod: PodInfo, column: KeyedColumn, snapshot: Snapshot) -> FloatArray | None:
    match = _match_of(calls, pod)
    index = snapshot.index(MatchingPods)

    def computed() -> FloatArray | None:
        counts = _by_group(match, column, snapshot)
        return None if counts is None else column.mean_of(counts)

    return column.memo.get(("called", match), (index.version_of(match),), computed)


def _mean_tripped(
    rule: Rule, calls: Calls, limits: RuleFilter, pod: PodInfo, column: KeyedColumn, snapshot: Snapshot
) -> BoolArray | None:
    mean, match = _mean(calls, pod, column, snapshot), _match_of(calls, pod)
    if mean is None:
        return None

    def computed() -> BoolArray | None:
        counts = _by_group(match, column, snapshot)
        return None if counts is None else beyond(limits, mean, column.tripped_share(counts, rule.name))

    return column.memo.get(("called tripped", match, rule.name), (mean, column.trips[rule.name], limits), computed)


def beyond(limits: RuleFilter, mean: FloatArray, tripped: FloatArray) -> BoolArray:
    """Return bool, True where a mean over several pairs is refused.

    `tripped` is the part of them that is, 0..1, NaN for no pair: refused with all, not refused with none, else beyond
    a limit that moves from the limit itself to `clear` with that part.
    """
    refused = tripped >= 1.0
    is_mixed = (tripped > 0.0) & (tripped < 1.0)
    for limit, clear, sign in ((limits.max, limits.max_clear, 1.0), (limits.min, limits.min_clear, -1.0)):
        if limit is not None:
            moved = limit + ((limit if clear is None else clear) - limit) * tripped
            refused |= is_mixed & (sign * mean > sign * moved)
    return read_only(refused)


def _by_group(match: Match, column: KeyedColumn, snapshot: Snapshot) -> FloatArray | None:
    """Return float64 (n_groups,), the called Pods in each domain that is a group; None where there is no such Pod."""
    on_rows = snapshot.index(MatchingPods).on_rows(match, snapshot.nodes.n_rows)
    if column.targets is None or not on_rows.any():
        return None
    has_group = column.targets >= 0
    counts: FloatArray = np.bincount(
        column.targets[has_group], weights=on_rows[has_group], minlength=len(column.groups)
    ).astype(np.float64)
    return counts


def _match_of(calls: Calls, pod: PodInfo) -> Match:
    return _called(tuple(calls.labels.items()), None if calls.all_namespaces else pod.namespace)


@functools.lru_cache(1024)
def _called(labels: tuple[tuple[str, str], ...], namespace: str | None) -> Match:
    namespaces = None if namespace is None else frozenset({namespace})
    return Match((Clause(namespaces, selector_of_set(dict(labels))),), is_alive=True)


@functools.lru_cache(1024)
def _cards_among(patterns: tuple[str, ...], resources: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the resources that are cards; Pods differ in few ways in which resources they ask for."""
    return tuple(name for name in resources if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns))
