"""What the kernel says of processes: memory and descriptors, sampled while they run."""

from __future__ import annotations

import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20

_STARTING = 20
"""So many samples are of a process that starts: it imports, and lists the cluster."""


@dataclass(frozen=True)
class Sample:
    at_s: float
    pid: int
    role: str
    rss_bytes: int
    n_descriptors: int


@dataclass(frozen=True)
class Growth:
    """How much more one process took at the end than once it had settled."""

    role: str
    pid: int
    rss_before_bytes: int
    rss_after_bytes: int
    n_descriptors_before: int
    n_descriptors_after: int

    @property
    def rss_share(self) -> float:
        return self.rss_after_bytes / self.rss_before_bytes - 1.0


@dataclass(frozen=True)
class Flat:
    """What still counts as flat. Small growths of small processes are none: the interpreter's arenas fill up."""

    rss_share: float = 0.2
    rss_bytes: int = 24 * MIB
    n_descriptors: int = 16
    least_samples: int = 10


def sample(pid: int, role: str, at_s: float) -> Sample | None:
    """Return what a process takes now; None if it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        n_descriptors = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return None
    rss_kib = next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")), None)
    return None if rss_kib is None else Sample(at_s, pid, role, rss_kib * 1024, n_descriptors)


def growths(samples: Iterable[Sample], least_samples: int = 10) -> list[Growth]:
    """Compare the second fifth of each process' samples with the last: medians, so that a peak is no growth."""
    by_process: dict[int, list[Sample]] = defaultdict(list)
    for one in samples:
        by_process[one.pid].append(one)
    found = []
    for pid, all_samples in by_process.items():
        own = all_samples[_STARTING:]
        fifth = len(own) // 5
        if len(own) < least_samples:
            continue
        before, after = own[fifth : 2 * fifth], own[-fifth:]
        found.append(
            Growth(
                own[0].role,
                pid,
                int(statistics.median(one.rss_bytes for one in before)),
                int(statistics.median(one.rss_bytes for one in after)),
                int(statistics.median(one.n_descriptors for one in before)),
                int(statistics.median(one.n_descriptors for one in after)),
            )
        )
    return found


def what_grew(samples: Sequence[Sample], flat: Flat = Flat()) -> list[str]:
    found = []
    for one in growths(samples, flat.least_samples):
        grown = one.rss_after_bytes - one.rss_before_bytes
        if one.rss_share > flat.rss_share and grown > flat.rss_bytes:
            found.append(
                f"{one.role} ({one.pid}): {one.rss_before_bytes // MIB} MiB, then {one.rss_after_bytes // MIB}"
            )
        if one.n_descriptors_after > one.n_descriptors_before + flat.n_descriptors:
            found.append(
                f"{one.role} ({one.pid}): {one.n_descriptors_before} descriptors, then {one.n_descriptors_after}"
            )
    return found


class Sampler:
    """Samples the processes that `pids` names, once a second, until it is stopped."""

    def __init__(self, pids: Callable[[], Iterable[tuple[str, int]]], interval_s: float = 1.0) -> None:
        self._pids = pids
        self._interval_s = interval_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self.samples: list[Sample] = []
        self.fault = ""
        """Why it took no more samples."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._sample()
        except Exception as error:  # noqa: BLE001 - without samples nothing would ever have grown
            self.fault = repr(error)

    def _sample(self) -> None:
        while not self._ended.wait(self._interval_s):
            for role, pid in self._pids():
                one = sample(pid, role, time.monotonic())
                if one is not None:
                    self.samples.append(one)
