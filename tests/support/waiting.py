from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(
    predicate: Callable[[], T], timeout: float = 10.0, what: str = "the condition", interval: float = 0.02
) -> T:
    """Call the predicate until it returns something true, and return that.

    Raises
    ------
    TimeoutError
        If it hasn't within the timeout; the message has the last value.
    """
    deadline = time.monotonic() + timeout
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise TimeoutError(f"{what} did not come about in {timeout:g} s; last seen: {value!r}")
        time.sleep(interval)
