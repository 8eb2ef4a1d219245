"""A third-party plugin at all thirteen extension points, enabled by its import path, on the real API server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import StartVane
from tests.support import manifests
from tests.support.every_point import LOG
from tests.support.kubeapi import KubeApi
from tests.support.waiting import wait_until

CONFIGURATION = """\
apiVersion: vane.dev/v1
kind: VaneConfiguration
scheduler:
  profiles:
    - schedulerName: vane
      plugins:
        multiPoint:
          enabled: [{name: "tests.support.every_point:EveryPoint"}]
          disabled: [{name: PrioritySort}, {name: DefaultBinder}]
      pluginConfig:
        - name: EveryPoint
          args: {waitS: 30}
"""
BINDING = ["Reserve", "Permit", "PreBind", "Bind", "PostBind"]


class Calls:
    def __init__(self, path: Path) -> None:
        self._path = path

    def of(self, pod: str) -> list[dict[str, Any]]:
        """Return the calls about one Pod and those that name none, in order."""
        calls = [json.loads(line) for line in self._path.read_text().splitlines()]
        return [call for call in calls if call.get("pod", pod) == pod]

    def points(self, pod: str) -> list[str]:
        return list(dict.fromkeys(call["point"] for call in self.of(pod)))

    def wait_for(self, pod: str, point: str) -> None:
        wait_until(lambda: point in self.points(pod), 15.0, f"{point} of Pod {pod}")


@pytest.fixture
def calls(api: KubeApi, start_vane: StartVane, tmp_path: Path) -> Calls:
    for name in ("a", "best", "refused"):
        api.create_node(name, cpu="4")
    path, configuration = tmp_path / "calls", tmp_path / "vane.yaml"
    path.touch()
    configuration.write_text(CONFIGURATION)
    start_vane(flags=["--config", str(configuration)], env={LOG: str(path)})
    return Calls(path)


def create(api: KubeApi, name: str, at: str = "", cpu: str = "1") -> None:
    api.post(
        "/api/v1/namespaces/default/pods",
        manifests.pod(name, cpu=cpu, scheduler_name="vane", labels={"at": at}),
    )


def message(api: KubeApi, name: str) -> str:
    """Wait for the condition PodScheduled=False, and return its reason and message."""

    def said() -> str:
        conditions = api.pod(name).get("status", {}).get("conditions", [])
        return next((f"{c['reason']}: {c['message']}" for c in conditions if c["status"] == "False"), "")

    return wait_until(said, 15.0, f"the condition of Pod {name}")


def test_every_point_is_called_in_order_with_its_arguments(api: KubeApi, calls: Calls) -> None:
    create(api, "web")
    assert api.wait_bound("web") == "best"
    calls.wait_for("web", "PostBind")

    assert calls.points("web") == [
        "PreEnqueue", "QueueSort", "PreFilter", "Filter", "PreScore", "Score", "NormalizeScore", *BINDING
    ]  # fmt: skip
    of = {call["point"]: call for call in calls.of("web")}
    assert of["PreFilter"]["n_nodes"] == 3
    assert (of["PreScore"]["n_rows"], of["Score"]["n_rows"], of["NormalizeScore"]["highest"]) == (2, 2, 1000)
    assert of["Score"]["state"] == "score state of web"
    assert all(of[point]["state"] == "state of web" for point in ["Filter", *BINDING])
    assert all(of[point]["node"] == "best" for point in BINDING)
    wait_until(
        lambda: (
            api.pod("web")["metadata"]["annotations"] == {"every-point-prebind": "best", "every-point-postbind": "best"}
        ),
        10.0,
        "the patches of PreBind and PostBind",
    )

    create(api, "huge", cpu="64")
    preemption = "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    refused = f"Unschedulable: 0/3 nodes are available: 3 Insufficient cpu. {preemption}, no way out."
    assert message(api, "huge") == refused
    assert calls.points("huge")[-1] == "PostFilter"


@pytest.mark.parametrize(
    ("at", "walked", "said"),
    [
        ("reserve-refuses", ["Reserve"], "Unschedulable: 0/1 nodes are available: 1 reserve refuses."),
        ("permit-refuses", ["Reserve", "Permit"], "Unschedulable: 0/1 nodes are available: 1 permit refuses."),
        ("prebind-raises", BINDING[:3], 'SchedulerError: running PreBind plugin "EveryPoint": prebind raises'),
        ("bind-raises", BINDING[:4], 'SchedulerError: running Bind plugin "EveryPoint": bind raises'),
    ],
)
def test_what_was_done_is_undone(api: KubeApi, calls: Calls, at: str, walked: list[str], said: str) -> None:
    # Each takes a whole node: what follows fits only where its room was given back.
    create(api, "bad", at, cpu="4")
    assert message(api, "bad") == said
    calls.wait_for("bad", "Unreserve")

    assert [call["point"] for call in calls.of("bad") if call["point"] in [*BINDING, "Unreserve"]][
        : len(walked) + 1
    ] == [*walked, "Unreserve"]
    assert next(call for call in calls.of("bad") if call["point"] == "Unreserve")["node"] == "best"
    api.delete_pod("bad", grace=0)
    create(api, "good", cpu="4")
    assert api.wait_bound("good") == "best"


@pytest.mark.parametrize("verdict", ["granted", "refused"])
def test_a_pod_waits_at_permit_and_holds_nobody_up(api: KubeApi, calls: Calls, verdict: str) -> None:
    create(api, "patient", "permit-waits")
    wait_until(
        lambda: (api.pod("patient")["metadata"].get("annotations") or {}).get("every-point") == "best",
        10.0,
        "the patch of Permit",
    )
    create(api, "other")
    api.wait_bound("other")
    assert "PreBind" not in calls.points("patient")

    api.patch("/api/v1/namespaces/default/pods/patient", {"metadata": {"labels": {"permit": verdict}}})

    if verdict == "granted":
        assert api.wait_bound("patient") == "best"
    else:
        assert message(api, "patient") == "Unschedulable: 0/1 nodes are available: 1 permit was refused."
        assert "Unreserve" in calls.points("patient")
