"""Our pages of metrics beside those of the real kube-scheduler that looks at the same cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tests.e2e.conftest import StartVane
from tests.support.controlplane import Component, ControlPlane
from tests.support.kubeapi import KubeApi
from tests.support.vane import VaneProcess
from tests.support.waiting import wait_until

Json = dict[str, Any]

SCHEDULERS = ("reference", "vane")
KUBE_SCHEDULER = {"profiles": [{"schedulerName": "reference"}]}
OPEN_PAGES = ["--authorization-always-allow-paths=/metrics,/metrics/resources,/metrics/slis"]


SIDECAR = {"name": "proxy", "image": "pause:3.10", "restartPolicy": "Always"}
INIT = {"name": "init", "image": "pause:3.10"}
PODS: dict[str, Json] = {
    "plain": {},
    "nothing": {"cpu": None, "memory": None},
    "too-big": {"cpu": "64"},
    "limits-only": {"cpu": None, "memory": None, "limits": {"cpu": "500m", "memory": "100M"}},
    "limits": {"limits": {"cpu": "1", "memory": "1Gi"}},
    "important": {"priority_class": "important"},
    "extended": {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}},
    "storage": {"requests": {"ephemeral-storage": "1Gi"}},
    "init": {"spec": {"initContainers": [INIT | {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "3"}}}]}},
    "sidecar": {
        "spec": {
            "initContainers": [
                SIDECAR | {"resources": {"requests": {"cpu": "300m"}, "limits": {"memory": "1Gi"}}},
                INIT | {"resources": {"requests": {"cpu": "1500m"}, "limits": {"memory": "100Mi"}}},
            ]
        }
    },
    "pod-level": {"spec": {"resources": {"requests": {"cpu": "700m"}, "limits": {"cpu": "1100m"}}}},
    "overhead": {"limits": {"cpu": "1"}, "spec": {"runtimeClassName": "heavy"}},
}


class Both(NamedTuple):
    api: KubeApi
    reference: Component
    vane: VaneProcess

    def families(self, scheduler: str, path: str) -> dict[str, Metric]:
        page = (self.vane if scheduler == "vane" else self.reference).page(path)
        return {family.name: family for family in text_string_to_metric_families(page)}

    def stable(self, scheduler: str, path: str) -> dict[str, Json]:
        """Return the shape of every family that the reference calls STABLE."""
        theirs = self.families("reference", path)
        names = [name for name, family in theirs.items() if family.documentation.startswith("[STABLE]")]
        found = self.families(scheduler, path)
        return {name: _shape(found[name]) if name in found else {} for name in names}

    def wait_until_alike(self, path: str) -> None:
        with contextlib.suppress(TimeoutError):  # what differs says more than that
            wait_until(lambda: self.stable("vane", path) == self.stable("reference", path), 10.0)

    def samples(self, scheduler: str, path: str) -> dict[str, float]:
        families = self.families(scheduler, path).values()
        return {_series(sample): sample.value for family in families for sample in family.samples}


@pytest.fixture
def both(api: KubeApi, control_plane: ControlPlane, start_vane: StartVane) -> Iterator[Both]:
    for i in range(3):
        api.create_node(f"node-{i}", extended={"example.com/gpu": "4"})
    api.create_priority_class("important", 1000)
    vane = start_vane()
    runtime_class = {
        "metadata": {"name": "heavy"},
        "handler": "h",
        "overhead": {"podFixed": {"cpu": "250m", "memory": "5Mi"}},
    }
    api.post("/apis/node.k8s.io/v1/runtimeclasses", runtime_class)
    with control_plane.start_kube_scheduler(KUBE_SCHEDULER, OPEN_PAGES) as reference:
        yield Both(api, reference, vane)
    api.delete("/apis/node.k8s.io/v1/runtimeclasses/heavy")


def test_every_stable_family_has_its_name_type_labels_and_buckets(both: Both) -> None:
    for scheduler in SCHEDULERS:
        both.api.create_pod(f"too-big-{scheduler}", cpu="64", scheduler_name=scheduler)
        both.api.create_pod(f"fits-{scheduler}", scheduler_name=scheduler, cpu="100m", limits={"cpu": "1"})
        both.api.wait_bound(f"fits-{scheduler}")
    for path, n_families in (("metrics", 8), ("metrics/resources", 2), ("metrics/slis", 2)):
        both.wait_until_alike(path)
        theirs = both.stable("reference", path)
        assert len(theirs) == n_families
        assert both.stable("vane", path) == theirs


def test_requests_and_limits_of_all_pods_are_the_same(both: Both) -> None:
    for name, shape in PODS.items():
        for scheduler in SCHEDULERS:
            both.api.create_pod(f"{name}-{scheduler}", scheduler_name=scheduler, **shape)
    both.api.create_pod("nobodys", scheduler_name="nobody")
    for scheduler in SCHEDULERS:
        both.api.create_pod(f"finished-{scheduler}", scheduler_name=scheduler)
        both.api.wait_bound(f"finished-{scheduler}")
        path = f"/api/v1/namespaces/default/pods/finished-{scheduler}/status"
        both.api.patch(path, {"status": {"phase": "Succeeded"}})
    fitting = [name for name in PODS if name != "too-big"]

    def samples(scheduler: str) -> dict[str, float]:
        return both.samples(scheduler, "metrics/resources")

    def has_settled() -> bool:
        shown = samples("reference")
        return samples("vane") == approx(shown) and not any("finished" in series for series in shown)

    for name in fitting:
        for scheduler in SCHEDULERS:
            both.api.wait_bound(f"{name}-{scheduler}")
    with contextlib.suppress(TimeoutError):  # what differs says more than that
        wait_until(has_settled, 10.0)
    shown = samples("reference")
    assert samples("vane") == approx(shown)

    for name in (*(f"{name}-{scheduler}" for name in PODS for scheduler in SCHEDULERS), "nobodys"):
        assert any(f"'pod': '{name}'" in series for series in shown) == (name.rpartition("-")[0] != "nothing"), name
    assert not any("finished" in series for series in shown)


def approx(samples: dict[str, float]) -> Any:
    """Go's way from a quantity to a float makes 0.35 of a CPU 0.35000000000000003."""
    return pytest.approx(samples, rel=1e-12)


def _series(sample: Sample) -> str:
    return f"{sample.name} {dict(sorted(sample.labels.items()))}"


def _shape(family: Metric) -> Json:
    """Return what a dashboard relies on: type, names, label names and, of a histogram, the bounds."""
    return {
        "type": family.type,
        "labels": {(sample.name, *sorted(sample.labels)) for sample in family.samples},
        "bounds": sorted({float(sample.labels["le"]) for sample in family.samples if "le" in sample.labels}),
    }
