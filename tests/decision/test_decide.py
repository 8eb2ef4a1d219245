"""What `decide` promises whatever the plugins are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.decision.decide import decide
from scheduler.errors import PluginError, UnsupportedPodError
from scheduler.framework.plugin import FilterPlugin, PreFilterPlugin, ScorePlugin
from scheduler.framework.profile import Enabled, Profile
from scheduler.framework.status import Code, PreFilterResult, Rejection, ScoreTerm, Status
from scheduler.model.arrays import Rows
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.plugins import default_chain
from tests.builders import default_profile, make_node, make_pod, snapshot_of


class Fixed(ScorePlugin):
    """Gives the scores it was made with, by row."""

    def __init__(self, scores: Sequence[float], weight: float | None = None) -> None:
        self._scores = np.array(scores)
        self._weight = weight

    def score(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[ScoreTerm]:
        return [ScoreTerm("fixed", self._scores[rows], self._weight)]


class Refusing(FilterPlugin):
    """Refuses the rows it was made with."""

    def __init__(self, mask: Sequence[bool]) -> None:
        self._mask = np.array(mask)

    def filter(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        return [Rejection(self._mask[rows], Code.UNSCHEDULABLE, "node(s) were refused")]


class Sets(PreFilterPlugin):
    """Leaves only the nodes it was made with."""

    def __init__(self, *names: str) -> None:
        self._names = frozenset(names)

    def prefilter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status:
        return PreFilterResult(node_names=self._names)


class OtherSets(Sets):
    """A second one."""


def profile(*plugins: Any) -> Profile:
    base = [enabled for enabled in default_chain() if enabled.plugin.name in ("PrioritySort", "DefaultBinder")]
    return Profile.build("vane", [*base, *(Enabled(plugin) for plugin in plugins)])


NODES = [make_node(name) for name in "abcd"]


def test_the_highest_total_wins_and_parts_add_up() -> None:
    decision = decide(make_pod(), snapshot_of(NODES), profile(Fixed([10, 80, 30, 79.9])))

    assert decision.node_name == "b"
    assert decision.total.tolist() == [10_000, 80_000, 30_000, 79_900]
    assert decision.total.dtype == np.int64


def test_a_contribution_is_rounded_to_thousandths_once() -> None:
    decision = decide(make_pod(), snapshot_of(NODES), profile(Fixed([100 / 3, 200 / 3, 0, 0], weight=0.7)))

    assert decision.total.tolist() == [23_333, 46_667, 0, 0]


@given(
    uids=st.lists(st.text(min_size=1), min_size=20, max_size=20, unique=True), seed=st.randoms(use_true_random=False)
)
def test_ties_do_not_depend_on_the_order_of_nodes(uids: list[str], seed: Any) -> None:
    shuffled = list(NODES)
    seed.shuffle(shuffled)
    equal = profile(Fixed([50, 50, 50, 50]))
    for uid in uids:
        here, there = snapshot_of(NODES), snapshot_of(shuffled)
        assert decide(make_pod(uid=uid), here, equal).node_name == decide(make_pod(uid=uid), there, equal).node_name


def test_ties_are_spread_over_all_the_best() -> None:
    equal, snapshot = profile(Fixed([50, 50, 50, 0])), snapshot_of(NODES)

    chosen = [decide(make_pod(uid=f"uid-{i}"), snapshot, equal).node_name for i in range(300)]

    assert set(chosen) == {"a", "b", "c"}
    assert all(70 < chosen.count(name) < 130 for name in "abc")


def test_a_single_feasible_node_is_taken_unscored() -> None:
    decision = decide(make_pod(), snapshot_of(NODES), profile(Refusing([True, True, False, True]), Fixed([np.nan] * 4)))

    assert (decision.node_name, decision.terms) == ("c", ())


def test_no_node_at_all() -> None:
    decision = decide(make_pod(), snapshot_of([]), profile())

    assert not decision.is_scheduled
    assert decision.diagnosis.message() == "no nodes available to schedule pods"


def test_every_node_refused_is_told_with_counts() -> None:
    decision = decide(make_pod(), snapshot_of(NODES), profile(Refusing([True] * 4)))

    assert decision.diagnosis.message() == "0/4 nodes are available: 4 node(s) were refused."
    assert decision.diagnosis.plugins == {"Refusing"}


def test_nodes_outside_the_sets_of_prefilter_are_refused_by_name() -> None:
    decision = decide(make_pod(), snapshot_of(NODES), profile(Sets("a", "b"), Refusing([True, True, False, False])))

    message = "0/4 nodes are available: 2 node(s) didn't satisfy plugin(s) [Sets], 2 node(s) were refused."
    assert decision.diagnosis.message() == message


def test_disjoint_sets_of_prefilter_end_the_attempt() -> None:
    decision = decide(make_pod(), snapshot_of(NODES), profile(Sets("a"), OtherSets("b")))

    message = "0/4 nodes are available: node(s) didn't satisfy plugin(s) [OtherSets Sets] simultaneously."
    assert decision.diagnosis.message() == message


def test_the_nominated_node_is_taken_before_better_ones() -> None:
    decision = decide(make_pod(nominated="d"), snapshot_of(NODES), profile(Fixed([99, 99, 99, 0])))

    assert (decision.node_name, decision.nominated, decision.terms) == ("d", True, ())


def test_a_refused_nomination_falls_back_to_all_nodes() -> None:
    plugins = profile(Fixed([0, 99, 0, 0]), Refusing([False, False, False, True]))

    assert decide(make_pod(nominated="d"), snapshot_of(NODES), plugins).node_name == "b"


def test_room_promised_to_a_pod_of_the_same_priority_is_not_given_away() -> None:
    nodes = [make_node("a", cpu="2"), make_node("b", cpu="2")]
    promised = make_pod("first", uid="u1", nominated="a", cpu="2", priority=10)
    chain = Profile.build("vane", default_chain())

    equal = decide(make_pod("second", uid="u2", cpu="1", priority=10), snapshot_of(nodes, [promised]), chain)
    above = decide(make_pod("third", uid="u3", cpu="1", priority=11), snapshot_of(nodes, [promised]), chain)

    assert equal.feasible.tolist() == [1]
    assert above.feasible.tolist() == [0, 1]


def test_candidates_limit_who_is_looked_at() -> None:
    decision = decide(make_pod(), snapshot_of(NODES), profile(Fixed([99, 1, 2, 3])), candidates=np.array([1, 2]))

    assert decision.node_name == "c"


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        pytest.param([1, 2, np.nan, 4], "invalid score nan", id="NaN"),
        pytest.param([1, 2, np.inf, 4], "invalid score inf", id="infinite"),
        pytest.param([1, 2, 101, 4], "invalid score 101", id="above 100"),
        pytest.param([1, 2, -1, 4], "invalid score -1", id="below 0"),
    ],
)
def test_a_score_outside_the_contract_fails_the_attempt_by_name(scores: list[float], words: str) -> None:
    with pytest.raises(PluginError, match=words) as raised:
        decide(make_pod(), snapshot_of(NODES), profile(Fixed(scores)))

    assert raised.value.plugin == "Fixed"


def test_a_mask_of_the_wrong_shape_fails_the_attempt_by_name() -> None:
    class Short(FilterPlugin):
        def filter(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
            return [Rejection(np.zeros(1, dtype=np.bool_), Code.UNSCHEDULABLE, "x")]

    with pytest.raises(PluginError, match=r'plugin "Short" returns a mask of bool \(1,\), it should be bool \(4,\)'):
        decide(make_pod(), snapshot_of(NODES), profile(Short()))


def test_a_fault_on_a_node_counts_only_where_no_earlier_plugin_refuses() -> None:
    class Faulty(FilterPlugin):
        def filter(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
            return [Rejection(np.array([True, False, False, False])[rows], Code.ERROR, "broken")]

    decided = decide(make_pod(), snapshot_of(NODES), profile(Refusing([True, False, True, True]), Faulty()))

    assert decided.node_name == "b"
    with pytest.raises(PluginError, match='running "Faulty" filter plugin: broken'):
        decide(make_pod(), snapshot_of(NODES), profile(Faulty(), Refusing([True, False, True, True])))


def test_what_is_not_built_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedPodError, match=r"spec\.resourceClaims"):
        decide(make_pod(spec={"resourceClaims": [{"name": "gpu"}]}), snapshot_of(NODES), profile())


def named_in(*names: str) -> dict[str, Any]:
    fields = [{"key": "metadata.name", "operator": "In", "values": list(names)}]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def test_a_nominated_node_outside_the_allowed_ones_is_refused_for_its_own_reason() -> None:
    nodes = [make_node(name, cpu="1") for name in ("a", "b", "c")]
    pod = make_pod(nominated="b", cpu="2", spec=named_in("a"))

    message = decide(pod, snapshot_of(nodes), default_profile()).diagnosis.message()

    assert "1 node(s) didn't match Pod's node affinity/selector" in message
    assert "1 node(s) didn't satisfy plugin(s) [NodeAffinity]" in message


def test_who_refuses_the_nominated_node_is_named_beside_the_node_sets_too() -> None:
    nodes = [make_node("a", cpu="1"), make_node("b", taints=[{"key": "k", "effect": "NoSchedule"}]), make_node("c")]
    pod = make_pod(nominated="b", cpu="2", spec=named_in("a"))

    message = decide(pod, snapshot_of(nodes), default_profile()).diagnosis.message()

    assert "1 node(s) didn't satisfy plugin(s) [NodeAffinity TaintToleration]" in message


def test_where_two_plugins_allow_no_common_node_both_are_told_of_events() -> None:
    pod = make_pod(spec={**named_in("a"), "nodeName": "b"})

    diagnosis = decide(pod, snapshot_of([make_node("a"), make_node("b")]), default_profile()).diagnosis

    assert diagnosis.plugins == {"NodeAffinity", "NodeName"}
