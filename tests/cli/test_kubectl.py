"""`kubectl vane` on a real API server: the leader by its Lease, the forward through the API server, a real token.

Behind the API server, a double of the kubelet's side of port-forward leads to the pages of Vane.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler.cli import top
from scheduler.cli.kubectl import main
from scheduler.cli.top_client import ServerAccess, SignalsReader
from scheduler.cli.way_to_leader import Door, WayToLeader
from scheduler.kube.config import load_connection
from scheduler.kube.leader import Wanted
from scheduler.kube.reviews import AccessReviews, Caller
from scheduler.kube.transport import Transport
from scheduler.serve.http import PageServer
from scheduler.settings.settings import ServingSettings
from tests.cli.command import RULES
from tests.cli.top_page import PAGE
from tests.readme import CHECKOUT
from tests.serve.source import Source
from tests.support.audit import AuditLog
from tests.support.controlplane import ControlPlane
from tests.support.kubeapi import KubeApi
from tests.support.port_forwards import PortForwards
from tests.support.ports import free_port

pytestmark = pytest.mark.controlplane

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
READER = [*yaml.safe_load_all((CHECKOUT / "deploy" / "base" / "reader.yaml").read_text())]
PORTS = [{"name": "https-metrics", "containerPort": 10259}]


class Kubectl:
    """`kubectl-vane`, as kubectl would start it, with what it prints in hand."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self.out = self.err = ""

    def __call__(self, *words: str) -> int:
        out, err = io.StringIO(), io.StringIO()
        code = main(words, {"KUBECONFIG": str(self.kubeconfig)}, out, err)
        self.out, self.err = out.getvalue(), err.getvalue()
        return code


@pytest.fixture
def forwards(api: KubeApi, tmp_path: Path) -> Iterator[PortForwards]:
    forwards = PortForwards(tmp_path / "kubelet")
    forwards.start()
    api.create_node("n1")
    api.patch("/api/v1/nodes/n1/status", {"status": forwards.node_status()})
    yield forwards
    forwards.stop()


