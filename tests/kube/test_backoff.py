from __future__ import annotations

import pytest

from scheduler.kube.backoff import Backoff, BackoffSettings


def test_backoff_doubles_is_capped_and_starts_over_after_health() -> None:
    now = [0.0]
    backoff = Backoff(BackoffSettings(), lambda: now[0], lambda: 0.5)
    assert [backoff.next_s() for _ in range(7)] == pytest.approx([1.2, 2.4, 4.8, 9.6, 19.2, 30.0, 30.0])
    now[0] = 149.0
    assert backoff.next_s() == 30.0
    now[0] = 149.0 + 30.0 + 120.0
    assert backoff.next_s() == pytest.approx(1.2)


def test_backoff_stays_short_and_spread_while_nothing_answers() -> None:
    chance = iter([0.0, 0.0, 0.0, 0.0, 0.5, 1.0, 0.0])
    backoff = Backoff(BackoffSettings(), lambda: 0.0, lambda: next(chance))
    assert [backoff.next_s(is_answered=False) for _ in range(6)] == pytest.approx([0.8, 1.6, 2.0, 2.0, 3.0, 4.0])
    assert backoff.next_s() == pytest.approx(0.8)


def test_backoff_never_undercuts_retry_after() -> None:
    backoff = Backoff(BackoffSettings(), lambda: 0.0, lambda: 0.0)
    assert backoff.next_s(at_least_s=3.0) == 3.0
