from __future__ import annotations

from scheduler.signals.asking.breaker import Breaker
from tests.signals.asking.scripted import Clock


def test_a_breaker_opens_tries_once_and_closes() -> None:
    clock = Clock()
    breaker = Breaker(clock, first_s=1.0, cap_s=4.0, chance=lambda: 1.0)
    assert [breaker.failed() for _ in range(3)] == [False, False, True]
    pauses = []
    for _ in range(4):
        begun_s = clock.now_s
        while not breaker.allows():
            clock.now_s += 0.5
        assert not breaker.allows(), "one attempt at a time"
        pauses.append(clock.now_s - begun_s)
        assert not breaker.failed()
    assert pauses == [1.0, 2.0, 4.0, 4.0]
    clock.now_s += 10.0
    assert breaker.allows()
    breaker.withdraw()
    assert breaker.allows()
    assert breaker.succeeded()
    assert breaker.allows()
    assert not breaker.succeeded()


def test_pauses_are_drawn_so_that_instances_do_not_come_back_in_step() -> None:
    clock = Clock()
    breaker = Breaker(clock, first_s=8.0, cap_s=8.0, chance=lambda: 0.0)
    assert [breaker.failed() for _ in range(3)] == [False, False, True]
    clock.now_s += 4.0
    assert breaker.allows()


def test_a_limit_shortens_the_pauses_that_come() -> None:
    clock = Clock()
    breaker = Breaker(clock, first_s=8.0, cap_s=8.0, chance=lambda: 1.0)
    breaker.limit(2.0)
    assert [breaker.failed() for _ in range(3)] == [False, False, True]
    clock.now_s += 1.9
    assert not breaker.allows()
    clock.now_s += 0.2
    assert breaker.allows()
