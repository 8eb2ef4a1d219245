"""Bind variants on real API servers: delayed until confirmed, as an annotation only, in another cluster."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import StartVane
from tests.support.audit import AuditLog
from tests.support.controlplane import ControlPlane
from tests.support.kubeapi import KubeApi
from tests.support.vane import VaneProcess, grant_reviews, grant_vane
from tests.support.waiting import wait_until

CONFIGURATION = """\
apiVersion: vane.dev/v1
kind: VaneConfiguration
scheduler:
  profiles:
    - schedulerName: delayed
      plugins: {multiPoint: {enabled: [{name: DelayedBinder}], disabled: [{name: DefaultBinder}]}}
    - schedulerName: hasty
      plugins: {multiPoint: {enabled: [{name: DelayedBinder}]}}
      pluginConfig: [{name: DelayedBinder, args: {timeout: 1500ms}}]
    - schedulerName: annotating
      plugins:
        multiPoint:
          enabled: [{name: AnnotationBinder}, {name: DefaultBinder}]
          disabled: [{name: DefaultBinder}]
      pluginConfig:
        - name: AnnotationBinder
          args: {pods: {matchLabels: {bind: elsewhere}}}
"""
REMOTE = """\
    - schedulerName: remote
      plugins: {multiPoint: {enabled: [{name: RemoteBinder}], disabled: [{name: DefaultBinder}]}}
      pluginConfig: [{name: RemoteBinder, args: {cluster: west}}]
