"""PluginPool: the threads on which plugins do I/O of their own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from scheduler.loop.messages import PoolDone, Settle

_THREADS = 8


class PluginPool:
    """Calls run on a few daemon threads, which never keep the process from ending; `done` gets what came of each.

    The number of waiting calls is bounded by that of the Pods that are being bound.
    """

    def __init__(self, done: Callable[[PoolDone], None]) -> None:
        self._done = done
        self._calls: queue.SimpleQueue[tuple[Callable[[], object], Settle]] = queue.SimpleQueue()
        self._n_threads = 0
        self._n_open = 0
        self._lock = threading.Lock()

    def submit(self, call: Callable[[], object], settle: Settle) -> None:
        """Run `call` on one of the threads; `settle` travels with its outcome."""
        with self._lock:
            self._n_open += 1
            is_short = self._n_threads < min(_THREADS, self._n_open)
            self._n_threads += is_short
        if is_short:
            threading.Thread(target=self._work, name="plugin-pool", daemon=True).start()
        self._calls.put((call, settle))

    def _work(self) -> None:
        while True:
            call, settle = self._calls.get()
            try:
                outcome = PoolDone(settle, call())
            except Exception as error:  # noqa: BLE001 - whatever a plugin raises fails its Pod's attempt
                outcome = PoolDone(settle, None, error)
            with self._lock:
                self._n_open -= 1
            self._done(outcome)
