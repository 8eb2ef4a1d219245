"""`vane run` can be ended from its first moment on, as PID 1 of a container too, which has no default for signals."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.sim.apiserver import kubeconfig
from tests.support.process import Process, children_of, has_loaded
from tests.support.waiting import wait_until

OWN_PIDS = (shutil.which("unshare") or "unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")

# Notes each import that comes while a signal would still be lost.
WATCHED = """
import runpy, signal, sys

def look(event, arguments):
    if event == "import" and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        print("unhandled:", arguments[0])

sys.argv = ["vane", "run", "--help"]
sys.addaudithook(look)
runpy.run_module("scheduler", run_name="__main__", alter_sys=True)
"""


@pytest.fixture
def as_pid_1(tmp_path: Path) -> Iterator[Process]:
    """`vane run` as PID 1 of namespaces of its own."""
    try:
        subprocess.run([*OWN_PIDS, "true"], capture_output=True, check=True, timeout=10)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no processes of one's own on this machine: {error}")
    config = tmp_path / "kubeconfig"
    # An API server that refuses: Vane goes on asking until it is ended.
    config.write_text(kubeconfig("http://127.0.0.1:9"))
    run = [sys.executable, "-m", "scheduler", "run", "--kubeconfig", str(config), "--secure-port", "0"]
    process = Process([*OWN_PIDS, *run], tmp_path / "vane.log")
    process.start()
    yield process
    process.stop()


@pytest.mark.parametrize("library", ["pydantic_core", "numpy"])
def test_a_sigterm_while_it_is_loaded_ends_pid_1(as_pid_1: Process, library: str) -> None:
    wait_until(lambda: children_of(as_pid_1.pid), 10.0, "PID 1")
    (vane,) = children_of(as_pid_1.pid)
    wait_until(lambda: has_loaded(vane, library), 30.0, f"{library} in its memory")
    os.kill(vane, signal.SIGTERM)
    assert as_pid_1.wait(10.0) == 0


def test_the_signals_are_handled_before_anything_of_weight_is_imported() -> None:
    told = subprocess.run([sys.executable, "-c", WATCHED], capture_output=True, text=True, check=True, timeout=60)
    unhandled = {line.split()[1] for line in told.stdout.splitlines() if line.startswith("unhandled:")}
    assert "usage: vane run" in told.stdout
    assert {name for name in unhandled if name.startswith("scheduler.")} <= {"scheduler.__main__"}
    assert not unhandled & {"argparse", "dataclasses", "pydantic", "yaml"}
