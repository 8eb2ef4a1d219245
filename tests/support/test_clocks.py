from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.support.clocks import LONGEST_LOOK_S, OwnTime, PatientClock
from tests.support.waiting import wait_until

SPIN = "while True: pass"


@pytest.fixture
def busy() -> Iterator[list[int]]:
    """Processes that want one CPU together."""
    cpu = min(os.sched_getaffinity(0))
    spinning = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(3)]
    for one in spinning:
        os.sched_setaffinity(one.pid, {cpu})
    yield [one.pid for one in spinning]
    for one in spinning:
        one.kill()
        one.wait()


def test_what_others_take_is_no_time_of_its_own(busy: list[int]) -> None:
    took, began_s = OwnTime([busy[0]]), time.monotonic()
    wait_until(lambda: took.waited_s > 0.5)
    passed_s = time.monotonic() - began_s
    assert took.seconds < passed_s - 0.4


def test_a_patient_clock_never_goes_faster_than_the_real_one() -> None:
    clock = PatientClock()
    clock.start()
    began_s, began = time.monotonic(), clock()
    clock.sleep(0.2)
    passed = clock() - began
    clock.stop()
    # It goes in looks: one may fall due just after the first reading.
    assert 0.2 <= passed <= time.monotonic() - began_s + LONGEST_LOOK_S


def test_a_patient_clock_waits_for_a_process_that_was_stopped() -> None:
    program = """
import time
from tests.support.clocks import PatientClock
clock = PatientClock()
clock.start()
print("ready", flush=True)
input()
began_s, began = time.monotonic(), clock()
print("stop me", flush=True)
input()
print(time.monotonic() - began_s - (clock() - began), flush=True)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        print(file=child.stdin, flush=True)
        assert child.stdout.readline() == "stop me\n"
        child.send_signal(signal.SIGSTOP)
        time.sleep(0.5)
        child.send_signal(signal.SIGCONT)
        print(file=child.stdin, flush=True)
        assert float(child.stdout.readline()) > 0.4
