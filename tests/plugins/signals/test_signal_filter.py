from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.framework.events import Action, ClusterEvent, QueueingHint, Resource
from scheduler.framework.status import SKIP
from scheduler.model.rules import (
    Curve,
    FilterMissing,
    Match,
    Rule,
    RuleFilter,
    RuleScore,
    RuleSet,
    ScoreMissing,
    Signal,
    WeightSignal,
)
from scheduler.model.selectors import SelectorTerm
from scheduler.model.signals import Freshness, SignalColumn, SignalTable
from scheduler.model.snapshot import Snapshot
from scheduler.model.structs import ObjectMeta
from scheduler.model.workloads import Namespace
from scheduler.plugins.signals import SignalFilter, SignalScore
from scheduler.rules.score import rule_scores, rule_weight
from tests.builders import cluster_of, make_node, make_pod, snapshot_of
from tests.plugins.run import raw_scores, refusals

NAN = math.nan
FRESH_S, FADING_S, ABSENT_S = 0.0, 45.0, 61.0
SIGNAL = Signal("cpu", "up", interval_s=15.0, max_age_s=60.0)
DOWN = Curve((0.0, 1.0), (100.0, 0.0))
REJECTED = ("UnschedulableAndUnresolvable", 'node(s) rejected by rule "cool"')
UNMEASURED = ("UnschedulableAndUnresolvable", 'node(s) without a sample for rule "cool"')


def column(values: Sequence[float], age_s: float = FRESH_S) -> SignalColumn:
    return SignalColumn(SIGNAL, np.array(values, dtype=np.float64), age_s)


def world(
    rule: Rule,
    columns: Mapping[str, SignalColumn],
    tripped: Sequence[bool] = (),
    open_valves: frozenset[str] = frozenset(),
    n: int = 3,
) -> Snapshot:
    trips = {rule.name: np.array(tripped)} if len(tripped) else {}
    table = SignalTable(RuleSet({"cpu": SIGNAL}, (rule,)), columns, trips, open_valves)
    return snapshot_of([make_node(f"n{i}") for i in range(n)], (), table)


def filtering(missing: FilterMissing = FilterMissing.ALLOW, match: Match = Match()) -> Rule:  # noqa: B008
    return Rule("cool", "cpu", match, filter=RuleFilter(max=0.8, missing=missing))


def scoring(curve: Curve = DOWN, missing: ScoreMissing = ScoreMissing.NEUTRAL, match: Match = Match()) -> Rule:  # noqa: B008
    return Rule("cool", "cpu", match, score=RuleScore(curve, missing), weight=3.0)


class TestSignalFilter:
    def test_a_tripped_node_is_refused_and_the_rule_named(self) -> None:
        snapshot = world(filtering(), {"cpu": column([0.9, 0.1, 0.2])}, [True, False, False])

        assert refusals(SignalFilter(), make_pod(), snapshot) == {"n0": {REJECTED}}
        (rejection,) = SignalFilter().filter(None, make_pod(), snapshot, slice(None))
        assert rejection.rule == "cool"

    def test_a_fading_sample_still_refuses(self) -> None:
        snapshot = world(filtering(), {"cpu": column([0.9, 0.1, 0.2], FADING_S)}, [True, False, False])

        assert set(refusals(SignalFilter(), make_pod(), snapshot)) == {"n0"}

    @pytest.mark.parametrize(
        ("columns", "tripped"),
        [
            pytest.param({"cpu": column([NAN, NAN, NAN])}, [False] * 3, id="no sample"),
            pytest.param({"cpu": column([0.9, 0.9, 0.9], ABSENT_S)}, [True] * 3, id="samples too old"),
            pytest.param({}, [], id="never asked yet"),
        ],
    )
    @pytest.mark.parametrize("missing", list(FilterMissing))
    def test_what_is_missing_is_refused_only_if_the_rule_says_so(
        self, missing: FilterMissing, columns: dict[str, SignalColumn], tripped: list[bool]
    ) -> None:
        snapshot = world(filtering(missing), columns, tripped)

        expected = {} if missing is FilterMissing.ALLOW else {name: {UNMEASURED} for name in ("n0", "n1", "n2")}
        assert refusals(SignalFilter(), make_pod(), snapshot) == expected

    def test_an_open_valve_refuses_nobody(self) -> None:
        snapshot = world(
            filtering(FilterMissing.REJECT), {"cpu": column([0.9, NAN, 0.1])}, [True] * 3, frozenset({"cool"})
        )

        assert refusals(SignalFilter(), make_pod(), snapshot) == {}

    @pytest.mark.parametrize(
        ("match", "covered"),
        [
            pytest.param(Match(), True, id="a rule for all"),
            pytest.param(Match(namespaces=("shop-*",)), True, id="a glob of the namespace"),
            pytest.param(Match(namespaces=("bank",)), False, id="another namespace"),
            pytest.param(Match(labels={"tier": "web"}), True, id="a label"),
            pytest.param(Match(labels={"tier": "db"}), False, id="another value"),
        ],
    )
    def test_a_rule_concerns_the_pods_it_matches(self, match: Match, covered: bool) -> None:
        pod = make_pod(namespace="shop-eu", labels={"tier": "web"})
        snapshot = world(filtering(match=match), {"cpu": column([0.9, 0.1, 0.2])}, [True, False, False])

        assert bool(refusals(SignalFilter(), pod, snapshot)) == covered


