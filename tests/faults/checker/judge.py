"""All invariants at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.faults.checker import placements, processes, words
from tests.faults.checker.evidence import Evidence

Invariant = Callable[[Evidence], list[str]]


def memory_and_descriptors(evidence: Evidence) -> list[str]:
    """No process takes more at the end than once it had settled."""
    return processes.what_grew(evidence.samples, evidence.allowance.flat)


INVARIANTS: Mapping[str, Invariant] = {
    "no Pod bound twice": placements.bound_twice,
    "Pods bound by Vane alone": placements.bound_by_others,
    "no Pod bound by a former leader": placements.bound_past_the_lease,
    "no Pod bound where none can be": placements.bound_where_none_can_be,
    "no Pod forgotten": placements.forgotten,
    "no spec changed": placements.specs_changed,
    "Events truthful": words.untrue_events,
    "nothing written out of turn": words.written_out_of_turn,
    "memory and descriptors flat": memory_and_descriptors,
}


@dataclass(frozen=True)
class Verdict:
    """What broke, by invariant, and what only looked so."""

    violations: Mapping[str, list[str]]
    told_apart: list[str]

    @property
    def is_clean(self) -> bool:
        return not self.violations

    def __str__(self) -> str:
        lines = [f"{name}: {one}" for name, found in self.violations.items() for one in found[:5]]
        return "\n".join(lines) or "clean"


def judge(evidence: Evidence) -> Verdict:
    """Hold the evidence against all invariants."""
    found = {name: invariant(evidence) for name, invariant in INVARIANTS.items()}
    return Verdict({name: what for name, what in found.items() if what}, evidence.told_apart)
