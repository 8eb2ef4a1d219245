"""What running programs use: CPU time and memory of every process below this one, read from /proc."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_PROC = Path("/proc")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_MIB_PER_KIB = 1 / 1024


@dataclass(frozen=True, slots=True)
class Memory:
    """Of one process, in MiB. `pss` counts each page that processes share once, split among them."""

    rss: float
    pss: float


def wall_clock_s() -> float:
    """Return seconds since 1970, comparable with the API server's audit log."""
    return time.time_ns() / 1e9


def descendants(pid: int) -> Iterator[int]:
    """Yield the children of a process, their children and so on."""
    for task in _listed(_PROC / str(pid) / "task"):
        for child in _read(_PROC / str(pid) / "task" / task / "children").split():
            yield int(child)
            yield from descendants(int(child))


def memory() -> dict[str, Memory]:
    """Return label -> memory of each process below this one."""
    return {label(pid): _memory(pid) for pid in descendants(os.getpid())}


def label(pid: int) -> str:
    """Return the module that a Python process runs, or the program's name."""
    words = _read(_PROC / str(pid) / "cmdline").split("\0")
    return words[words.index("-m") + 1] if "-m" in words else Path(words[0]).name


class Bystanders:
    """What others do on the machine while this process works alone, without any below it."""

    def __init__(self) -> None:
        self._began = wall_clock_s(), _machine_cpu_s(), time.process_time()

    def share(self) -> float:
        """Return what part of the machine, 0..1, went to others since this was made."""
        passed_s, all_s, ours_s = np.array((wall_clock_s(), _machine_cpu_s(), time.process_time())) - self._began
        return float(max(0.0, all_s - ours_s) / (passed_s * (os.cpu_count() or 1)))


class CpuSampler:
    """Notes the CPU time of every process below this one, and of the machine, 20 times a second, from a thread."""

    def __init__(self, interval_s: float = 0.05) -> None:
        self._interval_s = interval_s
        self._samples: dict[int, list[tuple[float, float]]] = {}
        self._machine: list[tuple[float, float]] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def cpu_s(self, from_s: float, to_s: float) -> dict[str, float]:
        """Return label -> CPU seconds between two times of `wall_clock_s`, of the processes that still run."""
        running = [pid for pid in descendants(os.getpid()) if self._samples.get(pid)]
        return {label(pid): _between(self._samples[pid], from_s, to_s) for pid in running}

    def strangers(self, from_s: float, to_s: float) -> float:
        """Return what part of the machine, 0..1, went to others than this process and those that run below it.

        A little is the kernel's own; much means that the figures of this time are not to be trusted.
        """
        ours_s = sum(self.cpu_s(from_s, to_s).values()) + _between(self._samples[os.getpid()], from_s, to_s)
        all_s = _between(self._machine, from_s, to_s)
        return max(0.0, all_s - ours_s) / ((to_s - from_s) * (os.cpu_count() or 1))

    def _run(self) -> None:
        while not self._ended.wait(self._interval_s):
            self._machine.append((wall_clock_s(), _machine_cpu_s()))
            for pid in (os.getpid(), *descendants(os.getpid())):
                cpu_s = _cpu_s(pid)
                if cpu_s is not None:
                    self._samples.setdefault(pid, []).append((wall_clock_s(), cpu_s))


def _between(samples: list[tuple[float, float]], from_s: float, to_s: float) -> float:
    at_s, cpu_s = np.array(samples).T
    before, after = np.interp([from_s, to_s], at_s, cpu_s)
    return float(after - before)


def _machine_cpu_s() -> float:
    # user nice system idle iowait irq softirq steal, summed over all CPUs; steal is time that other machines took.
    fields = [int(word) for word in _read(_PROC / "stat").split("\n", 1)[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / _TICKS_PER_S


def _cpu_s(pid: int) -> float | None:
    # The name, in parentheses, may hold blanks itself.
    fields = _read(_PROC / str(pid) / "stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S if fields else None


def _memory(pid: int) -> Memory:
    lines = _read(_PROC / str(pid) / "smaps_rollup").splitlines()[1:]
    kib = {words[0].rstrip(":"): int(words[1]) for line in lines if (words := line.split())}
    return Memory(kib.get("Rss", 0) * _MIB_PER_KIB, kib.get("Pss", 0) * _MIB_PER_KIB)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # the process has ended
        return ""


def _listed(path: Path) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []
