"""What placed Pods carry, matched in columns, beside asking each term."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.model.affinity_terms import AffinityTerm
from scheduler.model.selectors import EVERYTHING, NOTHING, Selector, SelectorTerm
from scheduler.plugins.inter_pod_affinity.term_table import Carried, Role, Subject, TermTable

KEYS = st.sampled_from(["app", "tier"])
VALUES = st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True).map(sorted).map(tuple)
REQUIREMENTS = st.one_of(
    st.builds(SelectorTerm, KEYS, st.sampled_from(["In", "NotIn"]), VALUES),
    st.builds(SelectorTerm, KEYS, st.sampled_from(["Exists", "DoesNotExist"]), st.just(())),
)
SELECTORS = st.one_of(
    st.sampled_from([EVERYTHING, NOTHING]), st.lists(REQUIREMENTS, max_size=4, unique=True).map(tuple).map(Selector)
)
TERMS = st.builds(
    AffinityTerm, st.sampled_from(["zone", "host"]), st.frozensets(st.sampled_from("xyz")), SELECTORS, SELECTORS
)
CARRIED = st.builds(Carried, st.sampled_from(Role), st.integers(-3, 3), TERMS, st.integers(0, 2))
LABELS = st.dictionaries(KEYS, st.sampled_from("abc")).map(lambda labels: frozenset(labels.items()))
SUBJECTS = st.builds(Subject, st.sampled_from("xyz"), LABELS, LABELS, st.none() | st.integers(0, 3))


def means(carried: Carried, subject: Subject) -> bool:
    is_below = subject.below is None or carried.priority < subject.below
    labels, namespace_labels = dict(subject.labels), dict(subject.namespace_labels)
    return is_below and carried.term.matches(subject.namespace, labels, namespace_labels)


@settings(deadline=None)
@given(
    terms=st.lists(CARRIED, max_size=80, unique=True),
    later=st.lists(CARRIED, max_size=20, unique=True),
    n_gone=st.integers(0, 80),
    subjects=st.lists(SUBJECTS, min_size=1, max_size=4),
)
def test_all_terms_at_once_are_each_term_by_itself(
    terms: list[Carried], later: list[Carried], n_gone: int, subjects: list[Subject]
) -> None:
    table = TermTable(1)
    numbers = {one: table.add(one) for one in terms}
    for one in terms[:n_gone]:
        table.remove(numbers.pop(one))
    numbers |= {one: table.add(one) for one in later if one not in numbers}

    assert len(set(numbers.values())) == len(numbers)
    for subject in subjects:
        found = table.matching(subject)
        assert {one for one, number in numbers.items() if found[number]} == {
            one for one in numbers if means(one, subject)
        }
        assert int(found.sum()) == sum(means(one, subject) for one in numbers)
    assert {domain: n for domain, (_, n) in table.domains.items()} == {
        domain: sum(one.domain == domain for one in numbers) for domain in {one.domain for one in numbers}
    }
