"""What is kept with an edition of the signals changes nothing: not a table, not a verdict, not a score.

One store and one state go through a walk of answers, rules, moments, Pods and nodes. At each step they are compared
with a store that has been told the same and is frozen for the first time, and a state that remembers nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from scheduler.decision.decide import decide
from scheduler.model.identity import NodeIdentity
from scheduler.model.memo import Memo
from scheduler.model.pods import PodInfo
from scheduler.model.row_memo import RowMemo
from scheduler.model.rules import (
    BuiltIn,
    BuiltInKind,
    ByKind,
    Canary,
    Curve,
    Effect,
    EffectKind,
    FilterMissing,
    LabelMatch,
    Match,
    Mode,
    Rule,
    RuleFilter,
    RuleScore,
    RuleSet,
    ScoreMissing,
    Signal,
    Unit,
    WeightSignal,
)
from scheduler.model.signals import Freshness, SignalTable
from scheduler.model.snapshot import Snapshot
from scheduler.model.state import ClusterState
from scheduler.model.views import NodeView
from scheduler.signals.answers import SignalAnswer, signature
from scheduler.signals.columns.store import SignalStore
from tests.builders import cluster_of, default_profile, make_node, make_pod
from tests.contracts.asking import told
from tests.signals.asking.scripted import Clock
from tests.worlds import each_seed, is_so

PROFILE = default_profile()
NAMES = tuple("abcdef")
SIGNALS = (
    Signal("cpu", "cpu", unit=Unit.RATIO),
    Signal("busy", "busy", unit=Unit.RATIO, inflight=Effect(EffectKind.REQUEST, "cpu")),
    Signal("calm", "calm", smoothing_s=20.0),
    Signal("zone", "zone", by=ByKind.LABEL, label="zone"),
    Signal("burn", "burn", by=ByKind.CLUSTER),
    Signal("mates", "", built_in=BuiltIn(BuiltInKind.COUNT, same=("app",))),
)
DOWN, LIMIT = RuleScore(Curve((0.0, 1.0), (100.0, 0.0))), RuleFilter(max=0.8, max_clear=0.6)
RULES = (
    Rule("hot", "cpu", filter=LIMIT, score=DOWN, weight=3.0),
    Rule("known", "cpu", filter=replace(LIMIT, missing=FilterMissing.REJECT, valve=0.5)),
    Rule("hasty", "cpu", filter=LIMIT, score=replace(DOWN, missing=ScoreMissing.WORST), max_age_s=40.0),
    Rule("web", "cpu", Match(labels={"app": "web"}), filter=RuleFilter(min=0.3), score=DOWN),
    Rule("held", "calm", filter=replace(LIMIT, hold_s=20.0), score=DOWN, max_share=0.5),
    Rule("near", "zone", filter=LIMIT, score=replace(DOWN, missing=ScoreMissing.BEST)),
    Rule("urgent", "busy", filter=LIMIT, score=DOWN, weight=WeightSignal("burn", Curve((0.0, 1.0), (1.0, 9.0)), 2.0)),
    Rule("some", "cpu", filter=RuleFilter(max=0.7), score=DOWN, canary=Canary(50.0)),
    Rule("shadow", "calm", filter=RuleFilter(max=0.5), score=DOWN, mode=Mode.SHADOW),
    Rule("few", "mates", filter=RuleFilter(max=2.0), score=RuleScore(Curve((0.0, 5.0), (100.0, 0.0)))),
    Rule("home", label_match=LabelMatch("home", "zone")),
)
PODS = tuple(
    make_pod(f"pod-{i}", cpu="100m", labels={"app": app, **({"home": "z1"} if i == 3 else {})})
    for i, app in enumerate(("web", "db", "web", "api"))
)


class Told:
    """What stores are told, so that another one can be told the same."""

    def __init__(self) -> None:
        self.clock = Clock()
        self._messages: list[tuple[float, Callable[[SignalStore], object]]] = []
        self.store = SignalStore(self.clock)
        self.identity = NodeIdentity.of(1, [make_node(name) for name in NAMES])
        self.say(lambda store: store.add_identity(self.identity))

    def say(self, message: Callable[[SignalStore], object]) -> None:
        self._messages.append((self.clock.now_s, message))
        message(self.store)

    def another(self) -> SignalStore:
        """Return a store that has been told the same, each thing at its time."""
        clock = Clock()
        store = SignalStore(clock)
        for clock.now_s, message in self._messages:
            message(store)
        return store


def publish(world: Told, random: Random) -> None:
    signal = random.choice([one for one in SIGNALS if one.built_in is None])
    values = np.array([float("nan") if random.random() < 0.15 else random.random() for _ in NAMES])
    now_s = world.clock.now_s
    kinds: dict[str, Any] = {"values": values.tobytes(), "identity_generation": 1}
    if signal.by is ByKind.LABEL:
        kinds = {"by_label": {zone: random.random() for zone in ("z0", "z1") if is_so(random)}}
    elif signal.by is ByKind.CLUSTER:
        kinds = {"value": random.random()}
    elif is_so(random):
        kinds["lag_by_key"] = {random.choice(NAMES): random.choice([20.0, 50.0, 70.0])}
    answer = SignalAnswer(
        signal=signal.name,
        signature=signature(signal),
        rules_generation=1,
        max_age_s=signal.max_age_s,
        smoothing_s=signal.smoothing_s,
        evaluated_at_s=now_s,
        evaluated_unix_s=now_s,
        is_suspect=random.random() < 0.1,
        **kinds,
    )
    world.say(lambda store: store.publish(answer))


def load(world: Told, random: Random, generation: int) -> None:
    """Put some of the rules in force, one of them perhaps with another weight."""
    rules = [rule for rule in RULES if random.random() < 0.9]
    if rules and is_so(random):
        i = random.randrange(len(rules))
        rules[i] = replace(rules[i], weight=random.choice([1.0, 5.0]))
    rule_set = RuleSet({signal.name: signal for signal in SIGNALS}, tuple(rules), generation)
    world.say(lambda store: store.set_rules(rule_set))


def change(state: ClusterState, random: Random, number: int) -> None:
    """Place a Pod, or let a node come, go, or move to another zone."""
    name = random.choice(NAMES)
    row = state.nodes.row_of(name)
    if is_so(random) and row is not None:
        state.place(make_pod(f"placed-{number}", cpu="200m", labels={"app": "web"}, node=name), row)
    elif row is not None and random.random() < 0.3:
        state.remove_node(name)
    else:
        state.set_node(make_node(name, labels={"zone": random.choice(["z0", "z1"])}))


def table_told(table: SignalTable) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for name, one in table.columns.items():
        columns[name] = one.freshness, one.age_s
        if one.freshness is not Freshness.ABSENT:
            columns[name] += one.confidence, str(one.values.tolist()), str(one.row_lag_s)
    tripped = {name: bits.tolist() for name, bits in table.tripped.items()}
    return {"columns": columns, "tripped": tripped, "open": table.open_valves}


def everything(pod: PodInfo, snapshot: Snapshot) -> tuple[dict[str, Any], object]:
    decision = decide(pod, snapshot, PROFILE)
    return told(decision), decision.shadows


@each_seed(60)
def test_all_is_as_if_nothing_were_kept(random: Random) -> None:
    world = Told()
    state = cluster_of(make_node(name, labels={"zone": f"z{i % 2}"}) for i, name in enumerate(NAMES))
    load(world, random, 1)
    for number in range(25):
        for _ in range(random.randint(0, 2)):
            publish(world, random)
        if random.random() < 0.1:
            load(world, random, number + 2)
        if random.random() < 0.2:
            change(state, random, number)
        world.clock.now_s += random.choice([0.0, 0.0, 0.02, 0.3, 4.0, 16.0, 31.0])
        now_s, view = world.clock.now_s, NodeView(state.nodes)
        kept, anew = world.store.freeze(view, now_s), world.another().freeze(view, now_s)
        assert table_told(kept) == table_told(anew)
        if is_so(random):
            for plugin in PROFILE.followers:
                plugin.follow(Snapshot(state, kept, now_s))
        forgetful = replace(state, memo=Memo(), row_memo=RowMemo())
        for pod in random.choices(PODS, k=2):
            assert everything(pod, Snapshot(state, kept, now_s)) == everything(pod, Snapshot(forgetful, anew, now_s))


def test_editions_follow_samples_states_and_steps_of_an_eighth_while_scores_fade() -> None:
    world = Told()
    state = cluster_of(make_node(name) for name in NAMES)
    rules = RuleSet({"cpu": SIGNALS[0]}, RULES[:1], 1)
    world.say(lambda store: store.set_rules(rules))
    begun_s = world.clock.now_s = 1000.0

    def edition(after_s: float) -> object:
        return world.store.freeze(NodeView(state.nodes), begun_s + after_s).edition

    before = edition(0.0)
    world.say(lambda store: store.publish(of_cpu(begun_s, {})))
    fresh = edition(1.0)
    assert before is not fresh
    assert [edition(after_s) is fresh for after_s in (2.0, 20.0, 29.99, 30.01)] == [True, True, True, False]
    fading = edition(40.01)
    assert [edition(after_s) is fading for after_s in (40.02, 40.12, 40.13)] == [True, True, False]
    edition(60.1)
    absent = edition(60.2)
    assert edition(200.0) is absent


@pytest.mark.parametrize("moment_s", [15.0, 40.0])
def test_samples_that_end_earlier_for_a_rule_end_within_a_step(moment_s: float) -> None:
    world = Told()
    state = cluster_of(make_node(name) for name in NAMES)
    hasty = [rule for rule in RULES if rule.name == "hasty"]
    world.say(lambda store: store.set_rules(RuleSet({"cpu": SIGNALS[0]}, tuple(hasty), 1)))
    world.clock.now_s = 1000.05
    world.say(lambda store: store.publish(of_cpu(1000.05, {"a": 25.0})))
    told_s = []
    for now_s in (1000.04 + moment_s, 1000.06 + moment_s):
        kept, anew = (one.freeze(NodeView(state.nodes), now_s) for one in (world.store, world.another()))
        assert table_told(kept) == table_told(anew)
        forgetful = replace(state, memo=Memo(), row_memo=RowMemo())
        told_s.append(everything(PODS[1], Snapshot(state, kept, now_s)))
        assert told_s[-1] == everything(PODS[1], Snapshot(forgetful, anew, now_s))
    assert told_s[0] != told_s[1]


def of_cpu(now_s: float, lags_s: dict[str, float]) -> SignalAnswer:
    """Return an answer in which all nodes but the last are within limits."""
    return SignalAnswer(
        "cpu",
        signature(SIGNALS[0]),
        1,
        60.0,
        evaluated_at_s=now_s,
        values=np.linspace(0.0, 1.0, len(NAMES)).tobytes(),
        identity_generation=1,
        lag_by_key=lags_s,
    )
