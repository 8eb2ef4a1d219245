"""Samples into a real Prometheus by remote write: the only way in that takes stale markers at a time of ours."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterable, Mapping

from scheduler.rule_tests.remote_write import HEADERS, write_request

Sample = tuple[Mapping[str, str], int, float]
"""Labels, Unix milliseconds, value."""


def remote_write(url: str, samples: Iterable[Sample]) -> None:
    ordered = sorted(samples, key=lambda sample: sample[1])
    body = write_request((labels, [(at_ms, value)]) for labels, at_ms, value in ordered)
    request = urllib.request.Request(f"{url}/api/v1/write", data=body, headers=HEADERS)
    with urllib.request.urlopen(request, timeout=30):
        pass
