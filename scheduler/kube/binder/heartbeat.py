"""Heartbeat: notices a binder process that goes on existing without doing anything."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable


class Heartbeat:
    """Asks the process every `look_s` seconds for a sign of life, and calls `on_silent` once when none comes.

    Whatever the process says is one: a flood of requests may hold up its answer, but never all of its results. Silence
    is counted in looks and not by the clock. Where the whole container or machine stood still for a minute, the process
    did too, and that minute is one look.

    silence_s, start_s
        How long it may say nothing; and how long until its first word, as it has to be loaded.
    """

    def __init__(
        self, ask: Callable[[], None], on_silent: Callable[[], None], look_s: float, silence_s: float, start_s: float
    ) -> None:
        self._ask = ask
        self._on_silent = on_silent
        self._look_s = look_s
        self._silent_looks = math.ceil(silence_s / look_s)
        self._first_looks = math.ceil(start_s / look_s)
        self._stopping = threading.Event()
        self._has_said = False

    def heard(self) -> None:
        """Note that the process said something."""
        self._has_said = True

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        """Look until `stop`, or until the process has been silent for too long."""
        n_silent, limit = 0, self._first_looks
        while not self._stopping.wait(self._look_s):
            if self._has_said:
                n_silent, limit, self._has_said = 0, self._silent_looks, False
            else:
                n_silent += 1
            if n_silent >= limit:
                self._on_silent()
                return
            self._ask()
