"""APScheduler behind one typed wrapper: jobs that repeat, each once at a time, on threads that never hold an exit.

Its fire times come from the wall clock; a caller that must not stop when that clock steps back uses `run_now`.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from apscheduler.executors.pool import BasePoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler

FAST: Final = "fast"
SLOW: Final = "slow"

_THREAD: Final = threading.local()


class DaemonPool:
    """A pool of daemon threads: the interpreter waits at its end for those of ThreadPoolExecutor, hung or not."""

    def __init__(self, n_threads: int, name: str) -> None:
        self._name = name
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._serve, name=f"signals-{name}-{i}", daemon=True) for i in range(n_threads)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def run() -> None:
            try:
                result = function(*arguments)
            except BaseException as error:  # noqa: BLE001  # handed over, not swallowed
                future.set_exception(error)
            else:
                future.set_result(result)

        self._work.put(run)
        return future

    def shutdown(self, wait: bool = True) -> None:
        """Let the threads end after what is queued; they are daemons, so the caller need not wait."""
        for _ in self._threads:
            self._work.put(None)

    def _serve(self) -> None:
        _THREAD.pool = self._name
        while (run := self._work.get()) is not None:
            run()


class _Executor(BasePoolExecutor):
    def __init__(self, pool: DaemonPool) -> None:
        super().__init__(pool)  # type: ignore[no-untyped-call]  # APScheduler has no types


class Timetable:
    """Jobs by name on two pools; a slow job on the slow pool delays no fast one."""

    def __init__(self, n_fast: int, n_slow: int) -> None:
        logger = logging.getLogger(f"{__name__}.apscheduler")
        # At WARNING it says of every job that it is still running, which the caller counts itself.
        logger.setLevel(logging.ERROR)
        executors: dict[str, Any] = {}
        for name, n_threads in ((FAST, n_fast), (SLOW, n_slow)):
            executors[name] = _Executor(DaemonPool(n_threads, name))
        background: Any = BackgroundScheduler
        self._scheduler: Any = background(
            logger=logger,
            executors=executors,
            timezone=UTC,
            daemon=True,
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        )

    def start(self) -> None:
        self._scheduler.start()

    def stop(self) -> None:
        self._scheduler.shutdown(wait=False)

    def every(self, name: str, interval_s: float, first_s: float, job: Callable[[], None]) -> None:
        """Run `job` in `first_s` seconds and then every `interval_s`; replaces the job of that name."""
        self._scheduler.add_job(
            job,
            "interval",
            id=name,
            executor=FAST,
            seconds=interval_s,
            replace_existing=True,
            next_run_time=_in(first_s),
        )

    def once(self, name: str, job: Callable[[], None], executor: str = FAST) -> None:
        """Run `job` as soon as a thread is free; while one of that name waits or runs, no second one does."""
        self._scheduler.add_job(job, "date", id=f"{name} once", executor=executor, replace_existing=True)

    def run_now(self, name: str) -> None:
        """Bring the next run of a repeating job forward to now; the interval counts from there."""
        self._modify(name, next_run_time=_in(0.0))

    def use(self, name: str, executor: str) -> None:
        """Let a job run on the other pool from its next time on."""
        self._modify(name, executor=executor)

    def is_fast_thread(self) -> bool:
        """Whether the caller runs on the fast pool: a job that was queued there may have turned slow meanwhile."""
        return getattr(_THREAD, "pool", "") == FAST

    def cancel(self, name: str) -> None:
        try:
            self._scheduler.remove_job(name)
        except JobLookupError:
            return

    def _modify(self, name: str, **changes: Any) -> None:
        try:
            self._scheduler.modify_job(name, **changes)
        except JobLookupError:
            return


def _in(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)
