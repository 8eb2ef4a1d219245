from __future__ import annotations

import pytest

from scheduler.kube.config import Connection, load_connection
from scheduler.kube.reflector import Reflector, ReflectorSettings
from scheduler.kube.resources import NODES, PODS
from scheduler.kube.transport import Transport
from tests.kube.test_reflector import Inbox
from tests.support.controlplane import ControlPlane
from tests.support.kubeapi import KubeApi
from tests.support.waiting import wait_until


@pytest.fixture
def connection(control_plane: ControlPlane, api: KubeApi) -> Connection:
    return load_connection(str(control_plane.kubeconfig_path))


def test_list_and_watch(api: KubeApi, connection: Connection) -> None:
    for number in range(7):
        api.create_pod(f"p{number}")
    api.create_node("n1", labels={"zone": "a"})
    transport = Transport(connection)
    pods, nodes = Inbox(), Inbox()
    restarts: list[tuple[str, str]] = []
    reflectors = [
        Reflector(kind, transport, inbox, lambda kind, reason: restarts.append((kind, reason)))
        for kind, inbox in ((PODS, pods), (NODES, nodes))
    ]
    for reflector in reflectors:
        reflector.start()
    wait_until(lambda: pods.lists and nodes.lists, 10)
    assert sorted(pods.lists[0]) == [f"p{number}" for number in range(7)]
    assert nodes.lists == [["n1"]]

    api.create_pod("new")
    api.patch("/api/v1/namespaces/default/pods/new", {"metadata": {"labels": {"a": "b"}}})
    api.delete_pod("new", grace=0)
    api.delete("/api/v1/nodes/n1")
    wait_until(lambda: ("DELETED", "new") in pods.changes and nodes.changes)
    # One more MODIFIED is the mark of its deletion.
    assert [kind for kind, name in pods.changes if name == "new"] == ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]
    assert nodes.changes == [("DELETED", "n1")]

    api.bind("p0", "n1")
    api.patch("/api/v1/namespaces/default/pods/p0/status", {"status": {"phase": "Succeeded"}})
    wait_until(lambda: ("DELETED", "p0") in pods.changes, what="the end of p0, which arrives as its deletion")
    assert restarts == []
    for reflector in reflectors:
        reflector.stop()
        assert not reflector.is_alive  # a silent TLS watch is interrupted too
    transport.close()


def test_pages_continue(api: KubeApi, connection: Connection) -> None:
    for number in range(7):
        api.create_pod(f"p{number}")
    transport = Transport(connection)
    inbox = Inbox()
    reflector = Reflector(PODS, transport, inbox, settings=ReflectorSettings(page_size=3))
    reflector.start()
    wait_until(lambda: inbox.lists, 10)
    assert sorted(inbox.lists[0]) == [f"p{number}" for number in range(7)]
    reflector.stop()
    transport.close()
