"""The invariants of where Pods are: each returns what broke it."""

from __future__ import annotations

import dataclasses
from collections import Counter

from tests.e2e import verdict
from tests.faults.checker.evidence import UNPLACEABLE, Evidence, called, is_ours, uid_bound
from tests.faults.checker.history import EVENT, NODE, POD, Bound, Change, World
from tests.faults.checker.requests import USER
from tests.support.manifests import Json


def bound_twice(evidence: Evidence) -> list[str]:
    """A Pod's node never changes, and one request at most was told that it had bound it."""
    found = []
    node_of: dict[str, str] = {}
    for change in evidence.changes:
        node = change.content["spec"].get("nodeName", "") if change.kind == POD else ""
        if node:
            if node_of.setdefault(change.uid, node) != node:
                found.append(f"{called(change)} moved from {node_of[change.uid]} to {node}")
            node_of[change.uid] = node
    done = Counter(uid_bound(event) for event in evidence.bindings if event["responseStatus"]["code"] == 201)
    return found + [f"UID {uid}: {n} requests were told that they bound it" for uid, n in done.items() if n > 1]


def bound_by_others(evidence: Evidence) -> list[str]:
    """Vane binds each Pod of ours, and through the subresource."""
    found = []
    for bind in evidence.binds:
        binding = evidence.binding_of.get(bind.change.uid)
        if not is_ours(bind.pod) or not evidence.audit:
            continue
        if binding is None:
            found.append(f"{called(bind.change)} got {bind.node_name} without a binding")
        elif binding["user"]["username"] != USER:
            found.append(f"{called(bind.change)} was bound by {binding['user']['username']}")
    return found


def bound_past_the_lease(evidence: Evidence) -> list[str]:
    """Who asks for a bind holds the Lease."""
    leases = [event for event in evidence.audit if event.get("objectRef", {}).get("resource") == "leases"]
    held = verdict.leases_held([event for event in leases if event["objectRef"].get("name") == "vane"])
    if not held:
        return []
    found = []
    for bind in verdict.binds_asked([event for event in evidence.bindings if event["user"]["username"] == USER]):
        earliest = dataclasses.replace(bind, at_s=bind.at_s - evidence.allowance.network_s)
        if verdict.past_their_lease([earliest], held) and verdict.past_their_lease([bind], held):
            found.append(str(bind))
    return found


def bound_where_none_can_be(evidence: Evidence) -> list[str]:
    """At the revision before a bind, the node existed, was not cordoned, and had room."""
    found = []
    for bind in evidence.binds:
        problem = _problem(bind) if is_ours(bind.pod) else ""
        if not problem:
            continue
        text = f"{called(bind.change)} to {bind.node_name} at revision {bind.change.revision}: {problem}"
        if _problem(dataclasses.replace(bind, world=_as_known(evidence, bind))):
            found.append(text)
        else:
            evidence.told_apart.append(text)
    return found


def _problem(bind: Bound) -> str:
    node = bind.world.nodes.get(bind.node_name)
    if node is None:
        return "there was no such node"
    if node.content.get("spec", {}).get("unschedulable"):
        return "it was cordoned"
    lacking = bind.world.lacking(bind.pod, bind.node_name)
    return ", ".join(f"{amount:f} {resource} too much" for resource, amount in lacking.items())


def _as_known(evidence: Evidence, bind: Bound) -> World:
    """Return the world without what others took from it less than `stale_s` before the bind was asked for."""
    asked_s = bind.change.seen_s
    if binding := evidence.binding_of.get(bind.change.uid):
        asked_s = min(asked_s, verdict.seconds(binding["requestReceivedTimestamp"]))
    known_s = asked_s - evidence.stale_s(asked_s)
    world = World()
    for change in evidence.changes:
        if change.revision >= bind.change.revision:
            break
        is_others = _is_taken_by_others(change, world) or _is_bound_beside(evidence, change, bind)
        if change.seen_s <= known_s or not is_others:
            world.apply(change)
    return world


def _is_bound_beside(evidence: Evidence, change: Change, bind: Bound) -> bool:
    """Whether a Pod of ours was bound by another replica that leads too."""
    if not evidence.allowance.has_many_leaders or change.kind != POD:
        return False
    one, other = (evidence.binding_of.get(uid) for uid in (change.uid, bind.change.uid))
    return one is not None and other is not None and verdict.replica_of(one) != verdict.replica_of(other)


def _is_taken_by_others(change: Change, world: World) -> bool:
    """Whether a node has less of itself by this, or a Pod that is not ours came to it."""
    if change.kind == EVENT:
        return False
    if change.kind == NODE:
        return change.is_gone or change.name in world.nodes
    return bool(change.content["spec"].get("nodeName")) and not change.is_gone and not is_ours(change.content)


def forgotten(evidence: Evidence) -> list[str]:
    """At the end, no Pod of ours waits that a node could take."""
    world = World()
    for change in evidence.changes:
        world.apply(change)
    waiting = [
        change
        for change in world.pods.values()
        if is_ours(change.content) and not change.content["spec"].get("nodeName")
    ]
    return [f"{called(change)} has no node" for change in waiting if not _waits_rightly(change.content)]


def _waits_rightly(pod: Json) -> bool:
    return bool(
        UNPLACEABLE in pod["metadata"].get("labels", {})
        or pod["spec"].get("schedulingGates")
        or pod["metadata"].get("deletionTimestamp")
    )


def specs_changed(evidence: Evidence) -> list[str]:
    """Nothing of a Pod's spec changes but that it gets a node."""
    found = []
    specs: dict[str, Json] = {}
    for change in evidence.changes:
        if change.kind != POD:
            continue
        spec = {field: value for field, value in change.content["spec"].items() if field != "nodeName"}
        before = specs.setdefault(change.uid, spec)
        fields = sorted(field for field in before.keys() | spec.keys() if before.get(field) != spec.get(field))
        if fields:
            found.append(f"{called(change)} at revision {change.revision}: {', '.join(fields)}")
            specs[change.uid] = spec
    return found
