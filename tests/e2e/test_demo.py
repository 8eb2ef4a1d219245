"""`vane demo` as a newcomer starts it: a process, no terminal, nothing set up."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.process import Process
from tests.support.waiting import PATIENCE, wait_until

FIRST_BIND_S = 25.0
"""On a warm and quiet machine it takes four seconds, and is to take at most ten; CI's may be neither."""

# The demo in the foreground of a terminal, where ^C reaches it and whatever is in its process group.
ON_THIS_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "scheduler", "demo", "--fast"])
"""

POD = """
apiVersion: v1
kind: Pod
metadata: {name: mine, namespace: default}
spec:
  schedulerName: vane
  containers: [{name: main, image: example.com/mine:1, resources: {requests: {cpu: 100m}}}]
"""


class Demo:
    """One `vane demo`; its files and those of its schedulers go to a folder of the test."""

    def __init__(self, folder: Path, *flags: str) -> None:
        self.folder = folder
        self.process = Process(
            [sys.executable, "-u", "-m", "scheduler", "demo", "--fast", *flags],
            folder / "demo.log",
            environ={**os.environ, "TMPDIR": str(folder)},
        )
        self.process.start()

    @property
    def said(self) -> str:
        return self.process.log_text()

    def wait_for(self, text: str, timeout: float) -> None:
        self.process.wait_ready(lambda: text in self.said, timeout)

    def schedulers(self) -> list[str]:
        return schedulers(self.folder)

    def assert_nothing_is_left(self) -> None:
        wait_until(lambda: not self.schedulers(), 10.0, f"the end of {self.schedulers()}")
        assert [path.name for path in self.folder.iterdir()] == ["demo.log"]


def schedulers(folder: Path) -> list[str]:
    """Return the command lines of all processes that were given files of a demo in this folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):  # no further: a process that ends meanwhile would end the search
        try:
            line = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue  # ended meanwhile
        if f"{folder}/vane-demo-" in line:
            found.append(line)
    return found


@pytest.fixture
def demos(tmp_path: Path) -> Iterator[list[Demo]]:
    started: list[Demo] = []
    yield started
    for demo in started:
        demo.process.stop()


def test_the_tour_reaches_its_summary_by_itself(tmp_path: Path, demos: list[Demo]) -> None:
    demo = Demo(tmp_path)
    demos.append(demo)
    demo.wait_for(" -> ", FIRST_BIND_S)
    assert len(demo.schedulers()) >= 2
    assert demo.process.wait(60.0) == 0
    said = demo.said
    titles = ["Pods arrive", "Load shifts", "A rule file is edited", '"Prometheus" goes down', '"Prometheus" is back']
    places = [said.index(title) for title in [*titles, "Summary: "]]
    assert places == sorted(places)
    assert "+    filter: {max: 65%, clear: 60%, valve: 50%}" in said
    # A rule, its sample and the sample's age stand behind a decision; and one without samples is made all the same.
    assert re.search(r"-> (node|gpu)-[abc]\d +avoid-hot-nodes: CPU \d+ %, \d\.\d s old", said)
    down, back = said.index(titles[3]), said.index(titles[4])
    assert "Prometheus DOWN" in said[down:back]
    assert " -> " in said[down:back]
    placed = re.search(r"Pods placed +(\d+) of (\d+) +(\d+) of (\d+)", said)
    assert placed is not None
    with_rules, created, without_rules, other_created = map(int, placed.groups())
    assert created == other_created > 60
    assert without_rules == created
    assert with_rules >= 0.9 * created  # a rule may let a Pod wait
    first = re.search(r"first Pod was bound (\d+\.\d) s", said)
    assert first is not None
    assert float(first[1]) < FIRST_BIND_S
    demo.assert_nothing_is_left()


