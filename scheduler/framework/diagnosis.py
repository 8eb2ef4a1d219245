"""Why each node was turned away, and the text that a Pod's owner reads.

Source: kube-scheduler v1.37 framework/types.go FitError (behaviour).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from scheduler.framework.status import Code, Status
from scheduler.model.arrays import BoolArray

NO_NODES = "no nodes available to schedule pods"

_LONGEST_MESSAGE = 32_000
"""The API's conventions give a condition's message 32,768 characters."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Nodes that one plugin turned away for one reason, among those that still stood when it ran.

    `mask` is bool (n_rows,).
    """

    plugin: str
    code: Code
    reason: str
    mask: BoolArray
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Every refusal of one attempt.

    `prefilter` is set where a PreFilter plugin refused the Pod as a whole, or several whose nodes have none in common;
    `postfilter` is what the PostFilter plugins
    say of why they found no way out.
    """

    n_nodes: int
    refusals: tuple[Refusal, ...] = ()
    prefilter: Status | None = None
    prefilter_plugins: tuple[str, ...] = ()
    postfilter: str = ""

    @property
    def plugins(self) -> frozenset[str]:
        """The plugins that refused at least one node, or the Pod."""
        named = {refusal.plugin for refusal in self.refusals}
        return frozenset(named.union(self.prefilter_plugins))

    @property
    def rules(self) -> frozenset[str]:
        """The rules that refused at least one node."""
        return frozenset(refusal.rule for refusal in self.refusals if refusal.rule)

    def reasons(self) -> Counter[str]:
        """Return reason -> number of nodes; a node with two reasons counts in both."""
        counts: Counter[str] = Counter()
        if self.prefilter is not None:
            counts.update({reason: self.n_nodes for reason in self.prefilter.reasons})
            return counts
        seen, n_nodes = None, 0
        for refusal in self.refusals:
            if refusal.mask is not seen:
                seen, n_nodes = refusal.mask, int(np.count_nonzero(refusal.mask))
            counts[refusal.reason] += n_nodes
        return counts

    def of_row(self, row: int) -> tuple[str, Code, tuple[str, ...]] | None:
        """Return (plugin, code, reasons) of one node, None if it was not turned away."""
        here = [refusal for refusal in self.refusals if refusal.mask[row]]
        if not here:
            return None
        return here[0].plugin, max(refusal.code for refusal in here), tuple(refusal.reason for refusal in here)

    def message(self) -> str:
        """Return the text of the FailedScheduling event and of the PodScheduled condition.

        Sorted as kube-scheduler sorts: as strings, so `10 x` stands before `2 y`.
        """
        if self.n_nodes == 0:
            return NO_NODES
        head = f"0/{self.n_nodes} nodes are available:"
        if self.prefilter is not None:
            text = f"{head} {', '.join(self.prefilter.reasons)}."
        else:
            parts = _fitting(sorted(f"{count} {reason}" for reason, count in self.reasons().items()))
            text = f"{head} {', '.join(parts)}." if parts else head
        return f"{text} {self.postfilter}" if self.postfilter else text


def _fitting(parts: list[str]) -> list[str]:
    """Return the first reasons, as many as a condition's message has room for."""
    length = 0
    for n_kept, part in enumerate(parts):
        length += len(part) + 2
        if n_kept and length > _LONGEST_MESSAGE:
            return [*parts[:n_kept], f"and {len(parts) - n_kept} other reasons"]
    return parts