"""
PROPOSED, CONFIRMED = "vane.dev/proposed-node", "vane.dev/confirmed-node"
ASSUMED = 'scheduler_cache_size{type="assumed_pods"}'

Start = Callable[[], VaneProcess]


@pytest.fixture
def start(start_vane: StartVane, tmp_path: Path) -> Start:
    configuration = tmp_path / "vane.yaml"
    configuration.write_text(CONFIGURATION)
    return lambda: start_vane(flags=["--config", str(configuration)])


def annotation(api: KubeApi, pod: str, key: str) -> str:
    return str(api.pod(pod)["metadata"].get("annotations", {}).get(key, ""))


def wait_annotation(api: KubeApi, pod: str, key: str) -> str:
    return wait_until(lambda: annotation(api, pod, key), 15.0, f"annotation {key} of Pod {pod}")


def annotate(api: KubeApi, pod: str, key: str, value: str | None) -> None:
    api.patch(f"/api/v1/namespaces/default/pods/{pod}", {"metadata": {"annotations": {key: value}}})


def condition(api: KubeApi, pod: str) -> str:
    conditions = api.pod(pod).get("status", {}).get("conditions", [])
    return next((f"{c['reason']}: {c['message']}" for c in conditions if c["status"] == "False"), "")


def wait_condition(api: KubeApi, pod: str, text: str) -> None:
    wait_until(lambda: text in condition(api, pod), 15.0, f"{text!r} of Pod {pod}")


def is_bound(api: KubeApi, pod: str) -> bool:
    return "nodeName" in api.pod(pod)["spec"]


def bindings(audit: AuditLog, pod: str) -> list[Any]:
    return audit.events(verb="create", resource="pods", subresource="binding", name=pod)


# -- delayed until confirmed ------------------------------------------------------------------------------------


def test_a_proposal_is_bound_once_its_annotation_confirms_it(api: KubeApi, start: Start, audit: AuditLog) -> None:
    api.create_node("a", cpu="1")
    start()
    api.create_pod("web", cpu="1", scheduler_name="delayed")
    assert wait_annotation(api, "web", PROPOSED) == "a"

    api.create_pod("second", cpu="1", scheduler_name="delayed")
    wait_condition(api, "second", "Insufficient cpu")  # the room of a proposal is taken
    annotate(api, "web", CONFIRMED, "b")
    api.create_pod("third", cpu="1", scheduler_name="delayed")
    wait_condition(api, "third", "Insufficient cpu")  # by now the update of `web` has been seen too
    assert not is_bound(api, "web")
    assert bindings(audit, "web") == []

    annotate(api, "web", CONFIRMED, "a")
    assert api.wait_bound("web") == "a"
    assert len(bindings(audit, "web")) == 1


def test_a_call_sets_a_pod_free_and_another_sends_one_back(
    api: KubeApi, control_plane: ControlPlane, start: Start
) -> None:
    api.create_node("a", cpu="2")
    vane = start()
    grant_reviews(api, "vane")
    vane.token = control_plane.service_account_token("queue")
    calls = [{"nonResourceURLs": ["/permit/*"], "verbs": ["post"]}]
    api.grant("system:serviceaccount:default:queue", calls, name="calls")
    for name in ("free", "back"):
        api.create_pod(name, cpu="1", scheduler_name="delayed")
        wait_annotation(api, name, PROPOSED)

    assert vane.call("permit/default/free", {"allow": True}) == (200, {"waiting": True})
    assert api.wait_bound("free") == "a"
    assert vane.call("permit/default/free", {"allow": True})[0] == 404
    assert vane.call("permit/default/nobody", {"allow": True})[0] == 404

    assert vane.call("permit/default/back", {"allow": False, "message": "not on Fridays"})[0] == 200
    wait_condition(api, "back", "Unschedulable: 0/1 nodes are available: 1 not on Fridays.")
    api.create_pod("next", cpu="1", scheduler_name="delayed")
    assert wait_annotation(api, "next", PROPOSED) == "a", "the room was given back"


def test_a_refused_proposal_gives_its_room_back_and_may_be_confirmed_later(api: KubeApi, start: Start) -> None:
    api.create_node("a", cpu="1")
    start()
    api.create_pod("web", cpu="1", scheduler_name="delayed")
    wait_annotation(api, "web", PROPOSED)

    annotate(api, "web", CONFIRMED, "none")
    wait_condition(api, "web", f'Unschedulable: 0/1 nodes are available: 1 annotation {CONFIRMED} is "none".')
    api.create_pod("next", cpu="1", scheduler_name="delayed")
    assert wait_annotation(api, "next", PROPOSED) == "a"
    api.delete_pod("next", grace=0)

    annotate(api, "web", CONFIRMED, "a")
    assert api.wait_bound("web") == "a"


def test_a_proposal_that_nobody_confirms_runs_out(api: KubeApi, start: Start) -> None:
    api.create_node("a", cpu="1")
    vane = start()
    api.create_pod("web", cpu="1", scheduler_name="hasty")
    wait_annotation(api, "web", PROPOSED)
    wait_condition(api, "web", "rejected due to timeout after waiting 1.5s at plugin DelayedBinder")
    assert not is_bound(api, "web")
    vane.wait_for_metric('scheduler_permit_wait_duration_seconds_count{result="Unschedulable"}', 1)

    annotate(api, "web", CONFIRMED, "a")  # late, and still in time for the next attempt
    assert api.wait_bound("web") == "a"


# -- as an annotation only --------------------------------------------------------------------------------------


def test_an_annotated_decision_holds_its_room_through_a_restart(api: KubeApi, start: Start, audit: AuditLog) -> None:
    for name in ("a", "b"):
        api.create_node(name, cpu="2")
    first = start()
    for name in ("one", "two"):
        api.create_pod(name, cpu="2", scheduler_name="annotating", labels={"bind": "elsewhere"})
    places = {name: wait_annotation(api, name, "vane.dev/node") for name in ("one", "two")}
    assert set(places.values()) == {"a", "b"}
    assert {name: api.pod(name)["status"]["nominatedNodeName"] for name in places} == places
    api.create_pod("small", cpu="1", scheduler_name="annotating")
    wait_condition(api, "small", "0/2 nodes are available: 2 Insufficient cpu.")
    first.process.signal(signal.SIGTERM)
    assert first.process.wait(15.0) == 0

    # Emptier, so every Pod would go there but for the promises; and `small` is asked about first, as it is older.
    api.create_node("c", cpu="3")
    second = start()

    assert api.wait_bound("small") == "c", "Pods that the plugin does not take are bound as usual"
    second.wait_for_metric('scheduler_schedule_attempts_total{profile="annotating",result="scheduled"}', 3)
    assert {name: annotation(api, name, "vane.dev/node") for name in places} == places
    api.create_pod("late", cpu="2", scheduler_name="annotating", labels={"bind": "elsewhere"})
    assert wait_annotation(api, "late", "vane.dev/node") == "c"
    api.create_pod("too-much", cpu="1", scheduler_name="annotating")
    wait_condition(api, "too-much", "0/3 nodes are available: 3 Insufficient cpu.")
    assert not any(is_bound(api, name) for name in ("one", "two", "late"))
    assert [bindings(audit, name) for name in ("one", "two", "late")] == [[], [], []]


def test_whoever_binds_an_annotated_pod_confirms_it_and_its_deletion_frees_the_room(api: KubeApi, start: Start) -> None:
    api.create_node("a", cpu="2")
    vane = start()
    for name in ("bound", "deleted"):
        api.create_pod(name, cpu="1", scheduler_name="annotating", labels={"bind": "elsewhere"})
        wait_annotation(api, name, "vane.dev/node")
    vane.wait_for_metric(ASSUMED, 2)

    api.bind("bound", "a")
    vane.wait_for_metric(ASSUMED, 1)
    api.create_pod("next", cpu="1", scheduler_name="annotating")
    wait_condition(api, "next", "Insufficient cpu")

    api.delete_pod("deleted", grace=0)
    vane.wait_for_metric(ASSUMED, 0)
    assert api.wait_bound("next") == "a"


# -- in another cluster -----------------------------------------------------------------------------------------


def test_a_pod_is_bound_in_another_cluster_and_shown_here(
    api: KubeApi,
    other_api: KubeApi,
    other_control_plane: ControlPlane,
    start_vane: StartVane,
    tmp_path: Path,
) -> None:
    grant_vane(other_api, "vane", "rbac-other-cluster.yaml")
    west = other_control_plane.make_kubeconfig("vane", path=tmp_path / "west.kubeconfig")
    configuration = tmp_path / "vane.yaml"
    configuration.write_text(f"{CONFIGURATION}{REMOTE}clusters: {{west: {west}}}\n")
    for cluster in (api, other_api):
        cluster.create_node("a", cpu="2")
    other_api.create_pod("web", cpu="2", scheduler_name="somebody-elsewhere")

    vane = start_vane(flags=["--config", str(configuration)])
    here = api.create_pod("web", cpu="2", scheduler_name="remote")

    assert other_api.wait_bound("web") == "a"
    assert wait_annotation(api, "web", "vane.dev/cluster") == "west"
    shown = api.pod("web")
    assert shown["metadata"]["uid"] == here["metadata"]["uid"]
    assert shown["metadata"]["annotations"]["vane.dev/node"] == "a"
    assert shown["status"]["nominatedNodeName"] == "a"
    assert "nodeName" not in shown["spec"]
    wait_until(lambda: api.events("web", reason="Scheduled"), 10.0, "the Event here")
    assert other_api.events("web") == []

    # The room is counted here, until the Pod here is gone; a Pod that is not there yet is tried again.
    api.create_pod("early", cpu="2", scheduler_name="remote")
    wait_condition(api, "early", "0/1 nodes are available: 1 Insufficient cpu.")
    vane.wait_for_metric(ASSUMED, 1)
    api.delete_pod("web", grace=0)
    wait_condition(api, "early", "there is no Pod default/early in cluster west (yet)")
    other_api.delete_pod("web", grace=0)
    other_api.create_pod("early", cpu="2", scheduler_name="somebody-elsewhere")
    assert other_api.wait_bound("early", timeout=20.0) == "a"
