from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time

from scheduler.kube.binder_pods import MAX_BINDS
from scheduler.kube.messages import BindRequest
from tests.kube.fake_api import Exchange, FakeApi, hangs
from tests.kube.running_binder import BIND_PATH, CREATED, POD, Running
from tests.support.waiting import wait_until


def test_the_death_of_the_process_is_told(running: Running) -> None:
    os.kill(running.binder.pid, signal.SIGKILL)
    assert wait_until(lambda: running.deaths) == ["the binder process ended by itself (exit code -9)"]
    started = time.monotonic()
    assert not running.binder.drain(5.0)
    assert time.monotonic() - started < 1.0


def test_signals_to_the_child_are_left_to_the_parent(server: FakeApi, running: Running) -> None:
    server.script("POST", BIND_PATH, CREATED)
    assert running.bind().outcome == "bound"  # it is up
    os.kill(running.binder.pid, signal.SIGTERM)
    os.kill(running.binder.pid, signal.SIGINT)
    assert running.bind().outcome == "bound"


def test_stop_is_quick_and_asks_no_one(server: FakeApi, running: Running) -> None:
    server.script("POST", BIND_PATH, hangs)
    running.binder.bind(BindRequest(pod=POD, node_name="n1", scheduler_name="vane", not_after=math.inf))
    wait_until(lambda: server.of("POST", BIND_PATH))
    pid = running.binder.pid
    started = time.monotonic()
    running.binder.stop()
    assert time.monotonic() - started < 2.0
    assert not _exists(pid)
    assert running.deaths == []


_PARENT = """
import math, os, sys, time
from scheduler.kube.binder import Binder
from scheduler.kube.binder_events import MAX_QUEUED, N_WRITERS
from scheduler.kube.binder_pods import MAX_BINDS
from scheduler.kube.messages import BindRequest, PodRef
from tests.kube.conftest import connection_to

binder = Binder(connection_to(sys.argv[1]), lambda results: None, lambda why: None)
binder.start()
for number in range(200):
    pod = PodRef(namespace="default", name="a", uid=f"u{number}")
    binder.bind(BindRequest(pod=pod, node_name="n1", scheduler_name="vane", not_after=math.inf))
print(binder.pid, flush=True)
time.sleep(60)
"""


def test_the_child_ends_with_its_parent_and_flushes_nothing(server: FakeApi) -> None:
    release = threading.Event()

    def slow(exchange: Exchange) -> None:
        release.wait(20)
        exchange.json(201, {})

    server.script("POST", BIND_PATH, slow)
    argv = [sys.executable, "-c", _PARENT, server.host]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        wait_until(lambda: len(server.of("POST", BIND_PATH)) == MAX_BINDS)  # all slots taken, the rest waits
        parent.kill()
    wait_until(lambda: not _exists(child))
    release.set()
    time.sleep(0.2)
    assert len(server.of("POST", BIND_PATH)) == MAX_BINDS


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
