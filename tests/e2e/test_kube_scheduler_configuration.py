"""One KubeSchedulerConfiguration for the real kube-scheduler and for Vane: the same arguments, the same outcome."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import StartVane
from tests.support.clocks import OwnTime
from tests.support.controlplane import ControlPlane
from tests.support.kubeapi import KubeApi
from tests.support.vane import VaneProcess
from tests.support.waiting import wait_until

Json = dict[str, Any]

# PostFilter is off on both sides: what is compared are filters and scores.
CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
parallelism: 4
podInitialBackoffSeconds: 4
podMaxBackoffSeconds: 8
profiles:
  - schedulerName: NAME
    plugins:
      postFilter: {disabled: [{name: "*"}]}
      multiPoint:
        enabled: [{name: NodeResourcesFit, weight: 20}]
        disabled: [{name: NodeResourcesBalancedAllocation}]
    pluginConfig:
      - name: NodeResourcesFit
        args:
          apiVersion: kubescheduler.config.k8s.io/v1
          kind: NodeResourcesFitArgs
          ignoredResources: [example.com/license]
          scoringStrategy: {type: MostAllocated, resources: [{name: memory, weight: 1}]}
      - name: NodeAffinity
        args:
          addedAffinity:
            requiredDuringSchedulingIgnoredDuringExecution:
              nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [batch]}]}]
            preferredDuringSchedulingIgnoredDuringExecution:
              - {weight: 1, preference: {matchExpressions: [{key: spot, operator: Exists}]}}
"""

PODS: dict[str, Json] = {
    "licensed": {"requests": {"example.com/license": "1"}, "limits": {"example.com/license": "1"}},
    "packed": {"memory": "1Gi"},
    "too-big": {"cpu": "64"},
    "nowhere": {"spec": {"nodeSelector": {"disk": "tape"}}},
}


@pytest.fixture
def vane(api: KubeApi, control_plane: ControlPlane, start_vane: StartVane, tmp_path: Path) -> Iterator[VaneProcess]:
    """Both run with the file, on five nodes of which one is outside the pool and one nearly full."""
    pool = {"pool": "batch"}
    api.create_node("outside", labels={"spot": "yes"})
    api.create_node("small", labels=pool, memory="4Gi")
    api.create_node("middle", labels=pool, memory="16Gi")
    api.create_node("large", labels=pool, memory="64Gi")
    api.create_node("spot", labels={**pool, "spot": "yes"}, memory="64Gi")
    config = tmp_path / "vane.yaml"
    config.write_text(CONFIGURATION.replace("NAME", "vane"))
    vane = start_vane(flags=["--config", str(config)])
    with control_plane.start_kube_scheduler(CONFIGURATION.replace("NAME", "reference")):
        yield vane


def test_arguments_act_as_in_kube_scheduler(api: KubeApi, vane: VaneProcess) -> None:
    outcomes = {}
    for name, shape in PODS.items():
        for scheduler in ("reference", "vane"):
            pod = f"{name}-{scheduler}"
            api.create_pod(pod, scheduler_name=scheduler, **shape)
            outcomes[name, scheduler] = _outcome(api, pod)
            api.delete_pod(pod, grace=0)
    for name in PODS:
        assert outcomes[name, "vane"] == outcomes[name, "reference"]
    assert outcomes["packed", "vane"] == "small"
    assert "1 node(s) didn't match scheduler-enforced node affinity" in outcomes["too-big", "vane"]
    assert "parallelism: has no effect" in vane.process.log_text()


def test_backoff_is_that_of_the_file(api: KubeApi, vane: VaneProcess) -> None:
    """A Pod whose attempts end in an error serves its whole backoff: 4 s, where 1 s is the default."""
    expression = {
        "key": "a",
        "operator": "Gt",
        "values": ["-1"],
    }  # the API server takes it, and no scheduler can read it
    preferred = [{"weight": 1, "preference": {"matchExpressions": [expression]}}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    api.create_pod("unreadable", scheduler_name="vane", spec={"affinity": affinity})
    failed = 'scheduler_schedule_attempts_total{profile="vane",result="error"}'
    held_up = OwnTime([*vane.pids(), os.getpid()])
    vane.wait_for_metric(failed, 1.0)
    first_s = time.monotonic()
    vane.wait_for_metric(failed, 2.0)
    assert time.monotonic() - first_s > 3.0 - held_up.waited_s, "the page is a second old at most"


def _outcome(api: KubeApi, name: str) -> str:
    """Return the node, or why there is none, as soon as one of them is known."""

    def found() -> str:
        pod = api.pod(name)
        conditions = pod["status"].get("conditions", ())
        told = next((one.get("message", "") for one in conditions if one["type"] == "PodScheduled"), "")
        return str(pod["spec"].get("nodeName") or told)

    return wait_until(found, 15.0, f"an outcome of {name}")
