from __future__ import annotations

import math

import numpy as np
import pytest

from scheduler.model.rules import FilterMissing, RuleFilter
from scheduler.signals.columns.trips import Trips, advance, refused, valve_reason

NAN = math.nan
HOT = RuleFilter(max=0.8, max_clear=0.7)


@pytest.mark.parametrize(
    ("value", "was_tripped", "is_tripped"),
    [
        (0.81, False, True),
        (0.80, False, False),
        (0.75, False, False),
        (0.75, True, True),
        (0.70, True, False),
        (0.60, True, False),
        (NAN, True, False),
        (NAN, False, False),
    ],
)
def test_hysteresis_of_a_maximum(value: float, was_tripped: bool, is_tripped: bool) -> None:
    assert advance(HOT, np.array([value]), np.array([was_tripped])).tolist() == [is_tripped]


@pytest.mark.parametrize(
    ("value", "was_tripped", "is_tripped"),
    [(9.0, False, True), (10.0, False, False), (15.0, True, True), (15.0, False, False), (20.0, True, False)],
)
def test_hysteresis_of_a_minimum(value: float, was_tripped: bool, is_tripped: bool) -> None:
    low = RuleFilter(min=10.0, min_clear=20.0)
    assert advance(low, np.array([value]), np.array([was_tripped])).tolist() == [is_tripped]


def test_a_rule_that_starts_compares_plainly() -> None:
    assert advance(HOT, np.array([0.9, 0.75, NAN]), None).tolist() == [True, False, False]


@pytest.mark.parametrize("clear", [None, 0.8])
def test_without_a_clear_of_its_own_the_limit_is_the_limit(clear: float | None) -> None:
    limits = RuleFilter(max=0.8, max_clear=clear)
    assert advance(limits, np.array([0.8, 0.81]), np.array([True, False])).tolist() == [False, True]


def test_both_limits() -> None:
    between = RuleFilter(max=10.0, min=1.0, max_clear=10.0, min_clear=1.0)
    assert advance(between, np.array([0.5, 1.0, 10.0, 11.0]), None).tolist() == [True, False, False, True]


def test_bits_follow_their_names() -> None:
    trips = Trips(("a", "b"), np.array([True, False]))
    assert trips.along(("c", "b", "a")).tolist() == [False, False, True]
    assert trips.along(("c", "a"), default=True).tolist() == [True, True]
    assert Trips((), np.zeros(0, dtype=np.bool_)).along(("a",)).tolist() == [False]


def test_valves() -> None:
    half = RuleFilter(max=1.0, valve=0.5)
    assert valve_reason(half, 5, 10, is_suspect=False) == ""
    assert valve_reason(half, 6, 10, is_suspect=False) == "share"
    assert valve_reason(HOT, 10, 10, is_suspect=False) == ""
    assert valve_reason(HOT, 0, 10, is_suspect=True) == "suspect"


def test_a_missing_sample_refuses_only_where_the_rule_says_so() -> None:
    tripped, has_sample = np.array([True, False, False]), np.array([True, True, False])
    assert refused(HOT, tripped, has_sample).tolist() == [True, False, False]
    strict = RuleFilter(max=1.0, missing=FilterMissing.REJECT)
    assert refused(strict, tripped, has_sample).tolist() == [True, False, True]