class TestSignalScore:
    @pytest.mark.parametrize(
        ("curve", "values", "expected"),
        [
            pytest.param(DOWN, [0.0, 0.25, 1.0], [100, 75, 0], id="best low"),
            pytest.param(Curve((0.0, 1.0), (0.0, 100.0)), [0.0, 0.25, 1.0], [0, 25, 100], id="best high"),
            pytest.param(DOWN, [-3.0, 0.5, 7.0], [100, 50, 0], id="beyond the ends"),
            pytest.param(Curve((0.0, 0.5, 1.0), (100.0, 80.0, 0.0)), [0.25, 0.5, 0.75], [90, 80, 40], id="a knee"),
            pytest.param(
                Curve((0.0, 1.0, 2.0, 3.0, 4.0, 5.0), (0.0, 10.0, 20.0, 50.0, 20.0, 0.0)),
                [0.5, 2.5, 4.5],
                [5, 35, 10],
                id="many points",
            ),
        ],
    )
    def test_a_value_becomes_points(self, curve: Curve, values: list[float], expected: list[float]) -> None:
        snapshot = world(scoring(curve), {"cpu": column(values)})

        assert raw_scores(SignalScore(), make_pod(), snapshot)["cool"] == pytest.approx(expected)

    @pytest.mark.parametrize(
        ("missing", "score"),
        [
            pytest.param(ScoreMissing.NEUTRAL, 60.0, id="neutral: the median of the measured"),
            pytest.param(ScoreMissing.BEST, 100.0, id="best"),
            pytest.param(ScoreMissing.WORST, 0.0, id="worst"),
        ],
    )
    def test_a_node_without_a_sample(self, missing: ScoreMissing, score: float) -> None:
        snapshot = world(scoring(missing=missing), {"cpu": column([0.2, 0.6, NAN])})

        assert raw_scores(SignalScore(), make_pod(), snapshot)["cool"] == pytest.approx([80, 40, score])

    def test_a_tombstone_does_not_move_the_median(self) -> None:
        alive = np.array([True, True, True, False])
        values = column([0.1, 0.2, NAN, 0.9])

        scores = rule_scores(RuleScore(DOWN), values, alive)

        assert scores[2] == pytest.approx(85.0)

    def test_a_fading_signal_draws_scores_halfway_to_neutral(self) -> None:
        snapshot = world(scoring(), {"cpu": column([0.0, 0.5, 1.0], FADING_S)})

        assert raw_scores(SignalScore(), make_pod(), snapshot)["cool"] == pytest.approx([75, 50, 25])

    @pytest.mark.parametrize(
        "columns",
        [
            pytest.param({"cpu": column([0.1, 0.2, 0.3], ABSENT_S)}, id="too old"),
            pytest.param({"cpu": column([NAN, NAN, NAN])}, id="no sample"),
            pytest.param({}, id="no column yet"),
        ],
    )
    def test_without_samples_all_nodes_are_alike(self, columns: dict[str, SignalColumn]) -> None:
        assert raw_scores(SignalScore(), make_pod(), world(scoring(), columns))["cool"] == [50.0, 50.0, 50.0]

    def test_a_pod_that_no_rule_covers_is_not_scored(self) -> None:
        snapshot = world(scoring(match=Match(namespaces=("bank",))), {"cpu": column([0.1, 0.2, 0.3])})

        assert SignalScore().prescore(make_pod(), snapshot, slice(None)) is SKIP

    @pytest.mark.parametrize(
        ("columns", "expected"),
        [
            pytest.param({"burn": column([1.0] * 3)}, 5.5, id="on the curve"),
            pytest.param({"burn": column([1.0] * 3, FADING_S)}, 5.5, id="fading: the weight never changes"),
            pytest.param({"burn": column([1.0] * 3, ABSENT_S)}, 1.0, id="absent"),
            pytest.param({"burn": column([NAN] * 3)}, 1.0, id="no sample"),
            pytest.param({}, 1.0, id="no column yet"),
        ],
    )
    def test_a_weight_from_a_signal(self, columns: dict[str, SignalColumn], expected: float) -> None:
        weight = WeightSignal("burn", Curve((0.0, 2.0), (1.0, 10.0)), missing=1.0)

        assert rule_weight(weight, SignalTable(columns=columns)) == expected


