from __future__ import annotations

import random
from typing import Any

import msgspec

from scheduler.cluster.cache import Cache
from scheduler.model.identity import KnownNodes, NodeChanges, NodeIdentity
from tests.builders import node_of


def some_node(name: str, rng: random.Random) -> dict[str, Any]:
    """Return a node that has an address of its own, and another that it may share with others."""
    shared = [{"type": "ExternalIP", "address": f"203.0.113.{rng.randrange(3)}"}]
    own = [{"type": "InternalIP", "address": f"10.0.0.{name}"}]
    return {"metadata": {"name": name}, "status": {"addresses": own + shared * rng.randrange(2)}}


def test_changes_add_up_to_what_all_nodes_say() -> None:
    rng = random.Random(16)
    cache, known, late = Cache(), KnownNodes(), KnownNodes()
    for step in range(200):
        for _ in range(rng.randrange(4)):
            name = str(rng.randrange(12))
            if rng.random() < 0.4:
                cache.remove_node(name)
            else:
                cache.set_node(node_of(some_node(name, rng)))
        changes = cache.name_changes()
        if changes is None:
            continue
        known.apply(changes)
        assert known.identity() == NodeIdentity.of(changes.generation, cache.nodes())
        assert cache.identity() == NodeIdentity(changes.generation, known.identity().names)
        if step == 100:
            late.apply(known.all())
        elif step > 100:
            late.apply(changes)
    assert late.identity() == known.identity()


def test_changes_cross_processes_and_are_small() -> None:
    cache = Cache()
    for i in range(1_000):
        cache.set_node(node_of({"metadata": {"name": f"node-{i}"}}))
    cache.name_changes()
    cache.set_node(node_of({"metadata": {"name": "node-1000"}}))
    changes = cache.name_changes()
    written = msgspec.msgpack.encode(changes)
    assert len(written) < 100
    assert msgspec.msgpack.decode(written, type=NodeChanges) == changes
