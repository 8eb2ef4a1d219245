"""Whether an answer covers what the last good one covered."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Final

MIN_SHARE: Final = 0.8


@dataclass(frozen=True, slots=True)
class Coverage:
    """What the last good answer of a signal covered, and when it was evaluated, in monotonic seconds."""

    keys: frozenset[str] = frozenset()
    evaluated_at_s: float = float("-inf")

    def is_thin(self, covered: Set[str], known: Set[str] | None, now_s: float, max_age_s: float) -> bool:
        """Whether an answer lacks more than a fifth of what was covered and still exists.

        After `max_age_s` without a good answer nothing of it is in force any more, and the next answer sets the
        measure: an exporter may be taken off for good.
        """
        if now_s - self.evaluated_at_s > max_age_s or self.keys is covered or self.keys <= covered:
            return False
        expected = self.keys if known is None else self.keys & known
        return len(expected & covered) < MIN_SHARE * len(expected)
