from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sim.apiserver.cluster import Cluster, EmbeddedCluster, EmbeddedServer, RealCluster


@pytest.fixture
def embedded(programs: Path, tmp_path: Path) -> Iterator[EmbeddedCluster]:
    """A new embedded API server of this test alone."""
    server = EmbeddedServer()
    server.start()
    cluster = EmbeddedCluster(server, programs, tmp_path)
    yield cluster
    cluster.close()
    server.stop()


@pytest.fixture(params=["embedded", "real"])
def cluster(request: pytest.FixtureRequest, programs: Path, tmp_path: Path) -> Iterator[Cluster]:
    """The embedded API server, and then the real one: the contract holds for both."""
    del programs  # named for its mark; the fixtures asked for below need it
    if request.param == "embedded":
        yield request.getfixturevalue("embedded")
        return
    control_plane = request.getfixturevalue("control_plane")
    real = RealCluster(control_plane, request.getfixturevalue("api"), tmp_path)
    yield real
    real.close()
