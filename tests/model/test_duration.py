from __future__ import annotations

import pytest

from scheduler.model.duration import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0.0), ("15s", 15.0), ("1m30s", 90.0), ("500ms", 0.5), ("1.5h", 5400.0), (".5s", 0.5), ("2s3µs", 2.000003)],
)
def test_go_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "m", "5 m", "1d", "-1s", "5m ", "1e3s", ".s", "s5"])
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="must be a duration, got "):
        parse_duration(text)
