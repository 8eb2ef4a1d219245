"""Time that belongs to what is tested: none of it passes while a busy machine lets others run."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path

_LOOK_S = 0.002
LONGEST_LOOK_S = 0.01


class PatientClock:
    """Monotonic seconds that stand still while this process does not get to run.

    A thread looks at the real clock every 2 ms; a look that comes late counts as 10 ms at most. So what happens in
    this process, threads and all, takes by this clock about as long on a busy machine as on an idle one. It never goes
    faster than the real one, but for one such look.
    """

    def __init__(self) -> None:
        self._now_s = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="patient-clock", daemon=True)

    def __call__(self) -> float:
        return self._now_s

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def sleep(self, seconds: float) -> None:
        """Sleep until so much has passed by this clock."""
        end_s = self._now_s + seconds
        while (left_s := end_s - self._now_s) > 0:
            time.sleep(left_s)

    def _run(self) -> None:
        last_s = time.monotonic()
        while not self._ended.wait(_LOOK_S):
            now_s = time.monotonic()
            self._now_s += min(now_s - last_s, LONGEST_LOOK_S)
            last_s = now_s


class OwnTime:
    """How long something takes, less the time for which the processes that do it waited for a CPU.

    What one thread waits another may wait at the same time, so at least what others took is left out. Where the
    kernel does not say it, and on an idle machine, it is the time as it is.
    """

    def __init__(self, pids: Iterable[int] = (os.getpid(),)) -> None:
        self._begun_s = time.monotonic()
        self._waited_s = {pid: _waited_s(pid) for pid in pids}

    def include(self, pids: Iterable[int]) -> None:
        """Count processes too that were started since."""
        self._waited_s |= dict.fromkeys(pids, 0.0)

    @property
    def waited_s(self) -> float:
        """Return for how long threads were ready to run while others ran; what has ended meanwhile does not count."""
        return sum(max(0.0, _waited_s(pid) - before_s) for pid, before_s in self._waited_s.items())

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._begun_s - self.waited_s

    def sleep(self, seconds: float) -> None:
        """Sleep, and for as long again as the processes waited for a CPU meanwhile."""
        before_s = self.waited_s
        time.sleep(seconds)
        time.sleep(self.waited_s - before_s)


def _waited_s(pid: int) -> float:
    total_ns = 0
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            total_ns += int((task / "schedstat").read_text().split()[1])
    except OSError:
        pass  # a thread or the process has ended
    return total_ns / 1e9
