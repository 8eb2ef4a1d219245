"""What a rule reads for one Pod: the column of its signal, and which nodes its filter refuses for their value.

The one place where kinds of signals differ for whoever applies, records or shows a rule. Pure: the snapshot and the
Pod say it all.
"""

from __future__ import annotations

from scheduler.model.arrays import BoolArray
from scheduler.model.pods import PodInfo
from scheduler.model.rules import Rule
from scheduler.model.signals import Freshness, SignalColumn
from scheduler.model.snapshot import Snapshot


def read_column(rule: Rule, pod: PodInfo | None, snapshot: Snapshot) -> SignalColumn | None:
    """Return the rule's signal as it is for this Pod, None where it never had an answer.

    Without a Pod only where the signal does not depend on it (`Signal.depends_on_pod`).
    """
    return snapshot.signals.columns.get(rule.signal)


def read_tripped(rule: Rule, pod: PodInfo | None, snapshot: Snapshot) -> BoolArray | None:
    """Return bool (n_rows,), True where the value of a node is beyond the rule's limits; never for lack of a sample.

    None where nothing is refused: without an answer in force, and for a rule without a filter.
    """
    column = snapshot.signals.columns.get(rule.signal)
    # A node without a sample is never tripped, so the bits stand as they are until all samples are too old.
    if column is None or column.freshness is Freshness.ABSENT:
        return None
    return snapshot.signals.tripped.get(rule.name)
