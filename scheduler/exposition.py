"""Pages of metrics: the text of one process' registry, and one page made of those of all processes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.utils import floatToGoString

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
PAGE_LIFE_S: Final = 1.0


def process_registry(pid: int) -> CollectorRegistry:
    """Return a registry of nothing but the `process_*` metrics of one process, read from /proc when rendered.

    The deciding thread must open no file, so another process shows its figures.
    """
    registry = CollectorRegistry()
    ProcessCollector(pid=lambda: pid, registry=registry)
    return registry


def render(registry: CollectorRegistry) -> bytes:
    """Return the registry's page in Prometheus' text format; holds the GIL for some 0.1 ms a histogram child."""
    return generate_latest(registry)


class RegistryPage:
    """One registry's page, rendered at most once a second however many ask for it."""

    def __init__(self, registry: CollectorRegistry, clock: Callable[[], float] = time.monotonic) -> None:
        self._registry = registry
        self._clock = clock
        self._content = b""
        self._until = float("-inf")

    def render(self) -> bytes:
        now = self._clock()
        if now >= self._until:
            self._content = render(self._registry)
            self._until = now + PAGE_LIFE_S
        return self._content


class _MergedFamily:
    """One family of the merged page: its HELP and TYPE lines, and its samples in order of first sight."""

    def __init__(self) -> None:
        self.head: list[str] = []
        self.is_gauge = False
        self.samples: dict[str, str] = {}

    def add(self, series: str, value: str) -> None:
        known = self.samples.get(series)
        if known is None:
            self.samples[series] = value
        elif known != value or not self.is_gauge:
            numbers = float(known), float(value)
            number = max(numbers) if self.is_gauge else sum(numbers)
            self.samples[series] = str(floatToGoString(number))  # type: ignore[no-untyped-call]  # as above


def merge(pages: Mapping[str, bytes]) -> bytes:
    """Make one page of the pages of several processes, by the process' name.

    The `process_*` series are told apart by a label `process`. A counter or histogram that several processes keep is
    their sum; a gauge belongs to one process, so where two show the same, the greater stands.
    """
    families: dict[str, _MergedFamily] = {}
    for process, page in pages.items():
        family = families.setdefault("", _MergedFamily())
        for line in page.decode().splitlines():
            if line.startswith("# "):
                family = _open_family(families, line)
            elif line:
                series, _, value = line.rpartition(" ")
                family.add(_labelled(series, process) if series.startswith("process_") else series, value)
    lines = []
    for family in families.values():
        lines += family.head
        lines += [f"{series} {value}" for series, value in family.samples.items()]
    return "".join(f"{line}\n" for line in lines).encode()


def _open_family(families: dict[str, _MergedFamily], line: str) -> _MergedFamily:
    _, keyword, name, text = line.split(" ", 3)
    family = families.setdefault(name, _MergedFamily())
    if not any(known.startswith(f"# {keyword} ") for known in family.head):
        family.head.append(line)
        family.is_gauge = family.is_gauge or (keyword == "TYPE" and text == "gauge")
    return family


def _labelled(series: str, process: str) -> str:
    if series.endswith("}"):
        return re.sub(r"\}$", f',process="{process}"}}', series)
    return f'{series}{{process="{process}"}}'
