from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from scheduler.evaluator.store import SeriesStore
from tests.evaluator.remote_write import remote_write
from tests.evaluator.samples import made_up_samples
from tests.support.prometheus import PrometheusServer


@dataclass(frozen=True)
class Twins:
    """The same samples in a store and in a real Prometheus."""

    store: SeriesStore
    url: str


@pytest.fixture(scope="session")
def made_up() -> SeriesStore:
    store = SeriesStore()
    for labels, at_ms, value in sorted(made_up_samples(), key=lambda sample: sample[1]):
        store.append(labels, at_ms / 1000, value)
    return store


@pytest.fixture(scope="session")
def twins(made_up: SeriesStore, programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    server = PrometheusServer(
        programs, tmp_path_factory.mktemp("twin"), flags=["--web.enable-remote-write-receiver"], scrape_interval="1h"
    )
    server.start()
    remote_write(server.url, made_up_samples())
    yield Twins(made_up, server.url)
    server.stop()
