"""EndedPods: the Pods that have ended and are still stored, listed once, for what is counted over a window of time.

The watch of Pods leaves them out, so that they cost no memory; of what ends later it tells by itself.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from random import SystemRandom
from typing import Any, Final

from scheduler.errors import VaneError
from scheduler.kube.backoff import Backoff
from scheduler.kube.reflector import ReflectorSettings
from scheduler.kube.resources import PODS
from scheduler.kube.transport import ApiError, Transport, TransportError
from scheduler.kube.watch_stream import MalformedStreamError, ObjectReader, Replaced, ServerError

log = logging.getLogger(__name__)

ENDED_PODS: Final = "EndedPod"
"""The kind of the one list that comes."""

_PHASES: Final = ("Succeeded", "Failed")
_SETTINGS: Final = ReflectorSettings()


class EndedPods:
    """Hands one list in slices to `sink` in its own thread, and begins again until that has worked or it is stopped."""

    def __init__(
        self, transport: Transport, sink: Callable[[Replaced], None], settings: ReflectorSettings = _SETTINGS
    ) -> None:
        self._transport = transport
        self._sink = sink
        self._settings = settings
        self._backoff = Backoff(settings.backoff, time.monotonic, SystemRandom().random)
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self.run, name="ended-pods", daemon=True)
        self._thread.start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """End the thread; nothing reaches the sink afterwards."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(timeout_s)

    def run(self) -> None:
        while not self._stopped.is_set():
            try:
                pods = [pod for phase in _PHASES for pod in self._list(phase)]
            except (ApiError, TransportError, ServerError, MalformedStreamError) as error:
                log.warning("listing Pods that have ended: %s; trying again", error)
                self._pause(error)
                continue
            for slice_ in Replaced.slices(ENDED_PODS, pods):
                if not self._stopped.is_set():
                    self._sink(slice_)
            return

    def _list(self, phase: str) -> list[Any]:
        """Return all Pods of one phase."""
        params = {"fieldSelector": f"status.phase={phase}", "limit": str(self._settings.page_size)}
        reader = ObjectReader(replace(PODS, name=ENDED_PODS, params=params))
        pods: list[Any] = []
        while True:
            page = reader.page(self._transport.get(PODS.path, params, self._settings.list_timeout_s))
            pods += page.objects
            if not page.next_token:
                return pods
            params = {**params, "continue": page.next_token}

    def _pause(self, error: VaneError) -> None:
        at_least_s = error.retry_after_s if isinstance(error, ApiError | ServerError) else 0.0
        self._stopped.wait(self._backoff.next_s(at_least_s, not isinstance(error, TransportError)))
