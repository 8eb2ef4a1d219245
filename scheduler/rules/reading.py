"""What a rule reads for one Pod: the column of its signal, and which nodes its filter refuses for their value.

The one place where kinds of signals differ for whoever applies, records or shows a rule. Pure: the snapshot and the
Pod say it all.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from scheduler.framework.index import Index
from scheduler.framework.matching_pods import MatchingPods
from scheduler.framework.profile import Profile
from scheduler.model.arrays import BoolArray
from scheduler.model.pods import PodInfo
from scheduler.model.rules import KEYED, FilterMissing, Rule
from scheduler.model.signals import Freshness, SignalColumn
from scheduler.model.snapshot import Snapshot
from scheduler.rules.built_in import built_in_column, read_signal, refused_now
from scheduler.rules.keyed import (
    is_due_a_sample,
    keyed_column,
    keyed_signal,
    keyed_tripped,
)
from scheduler.rules.pending_column import with_inflight
from scheduler.rules.pending_load import InflightPods

INDEXES: Final[tuple[type[Index], ...]] = (InflightPods, MatchingPods)
"""What rules read of Pods: kept for every profile, for records and pages read rules even where no plugin does."""


def indexes_for(profiles: Iterable[Profile]) -> list[Index]:
    """Return new indexes, one of each class that the plugins of some profiles need, or rules."""
    of_plugins = (index for profile in profiles for index in profile.indexes)
    return [index() for index in dict.fromkeys((*INDEXES, *of_plugins))]


def read_column(rule: Rule, pod: PodInfo | None, snapshot: Snapshot) -> SignalColumn | None:
    """Return the rule's signal as it is for this Pod, None where it never had an answer.

    Without a Pod only where the signal does not depend on it (`Signal.depends_on_pod`).
    """
    column = snapshot.signals.columns.get(rule.signal)
    if column is None:
        built_in = read_signal(rule, snapshot)
        return None if built_in is None else built_in_column(built_in, pod, snapshot)
    if column.signal.by in KEYED and pod is not None:
        column = keyed_column(rule, pod, column, snapshot)
    elif column.signal.inflight is not None:
        column = with_inflight(column, snapshot)
    return column if rule.max_age_s <= 0.0 else _seen(rule, column)


def is_steady(rule: Rule, snapshot: Snapshot) -> bool:
    """Whether what the rule reads is the same for all Pods, and for as long as `SignalTable.edition` stays.

    Not where it counts Pods, where it reads what is the Pod's own, and where samples grow too old for it one by one.
    """
    column = snapshot.signals.columns.get(rule.signal)
    if rule.label_match is not None or column is None or (rule.max_age_s > 0.0 and not column.is_evenly_fresh):
        return False
    return column.signal.inflight is None and column.signal.by not in KEYED


def _seen(rule: Rule, column: SignalColumn) -> SignalColumn:
    """Return the column as it is for a rule whose samples may end earlier than the signal's: alike while fresh."""
    return column if rule.max_age_s <= 0.0 or column.is_evenly_fresh else column.within(rule.max_age_s)


def read_tripped(rule: Rule, pod: PodInfo | None, snapshot: Snapshot) -> BoolArray | None:
    """Return bool (n_rows,), True where the value of a node is beyond the rule's limits; never for lack of a sample.

    Besides the bits that samples have set: where a sample and what is in flight are above `max` together. None where
    nothing is refused: without an answer in force, and for a rule without a filter.
    """
    if rule.label_match is not None or read_signal(rule, snapshot) is not None:
        return refused_now(rule, pod, snapshot)
    tripped, column = read_bits(rule, pod, snapshot), snapshot.signals.columns.get(rule.signal)
    if tripped is None or column is None or column.signal.inflight is None:
        return tripped
    if rule.filter is None or rule.filter.max is None:
        return tripped
    # Comparisons with NaN are False: a node without a sample is not tripped.
    return tripped | (_seen(rule, with_inflight(column, snapshot)).expected > rule.filter.max)


def read_bits(rule: Rule, pod: PodInfo | None, snapshot: Snapshot) -> BoolArray | None:
    """Return bool (n_rows,), where samples alone have tripped the rule; None without an answer in force."""
    column = snapshot.signals.columns.get(rule.signal)
    seen = None if column is None else _seen(rule, column)
    # Bits are of samples, or held: they stand as they are until all samples are too old.
    if column is None or seen is None or seen.freshness is Freshness.ABSENT:
        return None
    keyed = keyed_signal(rule, snapshot)
    if keyed is not None:
        return None if pod is None else keyed_tripped(rule, keyed, pod, snapshot)
    tripped = snapshot.signals.tripped.get(rule.name)
    if tripped is None or seen.values is column.values:
        return tripped
    return tripped & (~np.isnan(seen.values) | np.isnan(column.values))


def read_unmeasured(rule: Rule, pod: PodInfo | None, snapshot: Snapshot) -> BoolArray | None:
    """Return bool (n_rows,), True where the rule refuses a node for the lack of a sample; None: nowhere.

    Without a Pod only of a steady rule.
    """
    if rule.filter is None or rule.filter.missing is not FilterMissing.REJECT:
        return None
    keyed = keyed_signal(rule, snapshot)
    if keyed is not None and pod is not None and not is_due_a_sample(rule, keyed, pod, snapshot):
        return None
    column = read_column(rule, pod, snapshot)
    return np.ones(snapshot.nodes.n_rows, dtype=np.bool_) if column is None else ~column.has_sample


def is_valve_open(rule: Rule, pod: PodInfo | None, snapshot: Snapshot) -> bool:
    """Whether the rule only scores this Pod for now.

    What a signal with two keys refuses depends on the Pod, and so does whether it is more than the valve allows.
    Without a Pod only of a steady rule.
    """
    if rule.name in snapshot.signals.open_valves:
        return True
    if rule.filter is None or rule.filter.valve is None or keyed_signal(rule, snapshot) is None:
        return False
    verdicts = (read_tripped(rule, pod, snapshot), read_unmeasured(rule, pod, snapshot))
    refused = [verdict & snapshot.nodes.alive for verdict in verdicts if verdict is not None]
    n_refused = int(np.count_nonzero(np.logical_or.reduce(refused))) if refused else 0
    return n_refused > rule.filter.valve * snapshot.nodes.n_alive
