"""NodeResourcesBalancedAllocation: prefers nodes whose resources the Pod would use up evenly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.framework.intree_args import NodeResourcesBalancedAllocationArgs
from scheduler.framework.plugin import MAX_NODE_SCORE, PreScorePlugin, ScorePlugin
from scheduler.framework.status import SKIP, ScoreTerm, Status
from scheduler.model.arrays import BoolArray, FloatArray, IntArray, Rows
from scheduler.model.pods import PodInfo
from scheduler.model.requests import Amounts
from scheduler.model.snapshot import Snapshot
from scheduler.model.views import NodeView
from scheduler.plugins.shared.resource_strategies import divisor, fills, weights_of


class NodeResourcesBalancedAllocation(PreScorePlugin, ScorePlugin):
    """Scores by how much more even, or less, the used shares of the resources become with the Pod.

    75 is "no change"; a Pod that asks for none of the resources is not scored at all.

    Source: kube-scheduler v1.37 noderesources/balanced_allocation.go (behaviour).
    """

    Args = NodeResourcesBalancedAllocationArgs

    def __init__(self, args: NodeResourcesBalancedAllocationArgs | None = None) -> None:
        self._resources = weights_of((args or NodeResourcesBalancedAllocationArgs()).resources)

    def prescore(self, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Amounts | Status:
        amounts = {name: pod.requests.get(name, 0) for name, _ in self._resources}
        return amounts if any(amounts.values()) else SKIP

    def score(self, state: Amounts, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[ScoreTerm]:
        nodes = snapshot.nodes
        column = snapshot.by_row((self, tuple(state.items())), lambda rows: self._scores(nodes, rows, state))
        return (ScoreTerm(self.name, column, is_column=True),)

    def _scores(self, nodes: NodeView, rows: Rows, amounts: Amounts) -> IntArray:
        parts = list(fills(nodes, rows, self._resources, amounts, nonzero=False))
        n = len(nodes.alive[rows])
        counted = [part.capacity > 0 for part in parts]
        after = _balance([_share(part.requested, part.capacity) for part in parts], counted, n)
        before = _balance([_share(part.used, part.capacity) for part in parts], counted, n)
        half = MAX_NODE_SCORE // 2
        return half + (half + after - before) // 2


def _share(requested: IntArray, capacity: IntArray) -> FloatArray:
    share = np.true_divide(requested, divisor(capacity))
    return np.minimum(share, 1.0, out=share)


def _balance(shares: Sequence[FloatArray], counted: Sequence[BoolArray], n: int) -> IntArray:
    """Return int64 (n,), 0..100: 100 where all used shares are equal.

    Parameters
    ----------
    shares, counted
        Per resource float64 (n,) in 0..1 and bool (n,), False where the node has none of it.
    """
    if not shares:
        return np.full(n, MAX_NODE_SCORE, dtype=np.int64)
    if len(shares) == 2:
        deviation = np.abs(shares[0] - shares[1])
        deviation /= 2
        both = counted[0] & counted[1]
        if not both.all():
            deviation[~both] = 0.0
    else:
        deviation = _deviation(np.stack(shares), np.stack(counted))
    return ((1 - deviation) * MAX_NODE_SCORE).astype(np.int64)


def _deviation(shares: FloatArray, counted: BoolArray) -> FloatArray:
    """Return float64 (n,): the standard deviation over axis 0; of two shares simply half their distance."""
    n_counted = counted.sum(axis=0)
    divisor = np.maximum(n_counted, 1)
    kept = np.where(counted, shares, 0.0)
    mean = kept.sum(axis=0) / divisor
    squares = np.where(counted, (shares - mean) ** 2, 0.0).sum(axis=0)
    highest, lowest = kept.max(axis=0), np.where(counted, shares, np.inf).min(axis=0, initial=np.inf)
    half_distance = (highest - np.where(n_counted == 2, lowest, 0.0)) / 2
    spread = np.where(n_counted == 2, half_distance, np.sqrt(squares / divisor))
    return np.where(n_counted < 2, 0.0, spread)