def test_kept_it_serves_kubectl(tmp_path: Path, demos: list[Demo], programs: Path) -> None:
    demo = Demo(tmp_path, "--keep", "--seed", "2")
    demos.append(demo)
    demo.wait_for("get pods -A -o wide -w", 60.0)
    found = re.search(r"kubectl --kubeconfig (\S+) get pods -A -o wide -w", demo.said)
    assert found is not None

    def kubectl(*words: str, stdin: str | None = None) -> str:
        command = [str(programs / "kubectl"), "--kubeconfig", found[1], "--cache-dir", str(tmp_path / "cache"), *words]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=True, timeout=30).stdout

    nodes = kubectl("get", "nodes")
    assert len(re.findall(r"(?m)^(node|gpu)-[abc]\d +Ready", nodes)) == 12
    watch = subprocess.Popen(
        [str(programs / "kubectl"), "--kubeconfig", found[1], "get", "pods", "-w", "-o", "name"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert kubectl("create", "-f", "-", stdin=POD) == "pod/mine created\n"
        wait_until(lambda: " Running " in kubectl("get", "pod", "mine", "-o", "wide"), 10.0, "the Pod to run")
        assert watch.stdout is not None
        assert watch.stdout.readline() == "pod/mine\n"
    finally:
        watch.terminate()
        watch.communicate()
    described = kubectl("describe", "pod", "mine")
    assert re.search(r"Scheduled +\S+ +vane +Successfully assigned default/mine to (node|gpu)-", described)
    events = json.loads(kubectl("get", "events", "-o", "json"))["items"]
    assert [one["reason"] for one in events if one["involvedObject"]["name"] == "mine"] == ["Scheduled"]
    assert "deleted" in kubectl("delete", "pod", "mine")
    assert kubectl("get", "pods", "-o", "name") == ""

    demo.process.signal(signal.SIGINT)
    assert demo.process.wait(20.0) == 0
    assert not list(tmp_path.glob("vane-demo-*"))


def test_on_a_terminal_it_draws_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 45, 120, 0, 0))
    environ = {**os.environ, "TMPDIR": str(tmp_path), "TERM": "xterm-256color"}
    demo = subprocess.Popen(
        [sys.executable, "-c", ON_THIS_TERMINAL], stdin=theirs, stdout=theirs, env=environ, start_new_session=True
    )
    os.close(theirs)
    try:
        drawn = read_until(ours, b"latest decisions", FIRST_BIND_S)
        assert "Pods arrive" in drawn
        os.write(ours, b"\x03")
        assert "\x1b[?1049l" in read_until(ours, b"\x1b[?1049l", 20.0)  # the terminal is as it was
        assert demo.wait(20.0 * PATIENCE) == 128 + signal.SIGINT
        wait_until(lambda: not schedulers(tmp_path), 10.0, "the end of its schedulers")
        assert list(tmp_path.iterdir()) == []
    finally:
        demo.kill()
        demo.wait()
        os.close(ours)


def read_until(terminal: int, text: bytes, timeout: float) -> str:
    """Return what a terminal shows up to a text; fails the test if that does not come in time."""
    shown, deadline = b"", time.monotonic() + timeout * PATIENCE
    while text not in shown:
        left = deadline - time.monotonic()
        assert left > 0, shown[-2_000:]
        if select.select([terminal], [], [], left)[0]:
            shown += os.read(terminal, 65_536)
    return shown.decode(errors="replace")


def test_killed_it_leaves_no_process(tmp_path: Path, demos: list[Demo]) -> None:
    demo = Demo(tmp_path)
    demos.append(demo)
    wait_until(lambda: len(demo.schedulers()) >= 2, FIRST_BIND_S, "the schedulers")
    demo.process.kill()
    wait_until(lambda: not demo.schedulers(), 15.0, f"the end of {demo.schedulers()}")


def test_a_taken_port_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run(tmp_path, "--port", str(port))
    assert done.returncode == 1
    assert done.stderr == f"vane demo: --port: {port} of 127.0.0.1 is taken. Write another one, or 0 for any\n"
    assert list(tmp_path.iterdir()) == []


def test_without_a_folder_to_write_it_is_one_line() -> None:
    done = run(Path("/proc/nowhere"))
    assert done.returncode == 1
    assert done.stdout == ""
    assert re.fullmatch(
        r"vane demo: no folder can be made in /proc/nowhere \(.+\). Set TMPDIR to a folder that you may write to\n",
        done.stderr,
    )


def run(folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "scheduler", "demo", "--fast", *flags],
        capture_output=True,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
        check=False,
        timeout=60 * PATIENCE,
    )
