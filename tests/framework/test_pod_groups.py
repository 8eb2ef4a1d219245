"""Groups of Pods found in columns, beside asking each Pod; and the bound on what that may cost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.errors import UnsupportedPodError
from scheduler.framework.matching_pods import MatchingPods
from scheduler.framework.pod_match import Clause, PodMatch, Work
from scheduler.model.pods import PodInfo
from scheduler.model.selectors import EVERYTHING, NOTHING, Selector, SelectorTerm
from tests.builders import make_pod, pod_of

N_ROWS = 3
PATH = "spec.affinity"

KEYS = st.sampled_from(["app", "tier", "id"])
VALUES = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=3, unique=True).map(sorted).map(tuple)
REQUIREMENTS = st.one_of(
    st.builds(SelectorTerm, KEYS, st.sampled_from(["In", "NotIn"]), VALUES),
    st.builds(SelectorTerm, KEYS, st.sampled_from(["Exists", "DoesNotExist"]), st.just(())),
)
SELECTORS = st.one_of(
    st.sampled_from([EVERYTHING, NOTHING]), st.lists(REQUIREMENTS, max_size=3, unique=True).map(tuple).map(Selector)
)
CLAUSES = st.builds(Clause, st.none() | st.frozensets(st.sampled_from("xyz"), max_size=3), SELECTORS)
MATCHES = st.builds(
    PodMatch, st.lists(CLAUSES, max_size=2).map(tuple), st.booleans(), st.none() | st.sampled_from([0, 1, 2])
)


@st.composite
def pods(draw: st.DrawFn) -> PodInfo:
    labels = draw(st.dictionaries(KEYS, st.sampled_from("abcdefgh"), max_size=3))
    metadata = {"name": "pod", "namespace": draw(st.sampled_from("xyz")), "uid": draw(st.uuids()).hex, "labels": labels}
    if draw(st.booleans()):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return pod_of({"metadata": metadata, "spec": {"priority": draw(st.sampled_from([0, 1]))}})


PLACED = st.lists(st.tuples(pods(), st.integers(0, N_ROWS - 1)), max_size=40)
WANTED = st.lists(st.tuples(st.integers(0, 1), MATCHES, st.integers(-100, 100)), max_size=12)


@settings(deadline=None)
@given(placed=PLACED, n_gone=st.integers(0, 40), wanted=WANTED, asked=st.lists(pods(), max_size=3))
def test_sums_by_group_are_those_of_all_pods(
    placed: list[tuple[PodInfo, int]], n_gone: int, wanted: list[tuple[int, PodMatch, int]], asked: list[PodInfo]
) -> None:
    index = MatchingPods()
    for pod, row in placed:
        index.add_pod(pod, row)
    for pod, row in placed[:n_gone]:
        index.remove_pod(pod, row)
    there = placed[n_gone:]

    sums = index.added_up(wanted, 2, Work(PATH))
    counts, weights = sums.on_rows(N_ROWS)

    for at in range(2):
        mine = [(match, weight) for one, match, weight in wanted if one == at]
        for row in range(N_ROWS):
            held = [(pod, weight) for pod, on in there if on == row for match, weight in mine if match.holds(pod)]
            assert counts[at, row] == len(held)
            assert weights[at, row] == sum(weight for _, weight in held)
            assert sums.below(1, N_ROWS)[at, row] == sum(pod.priority < 1 for pod, _ in held)
        for pod in [*asked, *(pod for pod, _ in there)]:
            assert sums.held_by([pod])[at, 0] == sum(match.holds(pod) for match, _ in mine)


@settings(deadline=None)
@given(placed=PLACED, match=MATCHES)
def test_groups_are_found_whether_they_are_few_or_many(placed: list[tuple[PodInfo, int]], match: PodMatch) -> None:
    """Beside others in so great a number that groups are looked at in columns."""
    crowd = [
        (make_pod(f"c{i}", namespace="xyz"[i % 3], labels={"app": "abc"[i % 3], "id": str(i)}), i % N_ROWS)
        for i in range(40)
    ]
    index = MatchingPods()
    for pod, row in (*crowd, *placed):
        index.add_pod(pod, row)

    expected = [sum(match.holds(pod) for pod, on in (*crowd, *placed) if on == row) for row in range(N_ROWS)]
    assert index.on_rows(match, N_ROWS).tolist() == expected
    assert index.added_up([(0, match, 1)], 1, Work(PATH)).on_rows(N_ROWS)[0][0].tolist() == expected


def test_a_pod_that_comes_as_a_new_group_is_not_taken_for_the_one_whose_number_it_got() -> None:
    index = MatchingPods()
    web, db = make_pod("web", labels={"app": "web"}), make_pod("db", labels={"app": "db"})
    index.add_pod(web, 0)
    match = PodMatch((Clause(None, Selector((SelectorTerm("app", "In", ("web",)),))),))
    sums = index.added_up([(0, match, 1)], 1, Work(PATH))
    index.remove_pod(web, 0)
    index.add_pod(db, 0)

    assert sums.held_by([db, web]).tolist() == [[0, 1]]


def test_the_work_is_bounded_and_the_refusal_says_what_and_how_much() -> None:
    index = MatchingPods()
    for i in range(100):
        index.add_pod(make_pod(f"p{i}", labels={"id": str(i)}), 0)
    wanted = [(0, PodMatch((Clause(None, Selector((SelectorTerm("id", "NotIn", (str(i),)),))),)), 1) for i in range(50)]

    index.added_up(wanted, 1, Work(PATH, most=150_000))
    with pytest.raises(UnsupportedPodError) as caught:
        index.added_up(wanted, 1, Work(PATH, most=50_000))
    assert str(caught.value) == (
        "spec.affinity: its selectors take more than 50,000 comparisons with the labels of placed Pods, "
        "the most that Vane makes for one Pod"
    )
