from __future__ import annotations

import tracemalloc

import numpy as np

from scheduler.decision.decide import decide
from scheduler.decision.record import DecisionRecord, record_of, size_of
from scheduler.framework.profile import Profile
from scheduler.loop.record_ring import MOST_BYTES, RecordRing
from scheduler.model.pods import PodInfo
from scheduler.model.rules import Curve, Rule, RuleScore, RuleSet, Signal
from scheduler.model.signals import SignalColumn, SignalTable
from scheduler.model.snapshot import Snapshot
from tests.builders import default_profile, make_node, make_pod, snapshot_of

N_RULES = 50


def ruled() -> SignalTable:
    signals = {f"s{i}": Signal(f"s{i}", "up") for i in range(N_RULES)}
    rules = [Rule(f"r{i}", f"s{i}", score=RuleScore(Curve((0.0, 1.0), (100.0, 0.0)))) for i in range(N_RULES)]
    columns = {name: SignalColumn(signal, np.full(50, 0.5), 5.0) for name, signal in signals.items()}
    return SignalTable(RuleSet(signals, tuple(rules)), columns)


def decided(pod: PodInfo, snapshot: Snapshot, profile: Profile) -> DecisionRecord:
    return record_of(pod, snapshot, decide(pod, snapshot, profile), "vane", 0.0)


def test_records_of_many_rules_are_bounded_in_bytes() -> None:
    snapshot = snapshot_of([make_node(f"n{i}") for i in range(50)], (), ruled())
    profile, ring = default_profile(), RecordRing(most_bytes=2**20)
    ring.add(decided(make_pod("first"), snapshot, profile))
    tracemalloc.start()
    try:
        for i in range(200):
            ring.add(decided(make_pod(f"p{i}", cpu="1"), snapshot, profile))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert kept < 2**20 + 200_000
    assert 15 < len(ring) < 40
    assert ring.n_added == 201
    assert [number for number, _ in ring.after(0, 3)] == [202 - len(ring), 203 - len(ring), 204 - len(ring)]


def test_ten_thousand_ordinary_records_have_room() -> None:
    snapshot = snapshot_of([make_node(f"n{i}") for i in range(50)])
    record = decided(make_pod(cpu="1"), snapshot, default_profile())
    assert 10_000 * size_of(record) < MOST_BYTES


def test_a_pod_refused_for_thousands_of_names_leaves_a_small_record() -> None:
    snapshot = snapshot_of([make_node(f"n{i}") for i in range(50)])
    names = {f"example.com/x{i:05d}": "1" for i in range(2_000)}
    decided(make_pod(extended=names), snapshot, default_profile())  # what is kept of names has a bound of its own
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        record = decided(make_pod(extended=names), snapshot, default_profile())
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert after - before < 80_000
    assert record.refusals[0].reason == "Insufficient example.com/x00000"
    assert (len(record.refusals), record.refusals_left_out) == (100, 900)
    assert record.message.startswith("0/50 nodes are available: 50 Insufficient example.com/x00000, 50 Insufficient")
