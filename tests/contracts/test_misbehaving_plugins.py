"""What a third party's plugin can do wrong in `decide`: that attempt fails and names plugin, point and value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from scheduler.decision.decide import decide
from scheduler.errors import PluginError
from scheduler.framework.plugin import FilterPlugin, PostFilterPlugin, PreFilterPlugin, PreScorePlugin, ScorePlugin
from scheduler.framework.profile import Enabled, Profile
from scheduler.framework.status import Code, PostFilterResult, PreFilterResult, Rejection, ScoreTerm, Status
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.plugins import default_chain
from tests.builders import cluster_of, make_node, make_pod
from tests.builders import snapshot_of as snapshot_of_nodes

Answer = Callable[..., Any]
NODES = [make_node(name) for name in "abc"]
SKIP = Status(Code.SKIP)


class Culprit(PreFilterPlugin, FilterPlugin, PostFilterPlugin, PreScorePlugin, ScorePlugin):
    """Behaves at all points but one."""

    def __init__(self, point: str, answer: Answer) -> None:
        self._point = point
        self._answer = answer

    def _at(self, point: str, good: Any, *given: Any) -> Any:
        return self._answer(*given) if point == self._point else good

    def prefilter(self, pod: PodInfo, snapshot: Snapshot) -> Any:
        return self._at("PreFilter", PreFilterResult(), snapshot)

    def filter(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Any) -> Any:
        n = len(snapshot.nodes.alive[rows])
        refused = self._point == "PostFilter"
        return self._at("Filter", [Rejection(np.full(n, refused), Code.UNSCHEDULABLE, "refused")], n)

    def add_pod(self, state: Any, pod: PodInfo, row: int, snapshot: Snapshot) -> Any:
        return self._at("AddPod", state)

    def postfilter(self, state: Any, pod: PodInfo, snapshot: Snapshot, diagnosis: Any, dry_run: Any) -> Any:
        return self._at("PostFilter", PostFilterResult(Status(Code.UNSCHEDULABLE)))

    def prescore(self, pod: PodInfo, snapshot: Snapshot, rows: Any) -> Any:
        return self._at("PreScore", None)

    def score(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Any) -> Any:
        n = len(snapshot.nodes.alive[rows])
        return self._at("Score", [ScoreTerm("t", np.full(n, 50.0))], n)

    def normalize(self, term: ScoreTerm) -> Any:
        return self._at("NormalizeScore", term.values, len(term.values))


def fault_of(culprit: Culprit, nominated: bool = False) -> PluginError:
    base = [enabled for enabled in default_chain() if enabled.plugin.name in ("PrioritySort", "DefaultBinder")]
    profile = Profile.build("vane", [*base, Enabled(culprit)])
    state = cluster_of(NODES)
    if nominated:
        rival = make_pod("rival", nominated="a", priority=5)
        state.nominated["a"] = {rival.uid: rival}
    with pytest.raises(PluginError) as caught:
        decide(make_pod(), Snapshot(state, snapshot_of_nodes([]).signals, 0.0), profile)
    return caught.value


def raises(*_: Any) -> Any:
    raise ValueError("42 is wrong")


POINTS = {
    "PreFilter": 'running PreFilter plugin "Culprit": 42 is wrong',
    "Filter": 'running "Culprit" filter plugin: 42 is wrong',
    "PostFilter": 'running PostFilter plugin "Culprit": 42 is wrong',
    "PreScore": 'running PreScore plugin "Culprit": 42 is wrong',
    "Score": 'running Score plugin "Culprit": 42 is wrong',
    "NormalizeScore": 'running NormalizeScore plugin "Culprit": 42 is wrong',
}


@pytest.mark.parametrize("point", POINTS)
def test_a_plugin_that_raises_fails_the_attempt(point: str) -> None:
    fault = fault_of(Culprit(point, raises))
    assert (fault.plugin, fault.point, str(fault)) == ("Culprit", point, POINTS[point])


def test_an_error_without_words_is_named_by_its_class() -> None:
    def bare(*_: Any) -> Any:
        raise KeyError

    assert str(fault_of(Culprit("Score", bare))) == 'running Score plugin "Culprit": KeyError'


def test_one_that_raises_when_a_pod_is_added_fails_the_attempt() -> None:
    fault = fault_of(Culprit("AddPod", raises), nominated=True)
    assert (fault.plugin, str(fault)) == ("Culprit", POINTS["Filter"])


def test_one_that_writes_into_the_snapshot_fails_the_attempt() -> None:
    def writes(snapshot: Snapshot) -> Any:
        snapshot.nodes.allocatable[:] = 0

    assert "read-only" in str(fault_of(Culprit("PreFilter", writes)))


def test_a_generator_that_raises_half_way_fails_the_attempt() -> None:
    def half(n: int) -> Any:
        yield Rejection(np.zeros(n, dtype=np.bool_), Code.UNSCHEDULABLE, "r")
        raises()

    assert str(fault_of(Culprit("Filter", half))) == POINTS["Filter"]


def term(values: Any, weight: Any = None, name: Any = "t") -> Answer:
    return lambda n: [ScoreTerm(name, values(n), weight)]


def mask(values: Any, code: Any = Code.UNSCHEDULABLE, reason: Any = "r") -> Answer:
    return lambda n: [Rejection(values(n), code, reason)]


def const(value: Any) -> Answer:
    return lambda *_: value


TO_REFUSE = "it should be PreFilterResult, SKIP or a refusal"
AFTER = "it should in the range of [0, 100] after normalizing"


@pytest.mark.parametrize(
    ("point", "answer", "expected"),
    [
        pytest.param("PreFilter", const(None), f"returns None from PreFilter, {TO_REFUSE}", id="prefilter None"),
        pytest.param("PreFilter", const(True), f"returns True from PreFilter, {TO_REFUSE}", id="prefilter bool"),
        pytest.param(
            "PreFilter",
            const(Status(Code.SUCCESS)),
            f"returns Status(code=<Code.SUCCESS: 0>, reasons=()) from PreFilter, {TO_REFUSE}",
            id="prefilter success",
        ),
        pytest.param(
            "PreFilter",
            const(Status(Code.UNSCHEDULABLE, "why")),  # type: ignore[arg-type]
            f"returns Status(code=<Code.UNSCHEDULABLE: 2>, reasons='why') from PreFilter, {TO_REFUSE}",
            id="prefilter reason that is no tuple",
        ),
        pytest.param(
            "PreFilter",
            const(PreFilterResult(node_names=["a"])),  # type: ignore[arg-type]
            "returns node names ['a'] from PreFilter, it should be a frozenset or None",
            id="prefilter list of nodes",
        ),
        pytest.param(
            "Filter", const(None), "returns None from Filter, it should be a sequence of Rejection", id="filter None"
        ),
        pytest.param(
            "Filter", const([True]), "returns True from Filter, it should be Rejection", id="filter list of bool"
        ),
        pytest.param(
            "Filter",
            mask(lambda n: [True] * n),
            "returns a mask [True, True, True] from Filter, it should be a bool array of (3,)",
            id="filter mask that is a list",
        ),
        pytest.param(
            "Filter",
            mask(lambda n: np.zeros(n + 1, dtype=np.bool_)),
            "returns a mask of bool (4,), it should be bool (3,)",
            id="filter mask of another shape",
        ),
        pytest.param(
            "Filter",
            mask(lambda n: np.zeros(n)),
            "returns a mask of float64 (3,), it should be bool (3,)",
            id="filter mask of floats",
        ),
        pytest.param(
            "Filter",
            mask(lambda n: np.ones(n, dtype=np.bool_), Code.SKIP),
            "returns the code <Code.SKIP: 1> from Filter, it should be UNSCHEDULABLE, UNSCHEDULABLE_AND_UNRESOLVABLE"
            " or ERROR",
            id="filter code",
        ),
        pytest.param(
            "Filter",
            mask(lambda n: np.ones(n, dtype=np.bool_), reason=None),
            "returns the reason None from Filter, it should be a text",
            id="filter reason",
        ),
        pytest.param(
            "PostFilter",
            const(None),
            "returns None from PostFilter, it should be PostFilterResult",
            id="postfilter None",
        ),
        pytest.param(
            "PostFilter",
            const(PostFilterResult(SKIP)),
            "returns the refusal Status(code=<Code.SKIP: 1>, reasons=()) from PostFilter,"
            " it should be a refusal or None",
            id="postfilter skip",
        ),
        pytest.param(
            "PostFilter",
            const(PostFilterResult(None, 7)),  # type: ignore[arg-type]
            "returns the nominated node 7 from PostFilter, it should be a name or None",
            id="postfilter node",
        ),
        pytest.param(
            "Score", const(None), "returns None from Score, it should be a sequence of ScoreTerm", id="score None"
        ),
        pytest.param("Score", const([7]), "returns 7 from Score, it should be ScoreTerm", id="score list of numbers"),
        pytest.param(
            "Score",
            term(lambda n: [1.0] * n),
            "returns scores [1.0, 1.0, 1.0] from Score, it should be an array of (3,)",
            id="score list",
        ),
        pytest.param(
            "Score",
            term(lambda n: np.zeros(n - 1)),
            "returns scores of shape (2,), it should be (3,)",
            id="score shape",
        ),
        pytest.param(
            "Score",
            term(lambda n: np.zeros((1, n))),
            "returns scores of shape (1, 3), it should be (3,)",
            id="score 2-d",
        ),
        pytest.param(
            "Score",
            term(lambda n: np.zeros(n, dtype=np.float32)),
            "returns scores of type float32, it should be int64 or float64",
            id="score float32",
        ),
        pytest.param(
            "Score",
            term(lambda n: np.array(["a"] * n)),
            "returns scores of type <U1, it should be int64 or float64",
            id="score texts",
        ),
        pytest.param(
            "Score", term(lambda n: np.full(n, np.nan)), f"returns an invalid score nan, {AFTER}", id="score NaN"
        ),
        pytest.param(
            "Score",
            term(lambda n: np.array([1.0, np.nan, 2.0])),
            f"returns an invalid score nan, {AFTER}",
            id="score one NaN",
        ),
        pytest.param(
            "Score", term(lambda n: np.full(n, np.inf)), f"returns an invalid score inf, {AFTER}", id="score infinite"
        ),
        pytest.param(
            "Score",
            term(lambda n: np.array([0, 101, 5])),
            f"returns an invalid score 101, {AFTER}",
            id="score above the range",
        ),
        pytest.param(
            "Score",
            term(lambda n: np.array([-0.5, 101, 5])),
            f"returns an invalid score -0.5, {AFTER}",
            id="score below the range",
        ),
        pytest.param("Score", term(np.zeros, float("nan")), "returns weight nan for 't'", id="weight NaN"),
        pytest.param("Score", term(np.zeros, -1), "returns weight -1 for 't'", id="weight below the range"),
        pytest.param("Score", term(np.zeros, 100.5), "returns weight 100.5 for 't'", id="weight above the range"),
        pytest.param("Score", term(np.zeros, "5"), "returns weight '5' for 't'", id="weight text"),
        pytest.param(
            "Score",
            term(np.zeros, name=3),
            "returns the name of a term 3 from Score, it should be a text",
            id="score name",
        ),
        pytest.param(
            "NormalizeScore",
            const(None),
            "returns scores None from NormalizeScore, it should be an array of (3,)",
            id="normalize None",
        ),
        pytest.param(
            "NormalizeScore",
            lambda n: np.full(n, 1e6),
            f"returns an invalid score 1000000.0, {AFTER}",
            id="normalize beyond the range",
        ),
    ],
)
def test_an_answer_that_breaks_the_contract_fails_the_attempt(point: str, answer: Answer, expected: str) -> None:
    fault = fault_of(Culprit(point, answer))
    assert fault.plugin == "Culprit"
    assert fault.point in (point, "Score")
    assert str(fault) == f'plugin "Culprit" {expected}'


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (lambda: np.zeros(2), "returns scores of shape (2,), it should be (3,)"),
        (lambda: np.array([0.0, np.nan, 0.0]), f"returns an invalid score nan, {AFTER}"),
    ],
)
def test_a_column_that_breaks_the_contract_fails_the_attempt(column: Callable[[], Any], expected: str) -> None:
    culprit = Culprit("Score", lambda n: [ScoreTerm("t", column(), is_column=True)])
    assert str(fault_of(culprit)) == f'plugin "Culprit" {expected}'


def test_a_long_value_is_cut() -> None:
    fault = fault_of(Culprit("PreFilter", const("x" * 1000)))
    assert len(str(fault)) < 250


def test_prescore_that_refuses_is_a_fault() -> None:
    fault = fault_of(Culprit("PreScore", const(Status(Code.UNSCHEDULABLE, ("no",)))))
    assert str(fault) == 'running PreScore plugin "Culprit": no'
