"""A cluster with the controllers, the scheduler and the admission that Vane meets in a real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.files import DATA, kubectl
from tests.support.controlplane import ControlPlane
from tests.support.kubelet import TestKubelet
from tests.support.prometheus import PrometheusServer

CONTROLLERS = ("deployment-controller", "replicaset-controller", "serviceaccount-controller")


@pytest.fixture(scope="package")  # it would take CPU time from the tests that follow
def cluster(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Two nodes, kube-scheduler, Deployments that make Pods, service accounts and Pod Security enforced."""
    cluster = ControlPlane(
        programs,
        tmp_path_factory.mktemp("deploy-control-plane"),
        flags={"disable-admission-plugins": "TaintNodesByCondition"},  # no controller takes the not-ready taint away
    )
    cluster.start()
    try:
        with cluster.start_controller_manager(CONTROLLERS), cluster.start_kube_scheduler():
            kubectl(cluster, f"apply -f {DATA / 'crds.yaml'}")
            kubectl(cluster, "wait --for=condition=Established crd --all --timeout=30s")
            api = cluster.client()
            api.create_namespace("monitoring")  # where Prometheus, Grafana and their helpers are
            for i in range(2):
                api.create_node(f"node-{i}", labels={"topology.kubernetes.io/zone": f"zone-{i}"})
            kubelet = TestKubelet(api)
            kubelet.start()
            yield cluster
            kubelet.stop()
            assert kubelet.errors == []
    finally:
        cluster.stop()


@pytest.fixture(scope="package")  # it would take CPU time from the tests that follow
def prometheus(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    """Answers, though it has no metrics."""
    prometheus = PrometheusServer(programs, tmp_path_factory.mktemp("deploy-prometheus"))
    prometheus.start()
    yield prometheus
    prometheus.stop()
