"""Trip bits: which nodes a rule's filter refuses, with hysteresis, and when its valve opens.

A bit belongs to a key of the signal (a node, a value of a node label, the cluster, a card, …) and changes only with
a sample or a rule, so that it is fixed within a cycle. With a hold time a changed bit stays for a while, whatever the
samples are. The hold time uses the times of the samples, so a late or repeated answer neither shortens nor lengthens
it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduler.model.arrays import BoolArray, FloatArray
from scheduler.model.rules import FilterMissing, RuleFilter
from scheduler.signals.columns.key_memory import KeyMemory, nothing_of
from scheduler.signals.columns.keys import Keys, positions


@dataclass(frozen=True, slots=True)
class Trips:
    """The bits of one rule by index of `keys`, bool (n_keys,), True where the filter refuses.

    `held` is for the hold time: when the bits have changed last.
    """

    keys: Keys
    bits: BoolArray
    held: KeyMemory | None = None

    def along(self, keys: Keys, default: bool = False) -> BoolArray:
        """Return the bits in the order of `keys`, `default` for what was not known."""
        if keys is self.keys or keys == self.keys:
            return self.bits
        return np.append(self.bits, default)[positions(keys, self.keys)]


def advance(limits: RuleFilter, values: FloatArray, before: BoolArray | None) -> BoolArray:
    """Return the bits after new values, bool of the same shape.

    Parameters
    ----------
    values
        In the signal's unit; NaN: no sample, which keeps no trip.
    before
        The bits so far in the same order; None where a rule starts clear, by plain comparison.
    """
    tripped = np.zeros(values.shape, dtype=np.bool_)
    for limit, clear, sign in ((limits.max, limits.max_clear, 1.0), (limits.min, limits.min_clear, -1.0)):
        if limit is None:
            continue
        # Comparisons with NaN are False: a node without a sample is not tripped.
        tripped |= sign * values > sign * limit
        if before is not None and clear is not None:
            tripped |= before & (sign * values > sign * clear)
    return tripped


def hold(
    hold_s: float, wanted: BoolArray, keys: Keys, sampled_at_s: FloatArray, memory: KeyMemory | None
) -> tuple[BoolArray, KeyMemory]:
    """Return the bits in force and when each has changed last.

    A key that has lost its sample, or is not in the answer at all, is held as any other: it is remembered for the hold
    time and goes on where it was.

    Parameters
    ----------
    wanted
        bool (n_keys,), True where the filter would refuse without a hold time.
    sampled_at_s
        float64 (n_keys,), the time of each sample; that of the answer where there is none.
    memory
        Of the last call for this rule: the moments of the last changes, and the bits as 1 and 0.
    """
    known = memory or nothing_of(keys)
    changed_at_s, numbers = known.along(keys)
    before: BoolArray = numbers > 0.0
    bits: BoolArray = np.where(sampled_at_s - changed_at_s >= hold_s, wanted, before)
    changed_at_s = np.where(bits != before, sampled_at_s, changed_at_s)
    newest_s = float(sampled_at_s.max()) if len(sampled_at_s) else -np.inf
    return bits, known.replaced(keys, changed_at_s, bits.astype(np.float64), newest_s - hold_s)


@dataclass(frozen=True, slots=True)
class ValveChange:
    """A valve has opened or closed.

    reason
        `share`: more of the nodes refused than the rule allows; `suspect`: the data itself is in doubt; empty when
        it closes.
    """

    rule: str
    is_open: bool
    reason: str
    n_refused: int
    n_nodes: int


def valve_reason(limits: RuleFilter, n_refused: int, n_nodes: int, *, is_suspect: bool) -> str:
    """Return why a filter only scores for now, empty where it refuses as written."""
    if is_suspect:
        return "suspect"
    if limits.valve is not None and n_refused > limits.valve * n_nodes:
        return "share"
    return ""


def refused(limits: RuleFilter, tripped: BoolArray, has_sample: BoolArray) -> BoolArray:
    """Return bool, True where the filter refuses, be it for the value or for the lack of one."""
    return tripped | ~has_sample if limits.missing is FilterMissing.REJECT else tripped
