"""Patches of other objects than Pods: against a scripted API server, and against a real one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scheduler.kube.config import load_connection
from scheduler.kube.resources import path_of
from tests.kube.binder.running_binder import Running
from tests.kube.fake_api import Exchange, FakeApi, cuts, replies, status
from tests.support import storage
from tests.support.controlplane import ControlPlane
from tests.support.kubeapi import KubeApi

PATH = "/api/v1/persistentvolumes/pv"
BODY = {"metadata": {"resourceVersion": "1", "annotations": {"a": "b"}}}
WRITTEN = replies(200, {"metadata": {"name": "pv", "resourceVersion": "42"}})
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def test_what_was_written_comes_back_with_its_version(server: FakeApi, running: Running) -> None:
    server.script("PATCH", PATH, WRITTEN)
    result = running.write(PATH, BODY)
    assert (result.outcome, result.resource_version) == ("patched", "42")
    (request,) = server.of("PATCH", PATH)
    assert (request.headers["Content-Type"], request.json) == ("application/merge-patch+json", BODY)


@pytest.mark.parametrize(
    ("code", "reason", "message"),
    [(409, "Conflict", MODIFIED), (404, "NotFound", 'persistentvolumes "pv" not found'), (403, "Forbidden", "no")],
)
def test_what_is_final_is_told_in_the_servers_words(
    server: FakeApi, running: Running, code: int, reason: str, message: str
) -> None:
    server.script("PATCH", PATH, replies(code, status(code, reason, message)))
    result = running.write(PATH, BODY)
    assert (result.outcome, result.message) == ("failed", message)
    assert len(server.of("PATCH", PATH)) == 1


@pytest.mark.parametrize("fault", [replies(503, {}), cuts])
def test_what_may_pass_is_tried_again(server: FakeApi, running: Running, fault: Callable[[Exchange], None]) -> None:
    server.script("PATCH", PATH, fault, WRITTEN)
    assert running.write(PATH, BODY).outcome == "patched"
    server.script("PATCH", PATH, fault)
    before = len(server.of("PATCH", PATH))
    assert running.write(PATH, BODY).outcome == "failed"
    assert len(server.of("PATCH", PATH)) - before == 4


def test_an_answer_that_is_no_object_is_a_failure(server: FakeApi, running: Running) -> None:
    server.script("PATCH", PATH, replies(200, ["nothing"]))
    result = running.write(PATH, BODY)
    assert result.outcome == "failed"
    assert result.message.startswith("not an object: ")


def test_nothing_is_sent_once_the_lease_may_be_another_replicas(server: FakeApi, running: Running) -> None:
    server.script("PATCH", PATH, WRITTEN)
    running.lead_for(-1.0)
    assert running.write(PATH, BODY).outcome == "expired"
    assert server.of("PATCH", PATH) == []


@pytest.mark.parametrize(
    ("kind", "namespace", "path"),
    [
        ("PersistentVolume", "", "/api/v1/persistentvolumes/x"),
        ("PersistentVolumeClaim", "shop", "/api/v1/namespaces/shop/persistentvolumeclaims/x"),
        ("StorageClass", "", "/apis/storage.k8s.io/v1/storageclasses/x"),
    ],
)
def test_the_path_of_one_object(kind: str, namespace: str, path: str) -> None:
    assert path_of(kind, namespace, "x") == path


def test_a_real_server_takes_the_patch_once(
    control_plane: ControlPlane, api: KubeApi, start: Callable[..., Running]
) -> None:
    """The version that the patch names is a precondition: whoever comes second is told so, and changes nothing."""
    api.grant("vane", [{"apiGroups": [""], "resources": ["persistentvolumes"], "verbs": ["patch"]}])
    running = start(load_connection(str(control_plane.make_kubeconfig("vane"))))
    made = api.post(storage.VOLUMES, storage.local_volume("pv", "local", "n1"))
    version = made["metadata"]["resourceVersion"]
    body = {"metadata": {"resourceVersion": version, "annotations": {"by": "first"}}}

    first = running.write(PATH, body)
    second = running.write(PATH, {"metadata": {"resourceVersion": version, "annotations": {"by": "second"}}})

    there = api.get(PATH)
    assert (first.outcome, first.resource_version) == ("patched", there["metadata"]["resourceVersion"])
    assert second.outcome == "failed"
    assert second.message == f'Operation cannot be fulfilled on persistentvolumes "pv": {MODIFIED}'
    assert there["metadata"]["annotations"] == {"by": "first"}
    assert there["spec"] == made["spec"]
