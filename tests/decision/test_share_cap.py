"""The share cap: w' = min(w, s / (1 - s) · others)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.decision.decide import decide
from scheduler.decision.share_cap import capped_weights
from scheduler.errors import PluginError
from scheduler.framework.plugin import PreScorePlugin, ScorePlugin
from scheduler.framework.profile import Enabled, Profile
from scheduler.framework.status import SKIP, ScoreTerm, Status
from scheduler.model.arrays import Rows
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.plugins import default_chain
from tests.builders import default_profile, make_node, make_pod, snapshot_of

NODES = [make_node(name) for name in "abcd"]


@pytest.mark.parametrize(
    ("fixed", "weights", "shares", "expected"),
    [
        pytest.param(14.0, [5.0], [0.3], [5.0], id="below the cap: as written"),
        pytest.param(14.0, [20.0], [0.3], [6.0], id="3/7 of 14"),
        pytest.param(14.0, [20.0], [0.5], [14.0], id="half of the whole"),
        pytest.param(14.0, [20.0], [1.0], [20.0], id="100 %: no cap"),
        pytest.param(14.0, [20.0], [None], [20.0], id="no share: no cap"),
        pytest.param(0.0, [20.0], [0.3], [20.0], id="alone: no share to keep to"),
        pytest.param(0.0, [20.0, 20.0], [0.5, 0.5], [20.0, 20.0], id="two alone with equal weight"),
        pytest.param(0.0, [30.0, 10.0], [0.5, 0.5], [10.0, 10.0], id="two alone: the heavier is capped"),
        pytest.param(10.0, [40.0, 4.0], [0.5, 0.3], [14.0, 4.0], id="others count as written"),
        pytest.param(14.0, [0.0], [0.3], [0.0], id="no weight"),
        pytest.param(14.0, [], [], [], id="no terms"),
    ],
)
def test_the_formula(fixed: float, weights: list[float], shares: list[float | None], expected: list[float]) -> None:
    assert capped_weights(fixed, weights, shares) == pytest.approx(expected)


@given(
    fixed=st.integers(0, 40),
    rules=st.lists(st.tuples(st.floats(0.001, 100.0), st.floats(0.01, 1.0)), min_size=1, max_size=12),
    random=st.randoms(use_true_random=False),
)
def test_no_term_has_more_than_its_share_and_the_order_does_not_matter(
    fixed: int, rules: list[tuple[float, float]], random: Random
) -> None:
    weights, shares = [weight for weight, _ in rules], [share for _, share in rules]

    found = capped_weights(fixed, weights, shares)

    for i, (weight, share) in enumerate(rules):
        others = fixed + sum(weights[:i]) + sum(weights[i + 1 :])
        assert found[i] <= weight
        if others > 0.0:
            assert found[i] / (found[i] + others) <= share + 1e-9
    order = random.sample(range(len(rules)), len(rules))
    assert capped_weights(fixed, [weights[i] for i in order], [shares[i] for i in order]) == [found[i] for i in order]


class Fixed(ScorePlugin):
    """The same points for every node, at the weight in the profile."""

    def score(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[ScoreTerm]:
        return [ScoreTerm("fixed", np.full(snapshot.nodes.n_rows, 50)[rows])]


class SometimesSilent(PreScorePlugin, Fixed):
    """Has nothing to say of a Pod named so."""

    def prescore(self, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> object | Status:
        return SKIP if pod.name == "silent" else None


class Rules(ScorePlugin):
    """Brings terms with weights of their own."""

    brings_weights = True

    def __init__(self, *terms: tuple[float | None, float | None], is_column: bool = True) -> None:
        self._terms = terms
        self._is_column = is_column

    def score(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[ScoreTerm]:
        values = np.linspace(0.0, 100.0, snapshot.nodes.n_rows)
        given = values if self._is_column else values[rows]
        return [
            ScoreTerm(f"r{i}", given, weight, self._is_column, share) for i, (weight, share) in enumerate(self._terms)
        ]


def profile(*scorers: tuple[ScorePlugin, int]) -> Profile:
    base = [enabled for enabled in default_chain() if enabled.plugin.name in ("PrioritySort", "DefaultBinder")]
    return Profile.build("vane", [*base, *(Enabled(plugin, weight) for plugin, weight in scorers)])


def test_terms_are_weighed_with_the_cap_and_remember_what_was_written() -> None:
    rules = Rules((20.0, 0.3), (1.0, 0.3))
    decision = decide(make_pod(), snapshot_of(NODES), profile((Fixed(), 6), (rules, 77)))

    weights = {term.name: (term.weight, term.written_weight) for term in decision.terms}
    assert weights == {"fixed": (6.0, 6.0), "r0": (pytest.approx(3.0), 20.0), "r1": (1.0, 1.0)}
    assert decision.total.tolist() == [300_000, 300_000 + 133_333, 300_000 + 266_667, 300_000 + 400_000]
    assert decision.total.tolist() == sum(term.contribution for term in decision.terms).tolist()  # type: ignore[union-attr]


def test_a_plugin_that_has_nothing_to_say_counts_as_the_profile_says() -> None:
    plugins = profile((SometimesSilent(), 7), (Rules((20.0, 0.3)), 1))

    loud, silent = (decide(make_pod(name), snapshot_of(NODES), plugins) for name in ("loud", "silent"))

    assert [term.name for term in silent.terms] == ["r0"]
    weights = [term.weight for one in (loud, silent) for term in one.terms if term.name == "r0"]
    assert weights == [pytest.approx(3.0)] * 2


def test_the_weight_of_the_default_profile_against_rules() -> None:
    weights = {enabled.plugin.name: enabled.weight for enabled in default_chain()}
    assert default_profile().fixed_weight == sum(
        weights[plugin.name] for plugin, _ in default_profile().score if plugin.name != "SignalScore"
    )


@pytest.mark.parametrize(
    ("weight", "share", "words"),
    [(None, 0.3, "weight None"), (1.0, 0.0, "share 0.0"), (1.0, 1.5, "share 1.5"), (1.0, float("nan"), "share nan")],
)
def test_a_term_outside_the_contract_fails_the_attempt_by_name(weight: float | None, share: float, words: str) -> None:
    with pytest.raises(PluginError, match=words):
        decide(make_pod(), snapshot_of(NODES), profile((Fixed(), 6), (Rules((weight, share)), 1)))


def test_a_weight_of_its_own_takes_a_finished_column() -> None:
    with pytest.raises(PluginError, match="no column for 'r0'"):
        decide(make_pod(), snapshot_of(NODES), profile((Fixed(), 6), (Rules((1.0, 0.3), is_column=False), 1)))
