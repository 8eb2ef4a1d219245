"""The servers of the bench, without Vane: the faults that they are for can be made."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3

from tests.faults.bench.servers import Servers, started
from tests.faults.checker.watcher import Watcher
from tests.faults.proxy.http import Fault
from tests.support.kubeapi import ApiError, KubeApi
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def servers(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with started(programs, tmp_path_factory.mktemp("faults")) as servers:
        yield servers


@pytest.fixture
def behind(servers: Servers) -> Iterator[KubeApi]:
    """A client behind all proxies."""
    control_plane = servers.control_plane
    with contextlib.closing(KubeApi(servers.front.url, control_plane.ca_path, token=control_plane.token())) as client:
        yield client
    servers.mend()


def test_a_revision_that_was_compacted_is_told_as_410_in_the_stream(servers: Servers, behind: KubeApi) -> None:
    servers.balancer.upstreams = [servers.control_plane.second_port]
    old = behind.get("/api/v1/nodes")["metadata"]["resourceVersion"]
    for i in range(3):
        behind.create_node(f"n{i}")
    servers.control_plane.compact()

    event = next(iter(behind.watch("/api/v1/nodes", old)))

    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


def test_of_two_api_servers_one_may_end_and_etcd_may_be_killed(servers: Servers, behind: KubeApi) -> None:
    first = servers.control_plane.apiservers[0]
    first.kill()

    def is_served() -> bool:
        try:
            return bool(behind.get("/api/v1/namespaces/default"))
        except (urllib3.exceptions.HTTPError, ApiError, OSError):
            return False

    wait_until(is_served, 10.0, "an answer of the other API server")
    first.start()
    servers.control_plane.restart_etcd()
    servers.control_plane.wait_well()
    assert is_served()


def test_the_checker_watches_on_where_a_server_ends(servers: Servers) -> None:
    clients = servers.control_plane.clients()
    watcher = Watcher(clients)
    watcher.start()
    try:
        servers.control_plane.apiservers[0].kill()
        clients[1].create_pod("during")
        wait_until(lambda: "during" in _names(watcher), 10.0, "the Pod that came meanwhile")
        servers.control_plane.apiservers[0].start()
        servers.control_plane.wait_well()
    finally:
        watcher.stop()
        for client in clients:
            client.close()
    assert watcher.history.n_gaps == 0


def test_an_answer_is_lost_after_the_api_server_has_done_it(servers: Servers, behind: KubeApi) -> None:
    fault = servers.front.add(Fault(lambda call: call.method == "POST", resets_after=True))
    with pytest.raises((urllib3.exceptions.HTTPError, OSError)):
        behind.create_namespace("lost")
    assert fault.n_hit == 1
    assert behind.exists("/api/v1/namespaces/lost")


def test_etcd_can_be_slow(servers: Servers, behind: KubeApi) -> None:
    for line in servers.control_plane.etcd_lines:
        line.line.latency_s = 0.2
    begun = servers.front.calls[-1].at_s if servers.front.calls else 0.0
    behind.create_namespace("slow")
    assert servers.front.calls[-1].at_s >= begun
    assert json.dumps(behind.get("/api/v1/namespaces/slow"))


def _names(watcher: Watcher) -> set[str]:
    return {change.name for change in watcher.history.ordered()}
