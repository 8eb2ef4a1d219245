from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.build import EXPORTERS, exporters_folder, missing_programs
from tests.exporters.programs import NODES, Exporters, running_exporters
from tests.support.cleanup import clean
from tests.support.controlplane import ControlPlane
from tests.support.kubelet import TestKubelet


@pytest.fixture(scope="session")
def exporter_programs() -> Path:
    folder = exporters_folder(os.environ)
    missing = [program.name for program in missing_programs(folder, EXPORTERS)]
    if missing:
        pytest.skip(f"not built: {', '.join(missing)}; `make exporters` builds them, the first time in minutes")
    return folder


@pytest.fixture(scope="module")
def housekeeping() -> str:
    """How often the kubelet measures: often, so that a test need not wait; it says 10 s itself."""
    return "1s"


@pytest.fixture(scope="module")
def exporters(
    exporter_programs: Path, control_plane: ControlPlane, housekeeping: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Exporters]:
    """All exporters of a cluster of NODES, on each of which one Pod runs and one has ended; one Pod waits."""
    api = control_plane.client()
    clean(api)
    runs = TestKubelet(api)
    runs.start()
    for node in NODES:
        api.create_node(node, cpu="4", memory="16Gi")
        api.create_pod(f"web-{node}", cpu="500m", node_name=node)
        api.create_pod(f"done-{node}", cpu="250m", node_name=node)
    api.create_pod("waits", scheduler_name="none")
    api.wait_for(lambda: sum(pod["status"]["phase"] == "Running" for pod in api.pods()) == 2 * len(NODES))
    for node in NODES:
        api.patch(f"/api/v1/namespaces/default/pods/done-{node}/status", {"status": {"phase": "Succeeded"}})
    folder = tmp_path_factory.mktemp("exporters")
    try:
        with running_exporters(folder, exporter_programs, control_plane, housekeeping) as exporters:
            yield exporters
    finally:
        runs.stop()
        clean(api)
