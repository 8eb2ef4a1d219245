"""Rules that only watch: they change no decision, and what they say of one is what comes about once they act.

`SHADOWS=full` compares 10,000 decisions in place of 300.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from scheduler.decision.decide import decide
from scheduler.decision.decision import Decision, Shadow
from scheduler.decision.record import ShadowRecord, record_of
from scheduler.decision.shadows import NOWHERE
from scheduler.errors import PluginError, UnsupportedPodError
from scheduler.framework.plugin import ScorePlugin
from scheduler.framework.profile import Enabled, Profile
from scheduler.framework.status import ScoreTerm
from scheduler.model.arrays import FloatArray, IntArray, Rows
from scheduler.model.pods import PodInfo
from scheduler.model.rules import Canary, Curve, Mode, Rule, RuleFilter, RuleScore, RuleSet, Signal
from scheduler.model.signals import SignalColumn, SignalTable
from scheduler.model.snapshot import Snapshot
from scheduler.plugins import default_chain
from scheduler.plugins.signals import SignalFilter, SignalScore
from tests.builders import default_profile, make_node, make_pod, snapshot_of
from tests.contracts.asking import told
from tests.decision.shadow_worlds import Change, RuledWorld, ruled_world
from tests.worlds import each_seed

CHAIN = default_profile()
N_DECISIONS = 10_000 if os.environ.get("SHADOWS") == "full" else 300
NODES = [make_node(name) for name in "abcd"]


def decided(pod: PodInfo, snapshot: Snapshot) -> Decision | str:
    try:
        return decide(pod, snapshot, CHAIN)
    except (PluginError, UnsupportedPodError) as error:
        return str(error)


def said(decision: Decision | str) -> Any:
    return decision if isinstance(decision, str) else told(decision)


def in_shadow(names: frozenset[str]) -> Change:
    return lambda rule: replace(rule, mode=Mode.SHADOW) if rule.name in names else rule


def without(names: frozenset[str]) -> Change:
    return lambda rule: None if rule.name in names else rule


def some_rules(random: Random, world: RuledWorld) -> frozenset[str]:
    names = world.names
    return frozenset(random.sample(names, random.randint(1, len(names))))


@each_seed(N_DECISIONS)
def test_a_rule_in_shadow_changes_no_decision(random: Random) -> None:
    world = ruled_world(random)
    names = some_rules(random, world)

    with_them = decided(world.pod, world.snapshot(in_shadow(names)))

    assert said(with_them) == said(decided(world.pod, world.snapshot(without(names))))
    if isinstance(with_them, Decision):
        assert not with_them.shadow_fault
        assert {shadow.rule for shadow in with_them.shadows} <= names
        assert not with_them.diagnosis.rules & names


@each_seed(300)
def test_what_a_shadow_says_is_what_comes_about_once_the_rule_acts(random: Random) -> None:
    world = ruled_world(random)
    name = random.choice(world.names)
    watched = decided(world.pod, world.snapshot(in_shadow(frozenset((name,)))))
    assert isinstance(watched, Decision)
    if watched.nominated:
        return

    acted = decide(world.pod, world.snapshot(), CHAIN)

    (shadow,) = [one for one in watched.shadows if one.rule == name] or [
        Shadow(name, 0, False, watched.row, 0.0)  # it had nothing to say of any node
    ]
    if not watched.is_scheduled:
        assert not watched.shadows
        return
    assert shadow.row == acted.row
    assert shadow.n_refused == len(watched.feasible) - len(acted.feasible)
    assert shadow.refuses_chosen == (watched.row not in acted.feasible)
    assert shadow.weight == sum(term.weight for term in acted.terms if term.name == name)


@each_seed(200)
def test_a_canary_acts_on_its_pods_and_watches_the_others(random: Random) -> None:
    world = ruled_world(random)
    names = some_rules(random, world)
    canary = Canary(random.choice([10.0, 50.0, 90.0]), random.choice([(), ("default",), ("other",)]))
    rules = world.snapshot(lambda rule: replace(rule, canary=canary) if rule.name in names else rule)

    found = said(decided(world.pod, rules))

    expected = world.snapshot() if canary.takes(world.pod) else world.snapshot(without(names))
    assert found == said(decided(world.pod, expected))


def uids(n: int) -> list[str]:
    random = Random("uids")
    return [f"{random.getrandbits(128):032x}" for _ in range(n)]


@pytest.mark.parametrize("percent", [1.0, 10.0, 50.0])
def test_a_canary_takes_its_percentage_of_the_pods(percent: float) -> None:
    rule = Rule("new", "cpu", canary=Canary(percent))
    pods = [make_pod(uid=uid) for uid in uids(20_000)]

    taken = 100 * sum(rule.acts_on(pod) for pod in pods) / len(pods)

    assert taken == pytest.approx(percent, abs=1.0)


def test_canaries_of_one_percentage_take_the_same_pods_and_greater_ones_keep_them() -> None:
    one, other, more = (
        Rule(name, "cpu", canary=Canary(percent)) for name, percent in (("a", 10), ("b", 10), ("c", 20))
    )
    for uid in uids(500):
        pod = make_pod(uid=uid)
        assert one.acts_on(pod) == other.acts_on(pod)
        assert more.acts_on(pod) or not one.acts_on(pod)


def test_who_is_taken_says_nothing_of_how_ties_are_broken() -> None:
    equal, snapshot = profile(Even()), snapshot_of(NODES)
    rule = Rule("new", "cpu", canary=Canary(50.0))
    chosen = [decide(pod, snapshot, equal).node_name for pod in map(with_uid, uids(2_000)) if rule.acts_on(pod)]

    assert all(chosen.count(name) / len(chosen) == pytest.approx(0.25, abs=0.04) for name in "abcd")


def with_uid(uid: str) -> PodInfo:
    return make_pod(uid=uid)


def test_the_lot_of_a_pod_is_the_same_in_every_process() -> None:
    # From hashlib.blake2b(uid, digest_size=8, person=b"vane canary"), the upper 53 bits over 2^53.
    assert make_pod(uid="5d3c0f0e-7f7e-4a58-9d3a-0f2f3c8f2a11").lot == 0.14863145314061355


def test_both_conditions_of_a_canary_hold() -> None:
    rule = Rule("new", "cpu", canary=Canary(100.0, ("test-*",)))
    assert rule.acts_on(make_pod(namespace="test-eu"))
    assert not rule.acts_on(make_pod(namespace="shop"))
    assert not Rule("new", "cpu", canary=Canary(1e-9, ("test-*",))).acts_on(make_pod(namespace="test-eu"))


SIGNAL = Signal("seen", "up")
POINTS = RuleScore(Curve((0.0, 100.0), (0.0, 100.0)))


def watching(
    refused: str = "", scores: Sequence[float] = (), weight: float = 1.0, score: RuleScore = POINTS
) -> SignalTable:
    """Return what one rule that only watches reads of the nodes a, b, c, d: it refuses some, and scores if it may."""
    rule = Rule(
        "new",
        "seen",
        filter=RuleFilter(max=0.0),
        score=score if scores else None,
        weight=weight,
        mode=Mode.SHADOW,
        max_share=0.5,
    )
    column = SignalColumn(SIGNAL, np.array(scores or [0.0] * 4, dtype=np.float64), 0.0)
    tripped = {"new": np.array([name in refused for name in "abcd"])}
    return SignalTable(RuleSet({"seen": SIGNAL}, (rule,)), {"seen": column}, tripped)


class Even(ScorePlugin):
    """Gives all nodes the same."""

    def score(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[ScoreTerm]:
        return [ScoreTerm("even", np.array([50, 50, 50, 50])[rows])]


class Falling(ScorePlugin):
    """Gives 90, 80, 70, 60 to a, b, c, d."""

    def score(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[ScoreTerm]:
        return [ScoreTerm("falling", np.array([90, 80, 70, 60])[rows])]


def profile(*plugins: Any) -> Profile:
    base = [enabled for enabled in default_chain() if enabled.plugin.name in ("PrioritySort", "DefaultBinder")]
    return Profile.build("vane", [*base, *(Enabled(plugin, 2) for plugin in plugins)])


@pytest.mark.parametrize(
    ("signals", "expected"),
    [
        pytest.param(watching("c"), Shadow("new", 1, False, 0, 0.0), id="another node refused"),
        pytest.param(watching("ac"), Shadow("new", 2, True, 1, 0.0), id="the chosen node refused"),
        pytest.param(watching("abc"), Shadow("new", 3, True, 3, 0.0), id="one node left"),
        pytest.param(watching("abcd"), Shadow("new", 4, True, NOWHERE, 0.0), id="no node left"),
        pytest.param(watching("", [0, 0, 0, 70], 1.0), Shadow("new", 0, False, 3, 1.0), id="another node preferred"),
        pytest.param(watching("", [0, 0, 0, 70], 9.0), Shadow("new", 0, False, 3, 2.0), id="its share is capped"),
        pytest.param(watching("d", [0, 0, 100, 100], 1.0), Shadow("new", 1, False, 2, 1.0), id="filter and score"),
    ],
)
def test_one_shadow(signals: SignalTable, expected: Shadow) -> None:
    decision = decide(make_pod(), snapshot_of(NODES, (), signals), profile(Falling(), SignalFilter(), SignalScore()))

    assert (decision.node_name, decision.shadows, decision.shadow_fault) == ("a", (expected,), "")


def test_a_rule_with_nothing_to_say_has_no_shadow_and_is_recorded_all_the_same() -> None:
    snapshot = snapshot_of(NODES, (), watching())
    decision = decide(make_pod(), snapshot, profile(Falling(), SignalFilter(), SignalScore()))

    assert decision.shadows == ()
    record = record_of(make_pod(), snapshot, decision, "vane", 0.0)
    assert record.shadows == (ShadowRecord("new", 0, False, "a", 0.0),)


def test_a_profile_that_applies_no_rules_asks_none() -> None:
    decision = decide(make_pod(), snapshot_of(NODES, (), watching("abcd")), profile(Falling()))

    assert (decision.node_name, decision.shadows) == ("a", ())


class Relative(ScorePlugin):
    """Gives the best of the feasible nodes 100: a is worth twice as much as b, c and d nothing."""

    def score(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[ScoreTerm]:
        return [ScoreTerm("relative", np.array([90, 45, 0, 0])[rows])]

    def normalize(self, term: ScoreTerm) -> IntArray | FloatArray:
        return term.values * 100 // max(int(term.values.max()), 1)


class Fixed(ScorePlugin):
    """Gives 60 to d, as a finished column."""

    def score(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[ScoreTerm]:
        return [ScoreTerm("fixed", np.array([0, 0, 0, 60]), is_column=True)]


@pytest.mark.parametrize(("refused", "instead"), [("a", 1), ("ab", 3), ("b", 0)])
def test_the_nodes_that_are_left_are_scored_anew(refused: str, instead: int) -> None:
    decision = decide(
        make_pod(),
        snapshot_of(NODES, (), watching(refused)),
        profile(Relative(), Fixed(), SignalFilter(), SignalScore()),
    )

    (shadow,) = decision.shadows
    assert (decision.row, shadow.row) == (0, instead)


@pytest.mark.parametrize(
    ("refused", "expected"), [("bcd", Shadow("new", 0, False, 0, 0.0)), ("a", Shadow("new", 1, True, None, 0.0))]
)
def test_beside_a_nominated_node_others_are_not_known(refused: str, expected: Shadow) -> None:
    decision = decide(
        make_pod(nominated="a"),
        snapshot_of(NODES, (), watching(refused)),
        profile(Falling(), SignalFilter(), SignalScore()),
    )

    assert (decision.nominated, decision.shadows) == (True, (expected,))


def without_a_row(signals: SignalTable) -> SignalTable:
    return replace(signals, tripped={name: bits[:3] for name, bits in signals.tripped.items()})


@pytest.mark.parametrize(
    ("signals", "words"),
    [
        (without_a_row(watching("abc")), 'running "SignalFilter" filter plugin'),
        (watching("", [0, 0, 0, 1], score=RuleScore(Curve((0.0, 1.0), (0.0, 1e9)))), "invalid score"),
    ],
)
def test_a_fault_in_a_shadow_is_told_and_the_decision_stands(signals: SignalTable, words: str) -> None:
    snapshot = snapshot_of(NODES, (), signals)
    decision = decide(make_pod(), snapshot, profile(Falling(), SignalFilter(), SignalScore()))
    record = record_of(make_pod(), snapshot, decision, "vane", 0.0)

    assert decision.node_name == "a"
    assert words in decision.shadow_fault == record.shadow_fault
    assert (decision.shadows, record.shadows) == ((), ())


def test_a_record_shows_each_rule_that_watched() -> None:
    rules = (Rule("quiet", "s0", mode=Mode.SHADOW), Rule("acting", "s0"), Rule("others", "s0", canary=Canary(1e-9)))
    snapshot = snapshot_of(NODES, (), SignalTable(RuleSet({"s0": Signal("s0", "up")}, rules)))
    pod = make_pod()
    decision = decide(pod, snapshot, profile(Falling()))
    given = replace(decision, shadows=(Shadow("quiet", 2, True, 2, 0.5), Shadow("others", 4, True, NOWHERE, 0.0)))

    record = record_of(pod, snapshot, given, "vane", 0.0)

    assert [(use.rule, use.acts) for use in record.rules] == [("quiet", False), ("acting", True), ("others", False)]
    assert record.shadows == (
        ShadowRecord("quiet", 2, True, "c", 0.5),
        ShadowRecord("others", 4, True, "", 0.0),
    )
    silent = record_of(pod, snapshot, replace(decision, shadows=()), "vane", 0.0)
    assert silent.shadows[0] == ShadowRecord("quiet", 0, False, "a", 0.0)
