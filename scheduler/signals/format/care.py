"""How a rule is kept from doing harm: at most a share of a decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from scheduler.model.rules import DEFAULT_MAX_SHARE
from scheduler.signals.format.fields import Fields
from scheduler.signals.format.values import read_share

CARE: Final = ("max_share",)
"""The fields of a rule that are read here."""


@dataclass(frozen=True, slots=True)
class Care:
    """As the fields of `Rule`."""

    max_share: float


def read_care(fields: Fields) -> Care:
    max_share = read_share(fields.get("max_share"), fields.scope.inner("max_share"), "the sum of all weights")
    if "max_share" in fields and "score" not in fields:
        fields.scope.problem(
            fields.at("max_share"), "a share cap without a score does nothing. Write a `score:`, or drop the line"
        )
    return Care(DEFAULT_MAX_SHARE if max_share is None else max_share)
