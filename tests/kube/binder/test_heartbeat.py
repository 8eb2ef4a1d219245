"""A binder process that hangs is noticed and ended, with and without a lease; one that is only busy is not."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from scheduler.kube.binder.client import BinderTimes
from scheduler.kube.binder.heartbeat import Heartbeat
from scheduler.kube.config import Connection
from tests.kube.binder.running_binder import BIND_PATH, CREATED, EVENTS_PATH, Running
from tests.kube.fake_api import FakeApi
from tests.support.waiting import wait_until


def test_a_process_that_hangs_is_ended_and_told(connection: Connection, start: Callable[..., Running]) -> None:
    running = start(connection, times=BinderTimes(look_s=0.05, silence_s=0.5))
    os.kill(running.binder.pid, signal.SIGSTOP)
    wait_until(lambda: running.deaths, 10.0, "the end of the process")
    assert running.deaths == ["the binder process said nothing for 0.5 s, so it was ended"]
    assert not running.binder.drain(5.0)


def test_one_that_has_nothing_to_do_goes_on(
    server: FakeApi, connection: Connection, start: Callable[..., Running]
) -> None:
    for path in (BIND_PATH, EVENTS_PATH):
        server.script("POST", path, CREATED)
    running = start(connection, times=BinderTimes(look_s=0.2, silence_s=5.0))
    for _ in range(3):
        os.kill(running.binder.pid, signal.SIGSTOP)  # for less than it may be silent
        os.kill(running.binder.pid, signal.SIGCONT)
        assert running.bind().outcome == "bound"
    assert running.deaths == []


class Process:
    """Answers what it is asked as the script says; the heartbeat stops with the script."""

    def __init__(self, *answers: bool) -> None:
        self.answers = list(answers)
        self.n_asked = 0
        self.n_silent = 0
        self.heartbeat = Heartbeat(self.ask, self.silent, look_s=0.001, silence_s=0.003, start_s=0.005)

    def ask(self) -> None:
        self.n_asked += 1
        if not self.answers:
            self.heartbeat.stop()
        elif self.answers.pop(0):
            self.heartbeat.heard()

    def silent(self) -> None:
        self.n_silent += 1


def test_silence_is_counted_in_looks_and_any_word_ends_it() -> None:
    lively = Process(True, False, False, True, False, False, True, True)
    lively.heartbeat.run()
    assert lively.n_silent == 0

    hung = Process(True, False, False, False, False)
    hung.heartbeat.run()
    assert (hung.n_silent, len(hung.answers)) == (1, 1), "the third look in silence is the last"


def test_its_first_word_may_take_longer() -> None:
    slow = Process(False, False, False, True, False)
    slow.heartbeat.run()
    assert slow.n_silent == 0
    never = Process(*[False] * 9)
    never.heartbeat.run()
    assert (never.n_silent, never.n_asked) == (1, 4)
