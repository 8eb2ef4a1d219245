from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.support.waiting import PATIENCE, wait_until

# Runs in the child before the program replaces it. The kernel then kills the program when the thread that started it
# ends, so a pytest that was itself killed leaves nothing running. (Popen's preexec_fn would do the same without the
# extra interpreter, but it isn't safe in a process with threads and warns from Python 3.12 on.)
_DIE_WITH_PARENT = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):
        sys.exit("the parent ended first")
os.execv(sys.argv[2], sys.argv[2:])
"""


class ProcessError(Exception):
    """A program ended on its own, or did not get ready; the message has the end of its log."""


class Process:
    """A program running in the background, its output in a log file.

    Start it from a thread that lives as long as the program should: the program dies with that thread.
    """

    def __init__(
        self,
        argv: Sequence[str | Path],
        log: Path,
        environ: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.argv = [str(word) for word in argv]
        self.log = log
        self._environ = environ
        self._cwd = cwd
        self._popen: subprocess.Popen[bytes] | None = None

    @property
    def name(self) -> str:
        return Path(self.argv[0]).name

    @property
    def pid(self) -> int:
        if self._popen is None:
            raise ProcessError(f"{self.name} was not started")
        return self._popen.pid

    @property
    def running(self) -> bool:
        return self._popen is not None and self._popen.poll() is None

    def start(self) -> None:
        if self.running:
            raise ProcessError(f"{self.name} is already running")
        launcher = [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid()), *self.argv]
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            self._popen = subprocess.Popen(
                launcher,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=None if self._environ is None else dict(self._environ),
                cwd=self._cwd,
                # A session of its own: ^C in the terminal reaches pytest, which then stops the programs in order.
                start_new_session=True,
            )

    def wait_ready(self, ready: Callable[[], object], timeout: float = 30.0) -> None:
        """Poll until the program is ready.

        Raises
        ------
        ProcessError
            If it ends before, or isn't ready in time.
        """

        def ready_or_ended() -> bool:
            if not self.running:
                raise ProcessError(f"{self.name} ended ({self.returncode}) before it was ready:\n{self.log_tail()}")
            return bool(ready())

        try:
            wait_until(ready_or_ended, timeout, f"readiness of {self.name}")
        except TimeoutError as error:
            raise ProcessError(f"{self.name} was not ready in {timeout:g} s:\n{self.log_tail()}") from error

    @property
    def returncode(self) -> int | None:
        return None if self._popen is None else self._popen.poll()

    def signal(self, number: signal.Signals) -> None:
        if self._popen is not None and self.running:
            self._popen.send_signal(number)

    def wait(self, timeout: float = 10.0) -> int:
        """Wait for the program's end and return its exit code; the timeout is that of `wait_until`."""
        if self._popen is None:
            raise ProcessError(f"{self.name} was not started")
        return self._popen.wait(timeout * PATIENCE)

    def stop(self, timeout: float = 30.0) -> None:
        """End the program with SIGTERM, with SIGKILL if that takes longer than the timeout."""
        if self._popen is None:
            return
        self.signal(signal.SIGTERM)
        try:
            self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        if self._popen is not None:
            self.signal(signal.SIGKILL)
            self._popen.wait()

    def log_text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def log_tail(self, lines: int = 20) -> str:
        return "\n".join(self.log_text().splitlines()[-lines:])


@contextlib.contextmanager
def running(process: Process, ready: Callable[[], object], timeout: float = 30.0) -> Iterator[Process]:
    """Start the program, wait until it is ready, and stop it at the end of the block."""
    process.start()
    try:
        process.wait_ready(ready, timeout)
        yield process
    finally:
        process.stop()


def children_of(pid: int) -> list[int]:
    """Return the processes that the main thread of this one has started."""
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def has_loaded(pid: int, library: str) -> bool:
    """Return whether a shared library whose path has this word is in the memory of a process."""
    return library in Path(f"/proc/{pid}/maps").read_text()
