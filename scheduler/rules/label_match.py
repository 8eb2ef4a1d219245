"""Label matches: rules without a signal, that compare a label of the Pod with one of the node."""

from __future__ import annotations

import math

import numpy as np

from scheduler.model.arrays import BoolArray
from scheduler.model.memo import Memo
from scheduler.model.pods import PodInfo
from scheduler.model.rules import LabelMatch, Rule
from scheduler.model.signals import Freshness
from scheduler.model.snapshot import Snapshot
from scheduler.rules.reading import Reading, Sample


class LabelMatchReading(Reading):
    """Refuses the nodes whose label does not have the Pod's value; a Pod without a value may go anywhere."""

    depends_on_pod = True
    is_asked = False

    def __init__(self, rule: Rule, kept: Memo, match: LabelMatch) -> None:
        super().__init__(rule, None, kept)
        self.source = match.text
        self._match = match

    def tripped(self, pod: PodInfo | None, snapshot: Snapshot) -> BoolArray | None:
        wanted = None if pod is None else pod.labels.get(self._match.pod_label)
        if wanted is None:
            return None
        nodes, label = snapshot.nodes, self._match.node_label
        codes, code = nodes.label_codes(label), nodes.label_values(label).get(wanted)
        if codes is None or code is None:
            return np.ones(nodes.n_rows, dtype=np.bool_)
        mismatch: BoolArray = codes != code
        return mismatch

    def sample(self, pod: PodInfo, snapshot: Snapshot, row: int) -> Sample:
        return Freshness.FRESH.value, 0.0, math.nan, math.nan, ""
