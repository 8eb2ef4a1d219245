"""Time that belongs to what is tested: none of it passes while a busy machine lets others run."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from pathlib import Path

_LOOK_S = 0.002
_LONGEST_S = 0.01


class PatientClock:
    """Monotonic seconds that stand still while this process does not get to run.

    A thread looks at the real clock every 2 ms; a look that comes late counts as 10 ms at most. So what happens in
    this process, threads and all, takes by this clock about as long on a busy machine as on an idle one. It never goes
    faster than the real one.
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
            self._now_s += min(now_s - last_s, _LONGEST_S)
            last_s = now_s


def waited_for_cpu_s(pids: Iterable[int]) -> float:
    """Return for how long the threads of processes that live have been ready to run while others ran, in seconds.

    What one thread waits another may wait at the same time, so the sum is at least by what all of them together were
    held up. 0 where the kernel does not say.
    """
    return sum(_waited_ns(Path(f"/proc/{pid}/task")) for pid in pids) / 1e9


def _waited_ns(tasks: Path) -> int:
    total_ns = 0
    try:
        for task in tasks.iterdir():
            total_ns += int((task / "schedstat").read_text().split()[1])
    except OSError:
        return total_ns  # it has ended
    return total_ns
