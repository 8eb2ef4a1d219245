from __future__ import annotations

import os
from collections.abc import Iterable

from tests.faults.checker.processes import Sampler
from tests.support.waiting import wait_until


def test_a_sampler_says_why_it_took_no_more_samples() -> None:
    looks = iter([[("me", os.getpid())]])

    def pids() -> Iterable[tuple[str, int]]:
        return next(looks)

    sampler = Sampler(pids, interval_s=0.01)
    sampler.start()
    wait_until(lambda: sampler.fault, 5.0, "the fault")
    sampler.stop()
    assert [one.role for one in sampler.samples] == ["me"]
    assert sampler.fault == "StopIteration()"
