from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scheduler.decision.decide import decide
from scheduler.decision.record import BEST_NODES, record_of
from scheduler.framework.profile import Profile
from scheduler.model.keyed import KeyedColumn
from scheduler.model.rules import (
    BuiltIn,
    BuiltInKind,
    ByKind,
    Calls,
    Curve,
    PairKey,
    Rule,
    RuleFilter,
    RuleScore,
    RuleSet,
    Signal,
)
from scheduler.model.signals import SignalColumn, SignalTable
from scheduler.model.snapshot import Snapshot
from scheduler.model.state import ClusterState
from scheduler.plugins import default_chain
from scheduler.rules.compiled import indexes_for
from tests.builders import default_profile, make_node, make_pod, snapshot_of


@given(cpus=st.lists(st.integers(1, 64), min_size=1, max_size=60))
def test_a_record_keeps_the_best_nodes_in_order(cpus: list[int]) -> None:
    snapshot = snapshot_of(make_node(f"n{i}", cpu=cpu) for i, cpu in enumerate(cpus))
    pod = make_pod(cpu="1")
    decision = decide(pod, snapshot, default_profile())
    record = record_of(pod, snapshot, decision, "vane", 0.0)

    highest = np.sort(decision.total)[::-1][:BEST_NODES]
    assert record.total.tolist() == highest.tolist()
    assert record.best_nodes[0] == decision.node_name
    assert len(set(record.best_nodes)) == min(len(cpus), BEST_NODES)
    by_name = {
        snapshot.nodes.names[row]: int(total) for row, total in zip(decision.feasible, decision.total, strict=True)
    }
    assert [by_name[name] for name in record.best_nodes] == record.total.tolist()


def test_a_rule_is_recorded_with_the_age_of_the_chosen_nodes_own_sample() -> None:
    cpu = Signal("cpu", "cpu", interval_s=15.0, max_age_s=60.0)
    rule = Rule("idle", "cpu", score=RuleScore(Curve((0.0, 1.0), (100.0, 0.0))))
    column = SignalColumn(cpu, np.array([0.5, 0.5]), 5.0, row_lag_s=np.array([0.0, 40.0]))
    table = SignalTable(RuleSet({"cpu": cpu}, (rule,)), {"cpu": column})
    snapshot = snapshot_of([make_node("old", cpu=1), make_node("lagging", cpu=4)], (), table)
    pod = make_pod(cpu="2")
    record = record_of(pod, snapshot, decide(pod, snapshot, default_profile()), "vane", 0.0)

    assert record.best_nodes == ("lagging",)
    assert [(use.freshness, use.age_s) for use in record.rules] == [("fading", 45.0)]


def test_rules_are_recorded_where_no_plugin_reads_them() -> None:
    readers = ("SignalFilter", "SignalScore", "InterPodAffinity", "PodTopologySpread")
    profile = Profile.build("bare", [one for one in default_chain() if one.plugin.name not in readers])
    count = Signal("alike", "", built_in=BuiltIn(BuiltInKind.COUNT, same=("app",)))
    way = Signal("way", "rtt", by=ByKind.PAIR, label="zone", pair=PairKey("from", "to"))
    rules = (
        Rule("few", "alike", filter=RuleFilter(max=1.0)),
        Rule("near", "way", filter=RuleFilter(max=1.0), calls=Calls({"app": "db"})),
    )
    nothing = np.zeros(0, dtype=np.int64)
    measured = KeyedColumn(
        {}, np.zeros(1, dtype=np.int64), nothing, np.zeros(0), nothing.astype(np.int32), 0, np.array([-1])
    )
    table = SignalTable(
        RuleSet({"alike": count, "way": way}, rules),
        {"way": SignalColumn(way, np.array([np.nan]), 0.0)},
        keyed={"way": measured},
    )
    state = ClusterState(indexes=indexes_for([profile]))
    state.set_node(make_node("n0"))
    snapshot, pod = Snapshot(state, table, 0.0), make_pod(labels={"app": "web"})

    record = record_of(pod, snapshot, decide(pod, snapshot, profile), "bare", 0.0)

    assert [use.rule for use in record.rules] == ["few", "near"]
