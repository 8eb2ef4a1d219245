"""Fixtures of the end-to-end tests: the scheduler itself beside the real control plane and Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.world import MeasuredCluster
from tests.support.controlplane import ControlPlane
from tests.support.exporter import NodeExporter
from tests.support.kubeapi import KubeApi
from tests.support.plugin import StartPrometheus
from tests.support.vane import VaneProcess, grant_vane

StartVane = Callable[..., VaneProcess]


@pytest.fixture
def start_vane(control_plane: ControlPlane, api: KubeApi, tmp_path: Path) -> Iterator[StartVane]:
    """Start `vane run` as the user `vane`, with no more rights than it needs; it ends with the test."""
    grant_vane(api, "vane")
    own = control_plane.make_kubeconfig("vane")
    started: list[VaneProcess] = []

    def start(kubeconfig: Path = own, **arguments: Any) -> VaneProcess:
        folder = tmp_path / f"vane-{len(started)}"
        folder.mkdir()
        vane = VaneProcess(folder, kubeconfig, **arguments)
        started.append(vane)
        vane.start()
        return vane

    yield start
    for vane in started:
        vane.stop()
    for vane in started:
        assert vane.violations == [], "the deciding thread did what it must not"


@pytest.fixture
def cluster(api: KubeApi, exporter: NodeExporter, start_prometheus: StartPrometheus) -> MeasuredCluster:
    """Twenty nodes of 8 CPUs, idle, each scraped twice a second."""
    nodes = [f"node-{i:02}" for i in range(20)]
    for node in nodes:
        api.create_node(node)
        exporter.add_node(node)
    prometheus = start_prometheus([exporter.scrape_config()], scrape_interval="500ms")
    return MeasuredCluster(api, exporter, prometheus, nodes)
