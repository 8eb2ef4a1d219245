"""What a rule reads for one Pod: the column of its signal, and which nodes its filter refuses for their value.

The one place where kinds of signals differ for whoever applies, records or shows a rule. Pure: the snapshot and the
Pod say it all.
"""

from __future__ import annotations

from scheduler.framework.built_in import built_in_column, read_signal, refused_now
from scheduler.framework.inflight_column import with_inflight
from scheduler.model.arrays import BoolArray
from scheduler.model.pods import PodInfo
from scheduler.model.rules import Rule
from scheduler.model.signals import Freshness, SignalColumn
from scheduler.model.snapshot import Snapshot


def read_column(rule: Rule, pod: PodInfo | None, snapshot: Snapshot) -> SignalColumn | None:
    """Return the rule's signal as it is for this Pod, None where it never had an answer.

    Without a Pod only where the signal does not depend on it (`Signal.depends_on_pod`).
    """
    built_in = read_signal(rule, snapshot)
    if built_in is not None:
        return built_in_column(built_in, pod, snapshot)
    column = snapshot.signals.columns.get(rule.signal)
    return None if column is None else with_inflight(column, snapshot)


def read_tripped(rule: Rule, pod: PodInfo | None, snapshot: Snapshot) -> BoolArray | None:
    """Return bool (n_rows,), True where the value of a node is beyond the rule's limits; never for lack of a sample.

    Besides the bits that samples have set: where a sample and what is in flight are above `max` together. None where
    nothing is refused: without an answer in force, and for a rule without a filter.
    """
    if rule.label_match is not None or read_signal(rule, snapshot) is not None:
        return refused_now(rule, pod, snapshot)
    column = snapshot.signals.columns.get(rule.signal)
    # A node without a sample is never tripped, so the bits stand as they are until all samples are too old.
    if column is None or column.freshness is Freshness.ABSENT:
        return None
    tripped = snapshot.signals.tripped.get(rule.name)
    if tripped is None or column.signal.inflight is None or rule.filter is None or rule.filter.max is None:
        return tripped
    # Comparisons with NaN are False: a node without a sample is not tripped.
    return tripped | (with_inflight(column, snapshot).expected > rule.filter.max)
