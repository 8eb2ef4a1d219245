"""Hold time: once the verdict on a key has changed, it stays for a while, whatever its samples say.

Times are those of the samples, so that a late or repeated answer neither shortens nor lengthens them.
"""

from __future__ import annotations

import numpy as np

from scheduler.model.arrays import BoolArray, FloatArray
from scheduler.signals.columns.key_memory import Memory, nothing_of
from scheduler.signals.columns.keys import Keys


def hold(
    hold_s: float, wanted: BoolArray, keys: Keys, sampled_at_s: FloatArray, memory: Memory | None
) -> tuple[BoolArray, Memory]:
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
