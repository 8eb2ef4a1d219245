from __future__ import annotations

from fractions import Fraction

import pytest

from scheduler.errors import InvalidObjectError
from scheduler.model.quantity import parse_duration, parse_quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("250m", Fraction(1, 4)),
        ("1n", Fraction(1, 10**9)),
        ("1.5Gi", 3 * 2**29),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("+3k", 3000),
        ("-2", -2),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1E", 10**18),
        ("1Ei", 2**60),
        ("1e-3", Fraction(1, 1000)),
    ],
)
def test_what_a_quantity_is_worth(text: str, value: Fraction | int) -> None:
    assert parse_quantity(text) == value


@pytest.mark.parametrize(
    "text", ["", " 1", "1 Gi", "1K", "1gi", "Gi", "1e", "1ee3", "--1", "1.2.3", "0x10", "NaN", "inf", "٣"]
)
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises(InvalidObjectError, match="quantity"):
        parse_quantity(text)


def test_a_quantity_of_thousands_of_digits_is_refused_as_such() -> None:
    assert parse_quantity("0" * 900 + "1") == 1
    for n_digits in (1_001, 5_000):
        with pytest.raises(InvalidObjectError, match=f"quantity: got {n_digits} digits"):
            parse_quantity("9" * n_digits)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0.0), ("15s", 15.0), ("1m30s", 90.0), ("500ms", 0.5), ("1.5h", 5400.0), (".5s", 0.5), ("2s3µs", 2.000003)],
)
def test_go_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "m", "5 m", "1d", "-1s", "5m ", "1e3s", ".s", "s5"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="must be a duration, got "):
        parse_duration(text)
