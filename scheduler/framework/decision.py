"""Decision: what `decide` returns. A value; carrying it out is the loop's business."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.framework.diagnosis import Diagnosis
from scheduler.model.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class WeighedTerm:
    """One plugin's or rule's part of the total.

    raw, values
        (n_feasible,), before and after normalisation; `values` lie in 0..100.
    contribution
        int64 (n_feasible,) thousandths: rint(1000 · weight · value).
    """

    plugin: str
    name: str
    weight: float
    raw: IntArray | FloatArray
    values: IntArray | FloatArray
    contribution: IntArray


@dataclass(frozen=True, slots=True)
class Decision:
    """Where the Pod goes, or why nowhere.

    row, node_name
        The chosen node; -1 and "" where none is feasible.
    feasible
        int64 rows that passed every filter, ascending.
    terms
        Empty where nothing was scored: no node, a single one, or the nominated one.
    total
        int64 (n_feasible,) thousandths, the exact sum of the contributions.
    best
        int64 rows that share the highest total; the seed chose among them.
    nominated
        The Pod's nominated node was taken without looking at others.
    """

    row: int
    node_name: str
    feasible: IntArray
    diagnosis: Diagnosis
    terms: tuple[WeighedTerm, ...]
    total: IntArray
    best: IntArray
    seed: int
    nominated: bool = False

    @property
    def is_scheduled(self) -> bool:
        return self.row >= 0