def slow_scores(score: RuleScore, values: list[float], age_s: float) -> list[float]:
    """Every node on its own, in words: the proof of the columns."""
    signal_column = column(values, age_s)

    def on_curve(value: float) -> float:
        points = list(zip(score.curve.xs, score.curve.ys, strict=True))
        if value <= points[0][0]:
            return points[0][1]
        for (x0, y0), (x1, y1) in pairwise(points):
            if value <= x1:
                return y0 + (y1 - y0) * (value - x0) / (x1 - x0)
        return points[-1][1]

    usable = [value for value in values if not math.isnan(value)] if age_s < ABSENT_S else []
    neutral = statistics.median([on_curve(value) for value in usable]) if usable else 50.0
    missing = {
        ScoreMissing.NEUTRAL: neutral,
        ScoreMissing.BEST: max(score.curve.ys),
        ScoreMissing.WORST: min(score.curve.ys),
    }[score.missing]
    return [
        neutral + signal_column.confidence * (on_curve(value) - neutral)
        if usable and not math.isnan(value)
        else missing
        for value in values
    ]


@st.composite
def curves(draw: st.DrawFn) -> Curve:
    xs = sorted(draw(st.lists(st.integers(-50, 50), min_size=2, max_size=7, unique=True)))
    ys = draw(st.lists(st.integers(0, 100), min_size=len(xs), max_size=len(xs)))
    return Curve(tuple(map(float, xs)), tuple(map(float, ys)))


@settings(max_examples=200, deadline=None)
@given(
    curve=curves(),
    missing=st.sampled_from(ScoreMissing),
    values=st.lists(st.one_of(st.just(NAN), st.floats(-60, 60)), max_size=7),
    age_s=st.sampled_from([FRESH_S, FADING_S, 59.0, ABSENT_S]),
)
def test_scores_as_the_plain_loop(curve: Curve, missing: ScoreMissing, values: list[float], age_s: float) -> None:
    score = RuleScore(curve, missing)

    found = rule_scores(score, column(values, age_s), np.ones(len(values), dtype=np.bool_))

    assert found.tolist() == pytest.approx(slow_scores(score, values, age_s), abs=1e-9)
    assert ((found >= 0) & (found <= 100)).all()


