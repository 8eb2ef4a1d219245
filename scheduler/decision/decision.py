"""Decision: what `decide` returns. A value; carrying it out is the loop's business."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.framework.diagnosis import Diagnosis
from scheduler.model.arrays import FloatArray, IntArray, Rows
from scheduler.model.pods import PodInfo


@dataclass(slots=True)
class WeighedTerm:
    """One plugin's or rule's part of the total, over the feasible nodes. Never written once it is made.

    The columns may reach over all rows (`is_column`), then `rows` picks the feasible ones from them: most terms are
    looked at for a few nodes only, or never. `weight` is the effective one, `written_weight` the one before the cap
    that `max_share` sets; it is None where nothing is capped.
    """

    plugin: str
    name: str
    weight: float
    raw_column: IntArray | FloatArray
    value_column: IntArray | FloatArray
    contribution_column: IntArray
    rows: Rows
    is_column: bool
    written_weight: float
    max_share: float | None

    @property
    def raw(self) -> IntArray | FloatArray:
        """(n_feasible,) before normalisation."""
        return self.raw_column[self.rows]

    @property
    def values(self) -> IntArray | FloatArray:
        """(n_feasible,) after normalisation, in 0..100."""
        return self.value_column[self.rows]

    @property
    def contribution(self) -> IntArray:
        """Thousandths, int64 (n_feasible,): rint(1000 · weight · value)."""
        return self.contribution_column[self.rows]

    def at(self, nodes: IntArray) -> tuple[IntArray | FloatArray, IntArray]:
        """Return (values, contribution) of some feasible nodes, given by their index among them."""
        index = nodes if isinstance(self.rows, slice) else self.rows[nodes]
        return self.value_column[index], self.contribution_column[index]


@dataclass(frozen=True, slots=True)
class Shadow:
    """What a rule that only watches would have done.

    n_refused
        How many of the feasible nodes it would have turned away.
    row
        The node that would have been chosen had it acted, with its filter and its score; -1: none, and None: not
        known, since the Pod's nominated node was taken without looking at others.
    weight
        What its score would have weighed; 0 without one.
    """

    rule: str
    n_refused: int
    refuses_chosen: bool
    row: int | None
    weight: float


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
    nomination
        What PostFilter says of `status.nominatedNodeName`: a node, "" for none, None to leave it.
    victims, preempted_by
        Pods that have to leave that node first, the most important one first, and the PostFilter plugin that says so.
    states
        The plugins' states of PreFilter, by plugin; what they hold of the snapshot is valid as long as that.
    shadows, shadow_fault
        What rules that only watch would have done, where a node was chosen; or the fault of a plugin asked for it.
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
    nomination: str | None = None
    victims: tuple[PodInfo, ...] = ()
    preempted_by: str = ""
    states: Mapping[str, object] = field(default_factory=dict)
    shadows: tuple[Shadow, ...] = ()
    shadow_fault: str = ""

    @property
    def is_scheduled(self) -> bool:
        return self.row >= 0
