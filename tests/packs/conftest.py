from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packs.record import DATA
from tests.support.prometheus import PrometheusServer, import_samples


def _joined(*packs: str) -> str:
    """Return the recordings of some packs as one; none has a series of another."""
    texts = [(DATA / f"{pack}.om").read_text() for pack in packs]
    return "".join(text.removesuffix("# EOF\n") for text in texts) + "# EOF\n"


def _serving(programs: Path, folder: Path, samples: str) -> Iterator[PrometheusServer]:
    server = PrometheusServer(programs, folder)
    import_samples(programs, server.data, samples)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def every_exporter(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    """A Prometheus with the samples of every pack."""
    samples = _joined(*sorted(path.stem for path in DATA.glob("*.om")))
    yield from _serving(programs, tmp_path_factory.mktemp("every-exporter"), samples)


@pytest.fixture(scope="session")
def only_node_exporter(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    """A Prometheus that knows nothing but node_exporter's CPU and memory."""
    yield from _serving(programs, tmp_path_factory.mktemp("only-node-exporter"), _joined("node-utilisation"))
