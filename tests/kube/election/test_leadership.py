"""When a term begins, is made longer and ends, by a clock that stands."""

from __future__ import annotations

import pytest

from scheduler.kube.election.leadership import Leadership
from scheduler.kube.election.settings import ElectionSettings
from tests.signals.asking.scripted import Clock

SETTINGS = ElectionSettings(lease_duration_s=15.0, renew_deadline_s=10.0)


@pytest.fixture
def clock() -> Clock:
    return Clock(100.0)


@pytest.fixture
def term(clock: Clock) -> Leadership:
    return Leadership(SETTINGS, clock)


def test_a_term_runs_from_the_begin_of_the_request(term: Leadership, clock: Clock) -> None:
    clock.now_s = 101.0
    until = term.prolong(started_s=100.0)

    assert until is not None
    assert (until.not_after, until.ends_at, term.left_s) == (110.0, 115.0, 9.0)


def test_a_first_answer_that_comes_as_its_time_is_over_begins_no_term(term: Leadership, clock: Clock) -> None:
    clock.now_s = 110.0
    assert term.prolong(started_s=100.0) is None
    assert term.phase == "standing by"


@pytest.mark.parametrize("late_s", [0.0, 1.0, 4.9, 6.0])
def test_an_answer_that_comes_after_the_time_to_renew_makes_no_term_longer(
    term: Leadership, clock: Clock, late_s: float
) -> None:
    term.prolong(started_s=100.0)
    clock.now_s = 110.0 + late_s

    # Asked for in time, answered when the binder may have stopped already.
    assert term.prolong(started_s=109.0) is None
    assert not term.is_running


def test_an_answer_in_time_makes_the_term_longer(term: Leadership, clock: Clock) -> None:
    term.prolong(started_s=100.0)
    clock.now_s = 109.9
    until = term.prolong(started_s=105.0)

    assert until is not None
    assert (until.not_after, term.is_running) == (115.0, True)


@pytest.mark.parametrize("end", [Leadership.lose, Leadership.end])
def test_a_term_that_has_ended_is_never_made_longer(term: Leadership, end: object) -> None:
    term.prolong(started_s=100.0)
    assert callable(end)
    end(term)

    assert term.prolong(started_s=100.0) is None
    assert term.phase in ("lost", "ended")
