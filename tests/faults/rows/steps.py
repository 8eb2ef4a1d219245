"""What rows do again and again: Pods at once, nodes of their own, a wait for another leader, times and shares."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tests.faults.bench import placing
from tests.faults.bench.bench import Bench
from tests.faults.bench.replicas import Replica
from tests.faults.checker.history import POD
from tests.support import manifests
from tests.support.manifests import Json

unix_clock = time.time  # noqa: TID251  # audit logs, watches and proxies are by the wall clock

ROOM = "bench/room"
"""Taint and label of nodes that only a row's own Pods go to."""

_PODS = "/api/v1/namespaces/default/pods"
_LONGEST_S = 60.0


def create(bench: Bench, names: Iterable[str], **shape: Any) -> None:
    """Create Pods of ours at once, of next to nothing unless `shape` (that of `manifests.pod`) says more."""
    given = {"cpu": "1m", "memory": "1Mi", "scheduler_name": "vane", "grace": 0, **shape}
    bench.api.create_pods(manifests.pod(name, **given) for name in names)


def delete(bench: Bench, names: Iterable[str]) -> None:
    """Delete Pods, and wait until they have gone."""
    gone = set(names)
    placing.delete(bench, gone)
    bench.until(lambda: not gone & {pod["metadata"]["name"] for pod in bench.pods()}, _LONGEST_S, "the Pods' deletion")


def wait_placed(bench: Bench, names: Collection[str], longest_s: float = _LONGEST_S) -> float:
    """Wait until all have a node; return how long that took, in seconds."""
    begun_s = time.monotonic()
    bench.until(lambda: all(map(bench.placed, names)), longest_s, f"the placement of {len(names)} Pods")
    return time.monotonic() - begun_s


def wait_refused(bench: Bench, names: Collection[str], longest_s: float = _LONGEST_S) -> None:
    """Wait until each has been told that no node takes it."""
    wanted = set(names)

    def are_refused() -> bool:
        return wanted <= {pod["metadata"]["name"] for pod in bench.pods() if refusal(pod)}

    bench.until(are_refused, longest_s, f"the refusal of {len(wanted)} Pods")


def refusal(pod: Json) -> str:
    """Return why a Pod has no node, as its condition says; "" if it does not."""
    conditions = pod["status"].get("conditions", ())
    return next(
        (one["message"] for one in conditions if one["type"] == "PodScheduled" and one["status"] == "False"), ""
    )


def create_room(bench: Bench, name: str, room: str = "", labels: Mapping[str, str] | None = None, **shape: Any) -> None:
    """Create a node for the Pods `in_room` alone; several may share a room."""
    taint = {"key": ROOM, "value": room or name, "effect": "NoSchedule"}
    bench.api.create_node(name, taints=[taint], labels={ROOM: room or name, **(labels or {})}, **shape)


def in_room(room: str) -> Json:
    """Return what a PodSpec needs to go to the nodes of a room, and nowhere else."""
    return {"tolerations": [{"key": ROOM, "value": room, "effect": "NoSchedule"}], "nodeSelector": {ROOM: room}}


def another_leads(bench: Bench, identity: str, longest_s: float = _LONGEST_S) -> None:
    """Wait until another replica than this one holds the Lease."""
    bench.until(lambda: bench.replicas.holder not in ("", identity), longest_s, "another leader")


def wait_ended(bench: Bench, identity: str, longest_s: float = 20.0) -> int:
    """Wait until that process has ended, and return its exit code."""
    found = bench.until(
        lambda: [one for one in bench.replicas.ended if one.identity == identity], longest_s, f"the end of {identity}"
    )
    return found[0].code


def wait_standby(bench: Bench, longest_s: float = 40.0) -> Replica:
    """Wait until one leads and another could, and return the leader."""

    def both() -> Replica | None:
        leader = bench.replicas.leader()
        others = (one for one in bench.replicas.all if one is not leader)
        return leader if leader is not None and any(one.vane.is_ready() for one in others) else None

    leader = bench.until(both, longest_s, "a leader and a standby")
    assert leader is not None
    return leader


def tell_take_overs(bench: Bench, took_s: Sequence[float], at_most_s: float) -> None:
    """Tell how often another came to lead, and after how long."""
    bench.figure("take-overs", len(took_s))
    bench.figure("another leads after, median, s", float(np.median(took_s)))
    bench.figure("another leads after, longest, s", max(took_s), at_most=at_most_s)


def bound_at_s(bench: Bench) -> dict[str, float]:
    """Return when the watch first showed each Pod with a node, in Unix seconds."""
    seen: dict[str, float] = {}
    for change in list(bench.watcher.history.changes):
        if change.kind == POD and not change.is_gone and change.content["spec"].get("nodeName"):
            seen.setdefault(change.name, change.seen_s)
    return seen


def most_within(times_s: Iterable[float], window_s: float = 1.0) -> int:
    """Return the most of the times that lie within any window."""
    ascending = np.sort(np.array(list(times_s)))
    ends = np.searchsorted(ascending, ascending + window_s, side="left")
    return int((ends - np.arange(len(ascending))).max(initial=0))
