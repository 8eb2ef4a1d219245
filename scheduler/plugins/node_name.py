"""NodeName: a Pod that names its node goes there or nowhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.framework.events import Action, EventInterest, Resource
from scheduler.framework.plugin import FilterPlugin, FreedBy, PreFilterPlugin
from scheduler.framework.status import Code, PreFilterResult, Rejection
from scheduler.model.arrays import Rows
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot

REASON = "node(s) didn't match the requested node name"


class NodeName(PreFilterPlugin, FilterPlugin):
    """Restricts the Pod to `spec.nodeName`; the filter itself matters only for a nominated node outside it.

    Source: kube-scheduler v1.37 nodename/node_name.go (behaviour).
    """

    freed_by = FreedBy.NOTHING

    def prefilter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        wanted = pod.pod.spec.node_name
        return PreFilterResult(node_names=frozenset({wanted}) if wanted else None)

    def filter(self, state: object, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        wanted = pod.pod.spec.node_name
        if not wanted:
            return ()
        elsewhere = np.ones(snapshot.nodes.n_rows, dtype=np.bool_)
        row = snapshot.nodes.row_of(wanted)
        if row is not None:
            elsewhere[row] = False
        return (Rejection(elsewhere[rows], Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON),)

    def events(self) -> Sequence[EventInterest]:
        return (EventInterest(Resource.NODE, Action.ADD),)
