from __future__ import annotations

import re

import pytest

from scheduler.signals import problems
from scheduler.signals.answers import Drops, SignalAnswer
from scheduler.signals.asking import query_errors
from scheduler.signals.asking.query_errors import QueryError, rejection
from scheduler.signals.problems import MissingReason, SignalProblem, problems_of, words_of

ERRORS = [one for one in vars(query_errors).values() if isinstance(one, type) and issubclass(one, QueryError)]


def answer(**fields: object) -> SignalAnswer:
    return SignalAnswer("s", "", 1, 60.0, 0.0, **fields)  # type: ignore[arg-type]  # fields by name


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: str(error.__name__))
def test_every_way_in_which_a_query_fails_is_on_the_list(error: type[QueryError]) -> None:
    assert problems_of(answer(error="it failed", error_kind=error.kind)) == (SignalProblem(error.kind),)


def test_the_list_says_what_each_means() -> None:
    rows = re.findall(r"^\| (`.*?`) \| \S", problems.__doc__ or "", re.M)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == set(SignalProblem)


def test_every_reason_to_drop_a_sample_is_a_problem_and_a_lack() -> None:
    reasons = set(Drops.__struct_fields__) - {"unmapped"}
    assert reasons <= set(SignalProblem)
    assert reasons <= set(MissingReason)


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"error": "x", "error_kind": "never heard of"}, "other"),
        ({}, "empty"),
        ({"n_series": 2, "n_mapped": 2}, ""),
        ({"n_series": 2, "n_mapped": 2, "is_suspect": True}, "partial"),
        ({"is_suspect": True}, "empty"),
        ({"n_series": 2, "n_mapped": 2, "is_suspect": True, "warnings": ("w",)}, "warnings"),
        ({"n_series": 2, "drops": Drops(unmapped=2)}, "unmapped"),
        ({"n_series": 3, "n_mapped": 1, "drops": Drops(unmapped=2)}, ""),
        ({"n_series": 3, "n_mapped": 1, "drops": Drops(nan=1, inf=1)}, "nan inf"),
        ({"n_series": 3, "n_mapped": 1, "drops": Drops(stale=1), "is_suspect": True}, "partial stale"),
        ({"n_series": 3, "n_mapped": 3, "lag_by_key": {"n1": 40.0}}, "stale"),
        ({"n_series": 3, "n_mapped": 2, "lag_by_key": {"n1": 40.0}, "drops": Drops(nan=1, stale=1)}, "stale nan"),
        ({"n_series": 3, "n_mapped": 3, "clock_skew_s": -7200.0}, "clock_skew"),
        ({"n_series": 3, "n_mapped": 3, "clock_skew_s": 2.0}, ""),
    ],
)
def test_problems_of_an_answer_come_gravest_first(fields: dict[str, object], found: str) -> None:
    assert [problem.value for problem in problems_of(answer(**fields))] == found.split()


@pytest.mark.parametrize("problem", SignalProblem)
def test_words_have_no_numbers_that_change(problem: SignalProblem) -> None:
    assert words_of(problem)
    assert not any(character.isdigit() for character in words_of(problem))


@pytest.mark.parametrize(
    ("status", "error_type", "kind", "is_outage"),
    [
        (401, "", "unauthorized", True),
        (403, "", "unauthorized", False),
        (404, "", "rejected", False),
        (422, "execution", "rejected", False),
        (500, "", "server_error", False),
        (502, "", "server_error", True),
        (503, "", "server_error", True),
        (503, "timeout", "timeout", False),
        (503, "execution", "rejected", False),
    ],
)
def test_a_status_tells_who_is_not_well(status: int, error_type: str, kind: str, is_outage: bool) -> None:
    error = rejection(status, error_type, "text")
    assert (error.kind, error.is_outage) == (kind, is_outage)