class TestNodesThatLagAlone:
    """Rows whose own samples are older than the others': a dead exporter among many."""

    def lagging(self, values: Sequence[float], lags_s: Sequence[float], age_s: float = FRESH_S) -> SignalColumn:
        return replace(column(values, age_s), row_lag_s=np.array(lags_s))

    def scores(self, lagging: SignalColumn) -> list[float]:
        return list(rule_scores(RuleScore(DOWN), lagging, np.ones(len(lagging.values), dtype=np.bool_)))

    def test_fades_alone_towards_the_median_of_the_newest(self) -> None:
        lagging = self.lagging([0.9, 0.5, 0.4, 0.3], [45.0, 0.0, 0.0, 0.0])
        assert self.scores(lagging) == pytest.approx([60.0 + 0.5 * (10.0 - 60.0), 50.0, 60.0, 70.0])
        assert (lagging.age_at(0), lagging.age_at(1)) == (45.0, 0.0)
        assert (lagging.freshness_at(0), lagging.freshness_at(1)) == (Freshness.FADING, Freshness.FRESH)

    def test_what_was_good_long_ago_never_lifts_a_node_above_the_known_ones(self) -> None:
        assert self.scores(self.lagging([0.0, 0.5, 0.4, 0.3], [31.0, 0.0, 0.0, 0.0]))[0] == pytest.approx(60.0)

    def test_a_lag_within_two_intervals_changes_nothing(self) -> None:
        assert self.scores(self.lagging([0.0, 0.5, 0.4], [29.0, 0.0, 0.0])) == [100.0, 50.0, 60.0]

    def test_without_any_that_is_new_all_fade_together(self) -> None:
        assert self.scores(self.lagging([0.0, 1.0], [45.0, 45.0])) == pytest.approx([50.0, 25.0])

    @settings(max_examples=200, deadline=None)
    @given(
        curve=curves(),
        nodes=st.lists(st.tuples(st.floats(-60, 60), st.floats(0, 70)), min_size=1, max_size=7),
        age_s=st.sampled_from([FRESH_S, FADING_S, 59.0]),
    )
    def test_as_the_plain_loop(self, curve: Curve, nodes: list[tuple[float, float]], age_s: float) -> None:
        values, lags_s = [value for value, _ in nodes], [lag_s for _, lag_s in nodes]
        lagging = self.lagging(values, lags_s, age_s)
        score = RuleScore(curve)
        plain = slow_scores(score, values, FRESH_S)
        newest = [points for points, lag_s in zip(plain, lags_s, strict=True) if lag_s == 0.0]
        neutral = statistics.median(newest or plain)
        expected = []
        for points, lag_s in zip(plain, lags_s, strict=True):
            confidence = min(max((60.0 - age_s - lag_s) / 30.0, 0.0), 1.0)
            drawn = neutral + confidence * (points - neutral) if confidence < 1.0 else points
            expected.append(min(drawn, neutral) if lag_s > 0.0 and confidence < 1.0 else drawn)
        found = rule_scores(score, lagging, np.ones(len(values), dtype=np.bool_))
        assert list(found) == pytest.approx(expected, abs=1e-9)


def test_new_labels_of_its_namespace_bring_a_refused_pod_back() -> None:
    def namespace(name: str, **labels: str) -> Namespace:
        return Namespace(metadata=ObjectMeta(name=name, labels=labels))

    def helps(old: Namespace, new: Namespace) -> bool:
        event = ClusterEvent.of(Resource.NAMESPACE, Action.UPDATE_OTHER, old, new)
        pod = make_pod(namespace="shop")
        hints = [one.hint(pod, event) for one in SignalFilter().events() if one.covers(event)]
        return QueueingHint.QUEUE in hints

    assert helps(namespace("shop"), namespace("shop", team="web"))
    assert not helps(namespace("shop", team="web"), namespace("shop", team="web"))
    assert not helps(namespace("bank"), namespace("bank", team="web"))


def test_a_rule_for_namespaces_with_certain_labels_filters_and_scores_their_pods_alone() -> None:
    match = Match(of_namespace=(SelectorTerm("team", "In", ("web",)),))
    rule = replace(filtering(match=match), score=RuleScore(DOWN))
    snapshot = world(rule, {"cpu": column([0.9, 0.1, 0.5])}, [True, False, False])
    pod = make_pod(namespace="shop")
    assert refusals(SignalFilter(), pod, snapshot) == {}
    assert SignalScore().prescore(pod, snapshot, slice(None)) is SKIP
    state = cluster_of(
        [make_node(f"n{i}") for i in range(3)],
        objects=[Namespace(metadata=ObjectMeta(name="shop", labels={"team": "web"}))],
    )
    snapshot = Snapshot(state, snapshot.signals, 0.0)
    assert refusals(SignalFilter(), pod, snapshot) == {"n0": {REJECTED}}
    assert [one.name for one in SignalScore().prescore(pod, snapshot, slice(None))] == ["cool"]  # type: ignore[union-attr]  # no Status
    assert "Namespace" in SignalScore.kinds