class Reviews(AccessReviews):
    """Asks the real API server, and remembers who has called."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.callers: list[str] = []

    def caller(self, token: str) -> Caller | None:
        caller = super().caller(token)
        self.callers.append(caller.username if caller is not None else "")
        return caller


@pytest.fixture
def reviews(control_plane: ControlPlane) -> Iterator[Reviews]:
    transport = Transport(load_connection(str(control_plane.kubeconfig_path)))
    yield Reviews(transport)
    transport.close()


@pytest.fixture
def pages(api: KubeApi, reviews: Reviews, source: Source) -> Iterator[PageServer]:
    """The pages of a Vane that listens on more than loopback: callers need a token that the API server accepts."""
    source.signals_page, source.nodes = json.dumps(PAGE).encode(), {"b"}
    settings = ServingSettings(secure_port=free_port(), bind_address="0.0.0.0")
    server = PageServer(settings, source, reviews)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def vane(api: KubeApi, forwards: PortForwards, pages: PageServer, control_plane: ControlPlane) -> Kubectl:
    """Two replicas in vane-system, the second leads; the account of deploy/base."""
    api.create_namespace("vane-system")
    for document in READER:
        group = "/api/v1/namespaces/vane-system" if document["kind"] == "ServiceAccount" else ""
        path = group or "/apis/rbac.authorization.k8s.io/v1"
        names = {"ServiceAccount": "serviceaccounts", "ClusterRole": "clusterroles"}
        ensure(api, f"{path}/{names.get(document['kind'], 'clusterrolebindings')}", document)
    for name in ("vane-1", "vane-2"):
        run_pod(api, name)
        forwards.pods[f"vane-system/{name}", 10259] = int(pages.url.rpartition(":")[2])
    lead(api, "vane-2_0a1b")
    return Kubectl(control_plane.kubeconfig_path)


def ensure(api: KubeApi, path: str, document: Any) -> None:
    if not api.exists(f"{path}/{document['metadata']['name']}"):
        api.post(path, document)


def run_pod(api: KubeApi, name: str, namespace: str = "vane-system", **spec: Any) -> None:
    api.create_pod(name, namespace=namespace, node_name="n1", ports=PORTS, spec=spec)
    api.patch(f"/api/v1/namespaces/{namespace}/pods/{name}/status", {"status": {"phase": "Running"}})


def lead(api: KubeApi, holder: str, name: str = "vane") -> None:
    lease = {"metadata": {"name": name}, "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15}}
    if api.exists(f"{LEASES}/{name}"):
        api.patch(f"{LEASES}/{name}", lease)
    else:
        api.post(LEASES, lease)


def test_top_shows_what_the_leader_measures(vane: Kubectl, forwards: PortForwards) -> None:
    assert vane("top") == 0, vane.err
    assert "hot: refused, 9 points" in vane.out
    assert forwards.asked == ["vane-system/vane-2:10259"]


def test_kubectl_itself_finds_the_command(vane: Kubectl, control_plane: ControlPlane) -> None:
    folder = Path(sys.executable).parent
    environ = os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "KUBECONFIG": str(vane.kubeconfig)}
    words = [str(control_plane.programs / "kubectl"), "vane", "top", "cpu", "--sort", "name", "-n", "vane-system"]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "hot: refused, 9 points" in done.stdout


def test_the_callers_own_token_is_never_sent_to_a_pod(vane: Kubectl, reviews: Reviews) -> None:
    assert vane("top") == 0
    assert reviews.callers == ["system:serviceaccount:vane-system:vane-reader"]


def test_a_vane_that_asks_for_no_token_is_sent_none(
    vane: Kubectl, forwards: PortForwards, source: Source, audit: AuditLog
) -> None:
    server = PageServer(ServingSettings(secure_port=free_port()), source)
    server.start()
    forwards.pods["vane-system/vane-2", 10259] = int(server.url.rpartition(":")[2])
    try:
        assert vane("top") == 0, vane.err
    finally:
        server.stop()
    assert audit.events(resource="serviceaccounts", subresource="token") == []


def test_one_connection_is_kept_until_it_breaks_and_then_the_new_leader_is_asked(
    vane: Kubectl, forwards: PortForwards, api: KubeApi
) -> None:
    way = WayToLeader(Door(str(vane.kubeconfig), None, Wanted(), "vane-reader"), {})
    reader = SignalsReader(ServerAccess(way=way))
    for _ in range(3):
        assert reader.read(limit="1") == PAGE
    assert forwards.asked == ["vane-system/vane-2:10259"]
    lead(api, "vane-1_2c3d")
    forwards.cut()
    assert reader.read(limit="1") == PAGE
    assert forwards.asked[1:] == ["vane-system/vane-1:10259"]
    reader.close()
    way.close()


@pytest.mark.parametrize(
    ("holder", "spec", "namespace", "words"),
    [
        pytest.param("mine_1", {}, "elsewhere", (), id="another namespace, found"),
        pytest.param("mine_1", {}, "elsewhere", ("-n", "elsewhere"), id="another namespace, named"),
        pytest.param("n1_1", {"hostNetwork": True}, "vane-system", (), id="in the node's network"),
        pytest.param("gone_1", {}, "vane-system", ("--pod", "mine"), id="a Pod by name"),
    ],
)
def test_the_leader_is_found(
    vane: Kubectl, api: KubeApi, forwards: PortForwards, holder: str, spec: Any, namespace: str, words: tuple[str, ...]
) -> None:
    if namespace != "vane-system":
        api.create_namespace(namespace)
    run_pod(api, "mine", namespace, **spec)
    lead(api, holder)
    assert vane("top", *words) == 1
    assert forwards.asked == [f"{namespace}/mine:10259"]
    refused = f"kubectl vane top: Pod {namespace}/mine through https://127.0.0.1"
    assert vane.err.startswith(refused)
    assert "connection refused" in vane.err


def test_another_lease_may_name_the_leader(vane: Kubectl, api: KubeApi, forwards: PortForwards) -> None:
    lead(api, "vane-1_1", name="vane-gpu")
    assert vane("top", "--lease", "kube-system/vane-gpu") == 0, vane.err
    assert forwards.asked == ["vane-system/vane-1:10259"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--lease", "kube-system/none"], "Lease kube-system/none: there is none; does Vane run here? Write --lease"),
        (["--lease", "none"], "--lease: must be NAMESPACE/NAME, got 'none'. Write kube-system/vane"),
        (
            ["-n", "default"],
            "the leader calls itself 'vane-2', and no Pod of namespace default has that name. Write -n",
        ),
        (["--pod", "none"], "no Pod 'none' in namespace vane-system. Write -n NAMESPACE"),
        (
            ["--service-account", "none"],
            "service account vane-system/none gives none: there is none. Apply deploy/base",
        ),
        (["--context", "none"], "none"),
        (["--limt", "5"], 'unrecognized arguments: --limt (did you mean "--limit"?)'),
        (["--url", "https://x"], "unrecognized arguments: --url. See"),
        (["nobody"], "no signal and no node 'nobody'. Signals: cpu, disk, zone"),
    ],
)
def test_what_is_wrong_is_told(vane: Kubectl, words: list[str], said: str) -> None:
    assert vane("top", *words) == 1
    assert vane.err.startswith("kubectl vane top: ")
    assert said in vane.err
    assert vane.out == ""


def test_a_lease_without_a_holder_and_a_pod_that_waits_are_told(vane: Kubectl, api: KubeApi) -> None:
    lead(api, "")
    assert vane("top") == 1
    assert "no replica leads now: Lease kube-system/vane names none" in vane.err
    api.create_pod("waits", namespace="vane-system")
    lead(api, "waits_1")
    assert vane("top") == 1
    assert "Pod vane-system/waits does not run: it is Pending. Look at its events" in vane.err


def test_without_the_rights_it_says_which_are_missing(vane: Kubectl, api: KubeApi, control_plane: ControlPlane) -> None:
    user = Kubectl(control_plane.make_kubeconfig("nobody"))
    assert user("top") == 1
    assert 'cannot get resource "leases"' in user.err
    some = [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
    ]
    api.grant("nobody", some)
    assert user("top") == 1
    assert "does not forward to Pod vane-system/vane-2" in user.err
    assert "It needs the right to create (and get) pods/portforward there" in user.err


def test_check_without_paths_checks_what_is_deployed(vane: Kubectl, api: KubeApi) -> None:
    good = RULES.replace("expr: node_load1", "expr: max by (instance) (node_load1)")
    maps = "/api/v1/namespaces/vane-system/configmaps"
    api.post(maps, {"metadata": {"name": "vane-rules"}, "data": {"a.yaml": good, "README": "no rules"}})
    assert vane("check", "--strict") == 0, vane.out
    assert "1 file, 0 problems, 0 warnings" in vane.out
    api.patch(f"{maps}/vane-rules", {"data": {"a.yaml": good.replace("worst: 1", "worst: hot")}})
    assert vane("check", "-n", "vane-system", "--context", "test") == 1
    assert "vane-rules/a.yaml:6:55: rule 'cool', score, worst: must be a number, got 'hot'" in vane.out
    assert vane("check", "--config-map", "none") == 2
    assert "kubectl vane check: ConfigMap vane-system/none: there is none. Write -n NAMESPACE, --config-map" in vane.err


def test_what_needs_no_cluster_is_as_in_vane(vane: Kubectl, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(RULES)
    for words, printed in (
        (["check", str(tmp_path)], "1 file, 0 problems"),
        (["schema", "RuleTests"], '"title": "RuleTests of vane.dev/v1"'),
        (["rules", "export", "--prometheus", str(tmp_path)], "groups:"),
        (["version"], "vane "),
        (["--help"], "usage: kubectl vane COMMAND"),
        (["top", "--help"], "usage: kubectl vane top"),
    ):
        assert vane(*words) == 0, vane.err
        assert printed in vane.out
    assert vane("tpo") == 1
    assert "kubectl vane: no such command, got 'tpo' (did you mean \"top\"?)" in vane.err
    assert vane("run") == 1
    assert top.parser("kubectl vane", has_address=False).prog == "kubectl vane top"
