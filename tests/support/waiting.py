from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 6
"""How many times longer is waited than an idle machine would need: what comes about costs nothing by that."""


def wait_until(
    predicate: Callable[[], T], timeout: float = 10.0, what: str = "the condition", interval: float = 0.02
) -> T:
    """Call the predicate until it returns something true, and return that.

    `timeout` is ample on an idle machine, and no promise of what is tested: what has to be quick is measured.

    Raises
    ------
    TimeoutError
        If it hasn't within `PATIENCE` timeouts; the message has the last value.
    """
    timeout *= PATIENCE
    deadline = time.monotonic() + timeout
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise TimeoutError(f"{what} did not come about in {timeout:g} s; last seen: {value!r}")
        time.sleep(interval)
