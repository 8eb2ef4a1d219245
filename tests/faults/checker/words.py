"""The invariants of what Vane writes besides: Events, and nothing it has no business to write."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from tests.faults.checker.evidence import Evidence, called
from tests.faults.checker.history import EVENT, NODE, POD, Bound, Change
from tests.faults.checker.requests import MAY_WRITE, USER

_ASSIGNED = re.compile(r"^Successfully assigned (\S+)/(\S+) to (\S+)$")
_AVAILABLE = re.compile(r"^0/(\d+) nodes are available")


def untrue_events(evidence: Evidence) -> list[str]:
    """Each Event says what was so.

    Scheduled: bound to that node before. FailedScheduling: not bound long before, and there were so many nodes; an
    Event that becomes a series keeps the words of its first time. Preempted: deleted.
    """
    bind_of = {bind.change.uid: bind for bind in evidence.binds}
    told: Counter[str] = Counter()
    told_before: set[tuple[str, str]] = set()
    found = []
    for change in evidence.changes:
        if (
            change.kind != EVENT
            or change.is_gone
            or change.content.get("reportingComponent", "").split("/")[0] != "vane"
        ):
            continue
        uid, reason = change.content["involvedObject"].get("uid", ""), change.content["reason"]
        said = f"{reason} of {change.content['involvedObject'].get('name')}: {change.content['message']!r}"
        if reason == "Scheduled":
            told[uid] += 1
            found += [f"{said}, {problem}" for problem in _untrue_assignment(change, bind_of.get(uid), told[uid])]
        elif reason == "FailedScheduling":
            is_repeated = (change.name, change.content["message"]) in told_before
            told_before.add((change.name, change.content["message"]))
            untrue = _untrue_refusal(evidence, change, bind_of.get(uid), is_repeated)
            found += [f"{said}, {problem}" for problem in untrue]
        elif reason == "Preempted" and not _is_deleted(evidence, uid):
            found.append(f"{said}, which was not deleted")
    return found


def _untrue_assignment(change: Change, bind: Bound | None, n_told: int) -> Iterator[str]:
    said = _ASSIGNED.match(change.content["message"])
    if said is None:
        yield "which are not kube-scheduler's words"
    elif bind is None or bind.change.revision > change.revision:
        yield "which it was not then"
    elif said[3] != bind.node_name:
        yield f"which is on {bind.node_name}"
    if n_told > 1:
        yield "for the second time"


def _untrue_refusal(evidence: Evidence, change: Change, bind: Bound | None, is_repeated: bool) -> Iterator[str]:
    late_s = evidence.allowance.late_s
    if bind is not None and change.revision > bind.change.revision and change.seen_s > bind.change.seen_s + late_s:
        yield f"{change.seen_s - bind.change.seen_s:.1f} s after it was bound"
    said = _AVAILABLE.match(change.content["message"])
    counts = _numbers_of_nodes(evidence, change, late_s + evidence.allowance.stale_s)
    if said is not None and not is_repeated and int(said[1]) not in counts:
        yield f"where there were {sorted(counts)} nodes"


def _numbers_of_nodes(evidence: Evidence, until: Change, window_s: float) -> set[int]:
    """Return how many nodes there were at any time within the window before."""
    names: set[str] = set()
    counts: set[int] = set()
    for change in evidence.changes:
        if change.revision > until.revision:
            break
        if change.kind != NODE:
            continue
        if change.seen_s < until.seen_s - window_s:
            counts.clear()
        (names.discard if change.is_gone else names.add)(change.name)
        counts.add(len(names))
    return counts


def _is_deleted(evidence: Evidence, uid: str) -> bool:
    return any(
        change.kind == POD
        and change.uid == uid
        and (change.is_gone or change.content["metadata"].get("deletionTimestamp"))
        for change in evidence.changes
    )


def written_out_of_turn(evidence: Evidence) -> list[str]:
    """Vane writes binds, Events, conditions and its Lease, deletes what it preempts, and nothing else."""
    written = Counter(
        (one.verb, one.resource)
        for one in evidence.asked
        if one.user == USER and not one.is_read and (one.verb, one.resource) not in MAY_WRITE
    )
    return [f"{verb} of {resource}, {n} times" for (verb, resource), n in written.items()]


def names_forgotten_events(evidence: Evidence) -> list[str]:
    """Return the bound Pods of which no Event says so; Events are best effort, so this is told and breaks nothing."""
    told = {change.content["involvedObject"].get("uid") for change in evidence.changes if change.kind == EVENT}
    return [called(bind.change) for bind in evidence.binds if bind.change.uid not in told]
