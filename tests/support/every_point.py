"""EveryPoint: a plugin that stands at all extension points and writes down each call.

The file named by the variable EVERY_POINT_LOG gets one JSON object per call. It is opened when the
plugin is made, because the deciding thread must open nothing. A Pod's label `at` makes a point misbehave for that Pod:
`at: permit-refuses`, `permit-waits`, `reserve-refuses`, `prebind-refuses`, `prebind-raises`, `bind-raises`,
`postbind-raises`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from scheduler.framework.diagnosis import Diagnosis
from scheduler.framework.instructions import Bind, Instruction, PatchPod
from scheduler.framework.plugin import (
    BindPlugin,
    DryRun,
    FilterPlugin,
    PermitPlugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)
from scheduler.framework.queued import QueuedEntity
from scheduler.framework.status import Code, PostFilterResult, PreFilterResult, Rejection, ScoreTerm, Status, Wait
from scheduler.model.arrays import FloatArray, IntArray, Rows
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot

LOG = "EVERY_POINT_LOG"


class _Args(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """`wait_s`: how long a Pod waits at Permit that is told to."""

    wait_s: float = 0.2


class EveryPoint(
    PreEnqueuePlugin,
    QueueSortPlugin,
    PreFilterPlugin,
    FilterPlugin,
    PostFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    ReservePlugin,
    PermitPlugin,
    PreBindPlugin,
    BindPlugin,
    PostBindPlugin,
):
    Args = _Args

    def __init__(self, args: _Args, write: Callable[[str], object] | None = None) -> None:
        self._args = args
        self._write = write or Path(os.environ[LOG]).open("a", buffering=1).write

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        self._note("PreEnqueue", pod)
        return None

    def sort_key(self, entity: QueuedEntity) -> tuple[int, float]:
        self._note("QueueSort", entity.pod)
        return (-entity.priority, entity.timestamp_s)

    def prefilter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status:
        self._note("PreFilter", pod, n_nodes=snapshot.nodes.n_alive)
        return PreFilterResult(f"state of {pod.name}")

    def filter(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        refused = np.array([name.startswith("refused") for name in snapshot.nodes.names])[rows]
        self._note("Filter", pod, state=state, n_rows=len(refused))
        return [Rejection(refused, Code.UNSCHEDULABLE, "node(s) refused at every point")]

    def postfilter(
        self, state: Any, pod: PodInfo, snapshot: Snapshot, diagnosis: Diagnosis, dry_run: DryRun
    ) -> PostFilterResult:
        self._note("PostFilter", pod, state=state, refused=diagnosis.message())
        return PostFilterResult(Status(Code.UNSCHEDULABLE, ("no way out.",)))

    def prescore(self, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> object | Status:
        self._note("PreScore", pod, n_rows=len(snapshot.nodes.name_hash[rows]))
        return f"score state of {pod.name}"

    def score(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[ScoreTerm]:
        names = np.array(snapshot.nodes.names)[rows]
        self._note("Score", pod, state=state, n_rows=len(names))
        return [ScoreTerm("EveryPoint", np.array([1_000 if name == "best" else 0 for name in names]))]

    def normalize(self, term: ScoreTerm) -> IntArray | FloatArray:
        self._note("NormalizeScore", None, highest=int(term.values.max()))
        return term.values // 10

    def reserve(self, state: Any, pod: PodInfo, node_name: str) -> Status | None:
        self._note("Reserve", pod, state=state, node=node_name)
        return self._refusal(pod, "reserve")

    def unreserve(self, state: Any, pod: PodInfo, node_name: str) -> None:
        self._note("Unreserve", pod, state=state, node=node_name)

    def permit(self, state: Any, pod: PodInfo, node_name: str) -> Status | Wait | None:
        self._note("Permit", pod, state=state, node=node_name)
        if pod.labels.get("at") == "permit-waits":
            return Wait(self._args.wait_s, (PatchPod.of(pod, {"every-point": node_name}),))
        return self._refusal(pod, "permit")

    def reconsider(self, state: Any, pod: PodInfo, node_name: str) -> Status | Wait | None:
        answer = pod.labels.get("permit", "")
        self._note("Reconsider", pod, state=state, node=node_name, answer=answer)
        if answer == "refused":
            return Status(Code.UNSCHEDULABLE, ("permit was refused",))
        return None if answer == "granted" else Wait(0.0)

    def prebind(self, state: Any, pod: PodInfo, node_name: str) -> Status | Sequence[PatchPod] | None:
        self._note("PreBind", pod, state=state, node=node_name)
        return self._refusal(pod, "prebind") or [PatchPod.of(pod, {"every-point-prebind": node_name})]

    def bind(self, state: Any, pod: PodInfo, node_name: str) -> Bind | PatchPod | None:
        self._note("Bind", pod, state=state, node=node_name)
        self._refusal(pod, "bind")
        return Bind.of(pod, node_name)

    def postbind(self, state: Any, pod: PodInfo, node_name: str) -> Sequence[Instruction]:
        self._note("PostBind", pod, state=state, node=node_name)
        self._refusal(pod, "postbind")
        return [PatchPod.of(pod, {"every-point-postbind": node_name})]

    def _refusal(self, pod: PodInfo, point: str) -> Status | None:
        wanted = pod.labels.get("at")
        if wanted == f"{point}-raises":
            raise RuntimeError(f"{point} raises")
        return Status(Code.UNSCHEDULABLE, (f"{point} refuses",)) if wanted == f"{point}-refuses" else None

    def _note(self, point: str, pod: PodInfo | None, **details: object) -> None:
        name = {} if pod is None else {"pod": pod.name}
        self._write(json.dumps({"point": point, **name, **details}) + "\n")
