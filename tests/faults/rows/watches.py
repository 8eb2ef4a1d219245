"""Watches that lose events, nodes that come back as others, and revisions that are no longer to be had."""

from __future__ import annotations

import random
import uuid
from collections import Counter

from tests.faults.bench.bench import Bench, Setting
from tests.faults.checker.evidence import UNPLACEABLE, Allowance
from tests.faults.checker.requests import USER, most_lists
from tests.faults.proxy.http import Call, Fault, dropping
from tests.faults.row import Row
from tests.faults.rows import steps

_SHARE = 0.05
_EMPTY_AFTER_S = 5.0
_LISTS_WINDOW_S = 30.0
_CUT_S = 2.0
_FLIPPED = tuple(f"flip-{i}" for i in range(4))
_FOR_NONE, _FOR_ONE = "0", "1"


def lost_events(bench: Bench) -> None:
    """A share of what watches bring is lost; a list then shows all."""
    front, tally, drop = bench.servers.front, Counter[str](), dropping(_SHARE, random.Random(3))

    def lines(line: bytes) -> list[bytes]:
        kept = list(drop(line))
        tally["lost"] += not kept
        return kept

    _ask_uncached(bench)
    front.add(Fault(_is_watch_of_objects, lines=lines))
    bench.last(bench.seconds(60.0, 10.0))
    front.mend()
    relisted_s = _expire(bench)
    bench.strict_from_s = relisted_s + _EMPTY_AFTER_S
    bench.measure_recovery()
    bench.last(bench.strict_from_s + bench.seconds(20.0, 8.0) - steps.unix_clock())
    bench.figure("lines of watches lost", tally["lost"], at_least=1)


def nodes_come_back(bench: Bench) -> None:
    """Nodes are deleted, and at once there are others of the same names, with room for none or for one more Pod."""
    for name in _FLIPPED:
        steps.create_room(bench, name, room="flipped", pods=_FOR_NONE)
    _create_flipped(bench, 3 * len(_FLIPPED))
    n_flips = int(bench.seconds(250, 25))
    for i in range(n_flips):
        for name in _FLIPPED:
            _flip(bench, name, _FOR_NONE if i % 2 else _FOR_ONE)
        bench.replicas.tend()
    for name in _FLIPPED:
        _flip(bench, name, _FOR_ONE)
    bench.until(lambda: len(_on_flipped(bench)) >= len(_FLIPPED), 30.0, "a Pod on each node that came back")
    bench.last(1.0)
    n_placed = len(_on_flipped(bench))
    bench.figure("nodes that came back", n_flips * len(_FLIPPED))
    bench.figure("Pods on nodes with room for one", n_placed, at_least=len(_FLIPPED), at_most=len(_FLIPPED))
    bench.measure_recovery()
    steps.delete(bench, [name for name in (pod["metadata"]["name"] for pod in bench.pods()) if name.startswith("flip")])


def _create_flipped(bench: Bench, n_pods: int) -> None:
    names = [f"flipped-{uuid.uuid4().hex[:8]}" for _ in range(n_pods)]
    steps.create(bench, names, labels={UNPLACEABLE: "yes"}, spec=steps.in_room("flipped"))


def _flip(bench: Bench, node: str, n_pods: str) -> None:
    """Replace a node by one with room for so many Pods; those on it make place for as many others."""
    bench.api.delete(f"/api/v1/nodes/{node}")
    gone = [pod for pod, its_node in bench.api.placements("default").items() if its_node == node]
    for pod in gone:
        bench.api.delete_pod(pod, grace=0)
    steps.create_room(bench, node, room="flipped", pods=n_pods)
    _create_flipped(bench, len(gone))


def _on_flipped(bench: Bench) -> list[str]:
    return [name for name, node in bench.api.placements("default").items() if node in _FLIPPED]


def compacted(bench: Bench) -> None:
    """Etcd is compacted while watches are cut: where they would go on there is nothing any more."""
    _ask_uncached(bench)
    bench.last(2.0)
    begun_s, n_times = steps.unix_clock(), int(bench.seconds(4, 1))
    for i in range(n_times):
        at_s = steps.unix_clock()
        _expire(bench)
        if i < n_times - 1:
            bench.last(at_s + _LISTS_WINDOW_S + 4.0 - steps.unix_clock())
    bench.measure_recovery()
    bench.last(5.0)  # each kind has a backoff of its own
    since = [one for one in bench.asked() if one.at_s >= begun_s]
    lists = Counter((one.replica, one.resource) for one in since if _begins_list(one.user, one.verb, one.is_first_page))
    most = max(most_lists(since, _LISTS_WINDOW_S).values(), default=0)
    bench.figure("times that watches expired", n_times)
    bench.figure("kinds listed again", len({resource for _, resource in lists}), at_least=2)
    bench.figure("lists of a resource by one replica in 30 s", most, at_most=1)
    bench.figure("lists of a resource by one replica", max(lists.values(), default=0), at_most=n_times)


def _begins_list(user: str, verb: str, is_first_page: bool) -> bool:
    return user == USER and verb == "list" and is_first_page


def _ask_uncached(bench: Bench) -> None:
    """Let Vane ask the API server without a watch cache alone, whose watches can go no further back than etcd's."""
    balancer = bench.servers.balancer
    balancer.upstreams = [bench.servers.control_plane.second_port]
    balancer.reset_all()
    bench.last(1.0)


def _expire(bench: Bench) -> float:
    """Cut all watches, and compact what came since; return when all replicas had listed Pods again, in Unix seconds."""
    front = bench.servers.front
    cut = front.add(Fault(lambda call: call.is_watch, resets_before=True))
    front.cut_watches()
    bench.last(_CUT_S)
    bench.servers.control_plane.compact()
    mended_s = steps.unix_clock()
    front.faults.remove(cut)

    def listed() -> set[str]:
        return {call.replica for call in front.calls if call.at_s >= mended_s and call.is_list}

    identities = {one.vane.identity for one in bench.replicas.all}
    bench.until(lambda: identities <= listed(), 30.0, "a list by each replica")
    return steps.unix_clock()


def _is_watch_of_objects(call: Call) -> bool:
    return call.is_watch and not call.is_lease


_COMPACTED = Setting(allowance=Allowance(stale_s=10.0, late_s=10.0))

ROWS = (
    Row(
        "F03",
        "events of watches lost, then a list",
        lost_events,
        Setting(allowance=Allowance(stale_s=600.0, late_s=600.0)),
    ),
    Row("F03-nodes", "nodes deleted and added again", nodes_come_back, Setting(node_every_s=3600.0)),
    Row("F07", "compaction while watches are cut", compacted, _COMPACTED, is_full=True),
)
