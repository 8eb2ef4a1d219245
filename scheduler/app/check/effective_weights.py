"""What rules weigh in a decision: beside each other, beside a profile's plugins, and under their share cap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scheduler.decision.share_cap import capped_weights
from scheduler.model.rules import Mode, Rule, WeightSignal


@dataclass(frozen=True, slots=True)
class EffectiveWeight:
    """The weight of one rule.

    written, effective
        0..100 as the rule has it, and what the share cap leaves of it.
    share
        Of all that scores beside it, 0..1.
    """

    written: float
    effective: float
    share: float

    @property
    def is_capped(self) -> bool:
        return self.effective < self.written


def effective_weights(
    rules: Sequence[Rule], fixed: float, current: Mapping[str, float] | None = None
) -> dict[str, EffectiveWeight]:
    """Return the weights by rule, for a Pod that all of them concern; rules that score nothing are left out.

    Parameters
    ----------
    fixed
        The sum of the weights of the profile's score plugins, as `Profile.fixed_weight`.
    current
        What the rules weigh now; without it, a weight that a signal sets is what it is without a sample.
    """
    scoring = [rule for rule in rules if rule.score is not None and rule.mode is Mode.ENFORCE]
    written = [_without_sample(rule) if current is None else current[rule.name] for rule in scoring]
    effective = capped_weights(fixed, written, [rule.max_share for rule in scoring])
    whole = fixed + sum(written)
    return {
        rule.name: EffectiveWeight(weight, counts, _share(counts, whole - weight))
        for rule, weight, counts in zip(scoring, written, effective, strict=True)
    }


def _without_sample(rule: Rule) -> float:
    return rule.weight.missing if isinstance(rule.weight, WeightSignal) else rule.weight


def _share(weight: float, others: float) -> float:
    return weight / (weight + others) if weight > 0.0 else 0.0
