"""The demo's clock: the wall clock as it was at the start, moved on by the monotonic one, so that it never steps."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SteadyClock:
    """Seconds since 1970."""

    def __init__(self) -> None:
        self._offset_s = datetime.now(UTC).timestamp() - time.monotonic()

    def __call__(self) -> float:
        return self._offset_s + time.monotonic()
