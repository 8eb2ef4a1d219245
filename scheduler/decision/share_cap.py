"""Share cap: how much of a decision one rule may have, whatever its weight says.

    w' = min(w, s / (1 - s) · others)

w is the written weight, s the rule's `max_share`, and `others` what stands against it: the weights in the profile of
all score plugins but those whose terms bring weights of their own, and the written weights of all other terms that
bring one. So w' / (w' + others) is at most s.

`others` goes by the profile, not by who scores this Pod, and by written weights, not by capped ones. So the outcome
does not depend on the order of rules, nor on a plugin that has nothing to say of a Pod, and it needs no iteration.
Where nothing stands against a term there is no share to keep to, and it weighs what is written; so it does with s = 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def capped_weights(fixed: float, weights: Sequence[float], max_shares: Sequence[float | None]) -> list[float]:
    """Return the effective weight of each term.

    Parameters
    ----------
    fixed
        The sum of the score plugins' weights, as `Profile.fixed_weight`.
    weights, max_shares
        Of the terms that bring a weight: as written, and the share above 0 and up to 1; None: no cap.
    """
    # An exact sum, so that no order of the rules shows in the last bit.
    whole = math.fsum((fixed, *weights))
    return [_capped(weight, share, whole - weight) for weight, share in zip(weights, max_shares, strict=True)]


def _capped(weight: float, max_share: float | None, others: float) -> float:
    if max_share is None or max_share >= 1.0 or others <= 0.0:
        return weight
    return min(weight, max_share / (1.0 - max_share) * others)
