"""The audit hook of the end-to-end tests bites: what it must report, it reports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import socket, sys, time
from pathlib import Path
from scheduler.loop.messages import Stop
from tests.loop.harness import Harness
from tests.support.audited import audit

harness = Harness()
harness.list_nodes()
harness.list_pods()
harness.inbox.put(Stop(0, "enough"))
audit(Path(sys.argv[1]))

def offend():
    {offence}
    return 1_000.0

harness.loop_with(offend).run()
time.sleep(0.2)
"""


@pytest.mark.parametrize(
    ("offence", "event"),
    [
        pytest.param("open('/dev/null').close()", "open ('/dev/null'", id="a file"),
        pytest.param("time.sleep(0)", "time.sleep", id="a sleep"),
        pytest.param("socket.getaddrinfo('127.0.0.1', 1)", "socket.getaddrinfo", id="a look-up"),
        pytest.param("socket.socket().connect_ex(('127.0.0.1', 1))", "socket.connect", id="a connection"),
    ],
)
def test_an_offence_of_the_deciding_thread_is_reported(offence: str, event: str, tmp_path: Path) -> None:
    report = tmp_path / "report"
    program = [sys.executable, "-W", "ignore", "-c", _PROGRAM.format(offence=offence), str(report)]

    subprocess.run(program, check=True, cwd=Path(__file__).parents[2])

    lines = report.read_text().splitlines()
    assert any(line.startswith(event) for line in lines)
