"""What the loop does beside deciding: it tells which nodes there are."""

from __future__ import annotations

import threading
from itertools import pairwise

from scheduler.kube.watch_stream import Changed, Replaced
from scheduler.loop.messages import PageAsked, Stop
from scheduler.loop.pages.pages import HealthQuery
from scheduler.loop.scheduler import SchedulingLoop
from scheduler.model.identity import KnownNodes, NodeChanges, NodeIdentity
from tests.builders import make_node
from tests.loop.harness import Harness


def test_names_of_nodes_are_told_by_their_changes_and_at_most_twice_a_second() -> None:
    harness = Harness()
    told: list[tuple[float, NodeChanges]] = []

    def publish(changes: NodeChanges) -> None:
        told.append((harness.now_s, changes))

    harness.loop = SchedulingLoop(harness.inbox, harness.parts, publish, harness.clock)
    harness.list_nodes(*(make_node(f"node-{i}") for i in range(100)))
    harness.list_pods()
    assert told == [], "nothing is told while a message is applied"

    def wait(_: bytes) -> None:
        harness.now_s += 0.02

    def feed() -> None:
        for i in range(100, 200):
            harness.inbox.put(Changed("Node", "ADDED", make_node(f"node-{i}")))
            harness.inbox.put(PageAsked(HealthQuery("livez"), wait, harness.page_faults.append))
            harness.inbox.put(Replaced("Service", []))  # ends the turn, for it has lasted 20 ms
        harness.inbox.put(Stop(1, "enough"))

    feeder = threading.Thread(target=feed)
    feeder.start()
    harness.loop.run()
    feeder.join()
    harness.loop.announce_nodes()

    assert len(told[0][1].named) == 100
    assert sum(len(changes.named) for _, changes in told) == 200, "each node is told of once"
    assert all(after_s - before_s >= 0.5 for (before_s, _), (after_s, _) in pairwise(told[:-1]))
    assert len(told) <= 6
    known = KnownNodes()
    for _, changes in told:
        known.apply(changes)
    assert known.identity() == NodeIdentity.of(told[-1][1].generation, harness.world.cache.nodes())
