from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.framework.matching_pods import MatchingPods
from scheduler.framework.pod_match import Clause, PodMatch
from scheduler.model.pods import PodInfo
from scheduler.model.selectors import EVERYTHING, NOTHING, Selector, SelectorTerm, selector_of_set
from tests.builders import make_pod, pod_of

N_ROWS = 3
WEB = selector_of_set({"app": "web"})
NOT_WEB = Selector((SelectorTerm("app", "NotIn", ("web",)),))
TIERED = Selector((SelectorTerm("tier", "Exists", ()),))


def within(selector: Selector, *namespaces: str) -> Clause:
    """Return a clause; without namespaces it holds in all of them."""
    return Clause(frozenset(namespaces) if namespaces else None, selector)


def leaving(pod: PodInfo) -> PodInfo:
    metadata = {"name": pod.name, "namespace": pod.namespace, "uid": f"{pod.uid}/leaving", "labels": pod.labels}
    return pod_of({"metadata": {**metadata, "deletionTimestamp": "2026-01-01T00:00:00Z"}})


def counting(*placed: tuple[PodInfo, int]) -> MatchingPods:
    index = MatchingPods()
    for pod, row in placed:
        index.add_pod(pod, row)
    return index


A = make_pod("a", namespace="x", labels={"app": "web"})
B = make_pod("b", namespace="x", labels={"app": "db", "tier": "back"})
C = make_pod("c", namespace="y", labels={"app": "web", "tier": "front"})
PLACED = ((A, 0), (B, 0), (C, 2), (leaving(A), 1))


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        pytest.param(PodMatch((within(WEB, "x"),)), [1, 1, 0], id="one namespace"),
        pytest.param(PodMatch((within(WEB, "x"),), is_alive=True), [1, 0, 0], id="without those being deleted"),
        pytest.param(PodMatch((within(WEB),)), [1, 1, 1], id="all namespaces"),
        pytest.param(PodMatch((within(WEB, "x", "y"),)), [1, 1, 1], id="several namespaces"),
        pytest.param(PodMatch((within(EVERYTHING, "x"),)), [2, 1, 0], id="every Pod of a namespace"),
        pytest.param(PodMatch((within(NOTHING),)), [0, 0, 0], id="nothing"),
        pytest.param(PodMatch((within(NOT_WEB),)), [1, 0, 0], id="by what a Pod lacks"),
        pytest.param(PodMatch((within(WEB), within(TIERED, "y"))), [0, 0, 1], id="all clauses hold"),
        pytest.param(
            PodMatch((within(WEB, "x"), within(WEB, "y"))), [0, 0, 0], id="clauses without a namespace in common"
        ),
        pytest.param(PodMatch((within(WEB, "z"),)), [0, 0, 0], id="a namespace without Pods"),
        pytest.param(PodMatch(()), [2, 1, 1], id="no clause holds for all"),
    ],
)
def test_counts_the_same_whether_asked_before_or_after_the_pods_came(match: PodMatch, expected: list[int]) -> None:
    before = counting()
    before.on_rows(match, N_ROWS)
    for pod, row in PLACED:
        before.add_pod(pod, row)

    assert counting(*PLACED).on_rows(match, N_ROWS).tolist() == expected
    assert before.on_rows(match, N_ROWS).tolist() == expected


def test_a_pod_that_leaves_counts_no_more() -> None:
    index = counting(*PLACED)
    match = PodMatch((within(WEB, "x"),))
    index.on_rows(match, N_ROWS)

    index.remove_pod(A, 0)

    assert index.on_rows(match, N_ROWS).tolist() == [0, 1, 0]


def test_rows_that_no_pod_ever_reached_count_zero() -> None:
    assert counting((A, 1)).on_rows(PodMatch((within(WEB, "x"),)), 100).tolist() == [0, 1, *[0] * 98]


def test_the_counts_cannot_be_written() -> None:
    counts = counting(*PLACED).on_rows(PodMatch(()), N_ROWS)

    with pytest.raises(ValueError, match="read-only"):
        counts[0] = 7


def test_what_was_asked_for_long_ago_is_forgotten_and_counted_anew() -> None:
    index = MatchingPods(capacity=2)
    matches = [PodMatch((within(WEB, namespace),)) for namespace in ("x", "y", "z")]
    for match in matches:
        index.on_rows(match, N_ROWS)
    for pod, row in PLACED:
        index.add_pod(pod, row)

    assert [index.on_rows(match, N_ROWS).tolist() for match in matches] == [[1, 1, 0], [0, 0, 1], [0, 0, 0]]


SELECTORS = st.sampled_from([EVERYTHING, NOTHING, WEB, NOT_WEB, TIERED, selector_of_set({"app": "web", "tier": "a"})])
CLAUSES = st.builds(Clause, st.none() | st.frozensets(st.sampled_from("xyz"), max_size=2), SELECTORS)
MATCHES = st.builds(PodMatch, st.lists(CLAUSES, max_size=2).map(tuple), st.booleans())


@st.composite
def placements(draw: st.DrawFn) -> tuple[PodInfo, int]:
    labels = draw(
        st.fixed_dictionaries({}, optional={"app": st.sampled_from(["web", "db"]), "tier": st.sampled_from("ab")})
    )
    pod = make_pod("pod", namespace=draw(st.sampled_from("xyz")), labels=labels, uid=draw(st.uuids()).hex)
    return leaving(pod) if draw(st.booleans()) else pod, draw(st.integers(0, N_ROWS - 1))


def recounted(match: PodMatch, placed: Iterable[tuple[PodInfo, int]]) -> list[int]:
    counts = [0] * N_ROWS
    for pod, row in placed:
        counts[row] += match.holds(pod)
    return counts


@settings(deadline=None)
@given(data=st.data())
def test_a_walk_of_pods_and_questions_counts_as_a_plain_recount(data: st.DataObject) -> None:
    index = MatchingPods(capacity=data.draw(st.integers(1, 4)))
    matches = data.draw(st.lists(MATCHES, min_size=1, max_size=6))
    placed: list[tuple[PodInfo, int]] = []
    for step in data.draw(st.lists(st.sampled_from(["add", "remove", "ask"]), max_size=30)):
        if step == "add":
            placed.append(data.draw(placements()))
            index.add_pod(*placed[-1])
        elif step == "remove" and placed:
            index.remove_pod(*placed.pop(data.draw(st.integers(0, len(placed) - 1))))
        elif step == "ask":
            match = data.draw(st.sampled_from(matches))
            assert index.on_rows(match, N_ROWS).tolist() == recounted(match, placed)
    for match in matches:
        assert index.on_rows(match, N_ROWS).tolist() == recounted(match, placed)
