"""Rules over signals to which placed Pods add before their samples do."""

from __future__ import annotations

from random import Random

import numpy as np

from scheduler.model.rules import Curve, Effect, EffectKind, Rule, RuleFilter, RuleScore, RuleSet, Signal, Unit
from scheduler.model.signals import SignalColumn, SignalTable
from scheduler.model.snapshot import Snapshot
from scheduler.model.state import ClusterState
from scheduler.plugins.signals import SignalFilter
from scheduler.rules.pending_load import PendingPods
from scheduler.rules.score import rule_scores
from tests.builders import compiled, make_node, make_pod
from tests.plugins.run import refusals
from tests.worlds import each_seed

SIGNAL = Signal(
    "cpu", "up", unit=Unit.RATIO, interval_s=15.0, max_age_s=60.0, inflight=Effect(EffectKind.REQUEST, "cpu")
)
HOT = Rule("hot", "cpu", filter=RuleFilter(max=0.8, max_clear=0.7))
COOL = Rule("cool", "cpu", score=RuleScore(Curve((0.0, 0.5, 1.0), (100.0, 60.0, 0.0))))
AS_OF_S = 1_767_225_600.0


def state_of(n: int) -> ClusterState:
    state = ClusterState(indexes=[PendingPods()])
    for i in range(n):
        state.set_node(make_node(f"n{i}", cpu="10"))
    return state


def frozen(state: ClusterState, values: list[float], rule: Rule, age_s: float = 0.0) -> Snapshot:
    column = SignalColumn(SIGNAL, np.array(values), age_s, AS_OF_S)
    tripped = {rule.name: np.array([value > 0.8 for value in values])}
    return Snapshot(state, SignalTable(RuleSet({"cpu": SIGNAL}, (rule,)), {"cpu": column}, tripped), 0.0)


class TestFilter:
    def test_a_node_that_placed_pods_will_fill_is_refused_before_its_samples_say_so(self) -> None:
        state = state_of(3)
        snapshot = frozen(state, [0.75, 0.75, 0.9], HOT)
        assert refusals(SignalFilter(), make_pod(), snapshot).keys() == {"n2"}

        state.place(make_pod("placed", cpu="1"), 1)

        assert refusals(SignalFilter(), make_pod(), frozen(state, [0.75, 0.75, 0.9], HOT)).keys() == {"n1", "n2"}

    def test_old_samples_refuse_nobody_whatever_is_in_flight(self) -> None:
        state = state_of(1)
        state.place(make_pod("placed", cpu="9"), 0)

        assert refusals(SignalFilter(), make_pod(), frozen(state, [0.5], HOT, age_s=61.0)) == {}


@each_seed(100)
def test_scores_renewed_row_by_row_are_those_of_all_rows(random: Random) -> None:
    state = state_of(8)
    snapshot = frozen(state, [random.choice([0.1, 0.5, 0.9]) for _ in range(8)], COOL)
    table = snapshot.signals
    if random.random() < 0.3:
        values = table.columns["cpu"].values.copy()
        values[3] = np.nan
        table = SignalTable(table.rules, {"cpu": SignalColumn(SIGNAL, values, 0.0, AS_OF_S)})
    for number in range(20):
        row = random.randrange(8)
        if random.random() < 0.7:
            state.place(make_pod(f"p{number}", cpu=f"{random.randint(1, 3000)}m"), row)
        elif pods := list(state.pods_on(row)):
            state.displace(random.choice(pods), row)

        now = Snapshot(state, table, 0.0)
        load = [sum(pod.usage.requests["cpu"] for pod in state.pods_on(row)) / 10_000 for row in range(8)]
        column = table.columns["cpu"]
        expected = SignalColumn(SIGNAL, column.values + np.array(load), 0.0)
        assert COOL.score is not None
        found = compiled(COOL, now).scores(None, now)
        np.testing.assert_allclose(found, rule_scores(COOL.score, expected, now.nodes.alive), atol=1e-9)
        with now.trial() as trial:
            trial.place(make_pod("guest", cpu="2"), row)
            assert compiled(COOL, now).scores(None, now)[row] <= found[row]
        assert (
            compiled(COOL, Snapshot(state, table, 0.0)).scores(None, Snapshot(state, table, 0.0)).tolist()
            == found.tolist()
        )
