"""LabelScore: prefers nodes by the number in one of their labels, as a price. The example in columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.framework.args import PluginArgs
from scheduler.framework.plugin import MAX_NODE_SCORE, ScorePlugin
from scheduler.framework.status import ScoreTerm
from scheduler.model.arrays import Rows
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot


class LabelScoreArgs(PluginArgs, frozen=True):
    label: str
    worst: float
    best: float

    def __post_init__(self) -> None:
        if not np.isfinite(self.best - self.worst) or self.best == self.worst:
            raise ValueError(f"worst and best: got {self.worst:g} and {self.best:g}. Write two different numbers")


class LabelScore(ScorePlugin):
    """Gives `worst` 0, `best` 100, and what lies between its share; a node without a number gets 0."""

    Args = LabelScoreArgs

    def __init__(self, args: LabelScoreArgs) -> None:
        self._args = args

    def score(self, state: object, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[ScoreTerm]:
        args, nodes = self._args, snapshot.nodes
        codes = nodes.label_codes(args.label)
        if codes is None:
            return ()
        # One number for each value that there is; a node without the label has code -1, which is the last.
        numbers = np.array([*map(_number, nodes.label_values(args.label)), np.nan])
        shares = np.clip((numbers - args.worst) / (args.best - args.worst), 0.0, 1.0)
        return (ScoreTerm(self.name, MAX_NODE_SCORE * np.nan_to_num(shares)[codes[rows]]),)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return np.nan
    return value if abs(value) < 1e15 else np.nan
