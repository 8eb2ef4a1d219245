"""Vane installed as README.md says, and run with its service account, arguments, configuration and rules."""

from __future__ import annotations

import os
import shutil
import signal
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import urllib3

from tests.deploy import rights
from tests.deploy.container import Container
from tests.deploy.files import ACCOUNT, CHECKOUT, MONITORING, NAMESPACE, TWO_REPLICAS, kubectl, overlay
from tests.deploy.rights import Right
from tests.support import storage
from tests.support.audit import AuditLog
from tests.support.controlplane import ControlPlane
from tests.support.kubeapi import KubeApi
from tests.support.manifests import Json
from tests.support.ports import own_address
from tests.support.prometheus import PrometheusServer
from tests.support.vane import VaneProcess, shipped_roles
from tests.support.waiting import wait_until

ROLES = [*shipped_roles(), *shipped_roles("base/access-reviews.yaml")]
RIGHTS = [(role, right) for role in ROLES for right in rights.rights(role)]
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/vane"
SHORT_LEASE = ("--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=1s")


@dataclass
class Installed:
    """An installed Vane after its scenario: what it did stands in the audit log."""

    cluster: ControlPlane
    api: KubeApi
    container: Container
    replicas: list[VaneProcess]
    rollout: str
    audit: AuditLog
    example: str = ""

    @property
    def asked(self) -> list[Json]:
        """The audited requests of its service account."""
        return self.audit.events(user=ACCOUNT)

    @property
    def leader(self) -> VaneProcess:
        return self.replicas[-1]


@pytest.fixture(scope="module")
def installed(
    cluster: ControlPlane, prometheus: PrometheusServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installed]:
    api, audit = cluster.client(), cluster.audit.from_now()
    if api.exists(LEASE):
        api.delete(LEASE)  # another test's: here it is made for the first time
    folder = tmp_path_factory.mktemp("installed")
    kubectl(cluster, "apply -k deploy/overlays/two-replicas")
    rollout = kubectl(cluster, f"-n {NAMESPACE} rollout status deployment/vane --timeout=60s")
    container = Container(api, folder)
    container.mount()
    vane = Installed(cluster, api, container, [], rollout, audit)
    try:
        _scenario(vane, folder, prometheus.url)
        yield vane
    finally:
        for replica in vane.replicas:
            replica.stop()
    assert [replica.violations for replica in vane.replicas] == [[], []]


def _scenario(vane: Installed, folder: Path, prometheus: str) -> None:
    """Do all that a replica has to: lead, stand by, bind, refuse, lose a race, preempt, write for claims, hand over."""
    api = vane.api
    token = vane.cluster.service_account_token("vane", NAMESPACE)
    kubeconfig = vane.cluster.write_kubeconfig({"token": token}, folder / "vane.kubeconfig")
    for pod in vane.api.pods(NAMESPACE):
        name = pod["metadata"]["name"]
        (folder / name).mkdir()
        flags = [*vane.container.flags, *SHORT_LEASE]
        env = vane.container.environ(name)
        replica = VaneProcess(folder / name, kubeconfig, prometheus=prometheus, flags=flags, env=env)
        vane.replicas.append(replica)
        replica.start()
    first, second = vane.replicas
    wait_until(lambda: _holder(api) == first.identity, 10.0, "the first leads")
    first.token = vane.cluster.service_account_token("operator")
    figures = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    api.grant("system:serviceaccount:default:operator", figures, name="operator")

    kubectl(vane.cluster, "apply -f deploy/example/web.yaml")
    vane.example = kubectl(vane.cluster, "rollout status deployment/web --timeout=60s")
    _lose_a_race(api, first)
    _repeat_an_event(api)
    _preempt(api)
    _write_for_claims(api)

    first.process.signal(signal.SIGTERM)
    assert first.process.wait(15.0) == 0
    wait_until(lambda: _holder(api) == second.identity, 10.0, "the second leads")
    api.create_pod("after", scheduler_name="vane")
    api.wait_bound("after")


def _holder(api: KubeApi) -> str:
    return str(api.get(LEASE)["spec"].get("holderIdentity") or "")


def _lose_a_race(api: KubeApi, leader: VaneProcess) -> None:
    """Bind a Pod that Vane has placed already, while its binder process cannot say so."""
    binder = leader.binder_pid()
    os.kill(binder, signal.SIGSTOP)
    try:
        api.create_pod("raced", scheduler_name="vane", spec={"nodeSelector": {"kubernetes.io/hostname": "node-0"}})
        leader.wait_for_metric('scheduler_cache_size{type="assumed_pods"}', 1)
        api.bind("raced", "node-1")
    finally:
        os.kill(binder, signal.SIGCONT)
    leader.wait_for_metric('scheduler_cache_size{type="assumed_pods"}', 0)


def _repeat_an_event(api: KubeApi) -> None:
    """Let three Pods wait for room and give it to one after the other: the last is refused three times.

    Its second refusal is a new Event, as the first has changed the Pod's conditions; the third makes that one a series.
    """
    waiting = {"first", "second", "third"}
    api.create_node("big", cpu="64", labels={"size": "big"})
    large: Json = {"cpu": "60", "scheduler_name": "vane", "spec": {"nodeSelector": {"size": "big"}}}
    api.create_pod("placed", **large)
    api.wait_bound("placed")
    for name in waiting:
        api.create_pod(name, **large)

    def refusals() -> dict[str, list[int]]:
        """Return how often each Event of each waiting Pod has come about."""
        return {name: [_count(event) for event in api.events(name, reason="FailedScheduling")] for name in waiting}

    wait_until(lambda: all(refusals().values()), 10.0, "an Event for each")
    api.delete_pod("placed", grace=0)
    bound = wait_until(lambda: waiting & api.placements().keys(), 10.0, "room for one")
    waiting -= bound
    wait_until(lambda: all(len(counts) == 2 for counts in refusals().values()), 10.0, "a second Event for the others")
    api.delete_pod(bound.pop(), grace=0)
    wait_until(lambda: [1, 2] in map(sorted, refusals().values()), 10.0, "a series")


def _preempt(api: KubeApi) -> None:
    """Have a Pod take the room of another one."""
    api.create_priority_class("urgent", 1_000)
    api.create_node("single", cpu="1", labels={"size": "single"})
    only_there: Json = {"cpu": "1", "grace": 0, "scheduler_name": "vane", "spec": {"nodeSelector": {"size": "single"}}}
    api.create_pod("victim", **only_there)
    api.wait_bound("victim")
    api.create_pod("urgent", priority_class="urgent", **only_there)
    api.wait_bound("urgent")


def _write_for_claims(api: KubeApi) -> None:
    """Have a Pod wait for a volume that is there, and for one to be made; nobody binds either."""
    api.post(storage.CLASSES, storage.storage_class("local", storage.NO_PROVISIONER))
    api.post(storage.CLASSES, storage.storage_class("made", "nobody.example.com"))
    api.post(storage.VOLUMES, storage.local_volume("disk", "local", "node-0"))
    api.patch(f"{storage.VOLUMES}/disk/status", {"status": {"phase": "Available"}})
    for name, of in {"there": "local", "to-make": "made"}.items():
        api.post(storage.CLAIMS, storage.claim(name, of))
    api.create_pod("storing", scheduler_name="vane", spec=storage.with_claims("there", "to-make"))
    wait_until(lambda: "claimRef" in api.get(f"{storage.VOLUMES}/disk")["spec"], 10.0, "the volume is the claim's")
    path = f"{storage.CLAIMS}/to-make"
    wait_until(lambda: storage.SELECTED_NODE in api.get(path)["metadata"].get("annotations", {}), 10.0, "its node")
    api.delete_pod("storing", grace=0)


def _count(event: Json) -> int:
    return int((event.get("series") or {}).get("count", 1))


@pytest.fixture(scope="module")
def seen_from_elsewhere(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """Apply the monitoring, and return what pages answer to callers who come from outside the Pod."""
    elsewhere = f"https://{own_address()}:{installed.leader.port}"
    scraper = installed.cluster.service_account_token("prometheus-k8s", "monitoring")
    stranger = installed.cluster.service_account_token("stranger", "monitoring")
    own = overlay(tmp_path_factory.mktemp("own"), {"resources": [TWO_REPLICAS], "components": [MONITORING]})
    kubectl(installed.cluster, f"apply -k {own}")
    wait_until(lambda: _status(f"{elsewhere}/metrics", scraper) == 200, 10.0, "the granted page")
    return {
        "the scraper": _status(f"{elsewhere}/metrics", scraper),
        "a stranger": _status(f"{elsewhere}/metrics", stranger),
        "nobody": _status(f"{elsewhere}/metrics"),
        "a probe": _status(f"{elsewhere}/livez"),
    }


def _status(url: str, token: str | None = None) -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    # Its certificate is self-signed, and the operator's ServiceMonitor does not look at it either.
    with warnings.catch_warnings(), urllib3.PoolManager(cert_reqs="CERT_NONE", retries=False, timeout=10.0) as pool:
        warnings.simplefilter("ignore", urllib3.exceptions.InsecureRequestWarning)
        return pool.request("GET", url, headers=headers).status


def test_one_apply_brings_up_two_replicas_on_two_nodes(installed: Installed) -> None:
    assert 'deployment "vane" successfully rolled out' in installed.rollout
    pods = installed.api.pods(NAMESPACE)
    assert {pod["spec"]["nodeName"] for pod in pods} == {"node-0", "node-1"}
    for pod in pods:
        assert pod["spec"]["priority"] == 2_000_000_000
        sources = [volume["projected"]["sources"] for volume in pod["spec"]["volumes"] if "projected" in volume]
        assert any("serviceAccountToken" in source for source in sources[0]), "the token, and only by the Pod's wish"


def test_nobody_else_in_the_namespace_gets_vanes_token_unasked(installed: Installed) -> None:
    restricted = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {"name": "other", "image": "other:1.0", "securityContext": restricted}
    spec = {"serviceAccountName": "vane", "containers": [container]}
    body = {"metadata": {"name": "other"}, "spec": spec}
    made = installed.api.post(f"/api/v1/namespaces/{NAMESPACE}/pods", body, dryRun="All")
    assert "volumes" not in made["spec"]


def test_the_example_is_placed_by_vane(installed: Installed) -> None:
    assert 'deployment "web" successfully rolled out' in installed.example
    pods = [pod for pod in installed.api.pods("default") if pod["metadata"].get("labels", {}).get("app") == "web"]
    assert len(pods) == 3
    binds = [event for event in installed.asked if event["objectRef"].get("subresource") == "binding"]
    assert {pod["metadata"]["name"] for pod in pods} <= {event["objectRef"]["name"] for event in binds}
    shown = kubectl(installed.cluster, "get pods --selector app=web --output wide")
    assert shown.count("Running") == 3
    told = kubectl(installed.cluster, "get events --field-selector reason=Scheduled")
    assert f"Successfully assigned default/{pods[0]['metadata']['name']} to node-" in told
    (event,) = installed.api.events(pods[0]["metadata"]["name"], reason="Scheduled")
    assert event["reportingComponent"] == "vane"


def test_nothing_was_forbidden(installed: Installed) -> None:
    refused = [event for event in installed.asked if event["responseStatus"]["code"] in (401, 403)]
    assert refused == []
    assert len(installed.asked) > 20
    (race,) = (event for event in installed.asked if _is_bind_of(event, "raced"))
    assert race["responseStatus"]["code"] == 409


def test_prometheus_sees_the_metrics_and_nobody_else_does(seen_from_elsewhere: dict[str, int]) -> None:
    assert seen_from_elsewhere == {"the scraper": 200, "a stranger": 403, "nobody": 401, "a probe": 200}


def _is_bind_of(event: Json, pod: str) -> bool:
    return bool(event["objectRef"].get("subresource") == "binding" and event["objectRef"].get("name") == pod)


@pytest.mark.parametrize(("role", "right"), RIGHTS, ids=[str(right) for _, right in RIGHTS])
def test_every_right_is_needed(installed: Installed, role: Json, right: Right, request: pytest.FixtureRequest) -> None:
    if role["metadata"]["name"] == "vane-access-reviews":
        request.getfixturevalue("seen_from_elsewhere")
    needing = [event for event in installed.asked if right.covers(event)]
    assert needing, "a right that nothing asked for"
    api, granted = installed.api, rights.rights(role)
    assert rights.is_allowed(api, needing[0])
    try:
        rights.write(api, role, [other for other in granted if other != right])
        wait_until(lambda: not rights.is_allowed(api, needing[0]), 5.0, "the request is forbidden without the right")
    finally:
        rights.write(api, role, granted)
    wait_until(lambda: rights.is_allowed(api, needing[0]), 5.0, "the request is allowed again")


@pytest.mark.parametrize(
    "attempt",
    [
        "get secrets",
        "list secrets -A",
        "deletecollection pods",
        "create pods",
        "update pods",
        "patch pods",
        "create pods --subresource=exec",
        "get nodes --subresource=proxy",
        "patch nodes",
        "delete nodes",
        "create serviceaccounts --subresource=token",
        "update leases/kube-scheduler -n kube-system",
        "escalate clusterroles",
        "impersonate users",
    ],
)
def test_what_vane_may_not_do(installed: Installed, attempt: str) -> None:
    with pytest.raises(AssertionError, match=r"\bno\n"):
        kubectl(installed.cluster, f"auth can-i {attempt} --as={ACCOUNT}")


def test_changed_rules_reach_the_running_vane_and_a_changed_configuration_starts_new_pods(
    installed: Installed, tmp_path: Path
) -> None:
    for name in ("deploy", "rules"):
        shutil.copytree(CHECKOUT / name, tmp_path / name)
    deployment = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/vane"
    before = installed.api.get(deployment)["metadata"]["generation"]

    rules = tmp_path / "rules" / "shadow" / "node-utilisation.yaml"
    assert "weight: 2" in rules.read_text()
    rules.write_text(rules.read_text().replace("weight: 2", "weight: 3"))
    said = kubectl(installed.cluster, "apply -k deploy/overlays/two-replicas", tmp_path)
    assert "configmap/vane-rules configured" in said
    assert installed.api.get(deployment)["metadata"]["generation"] == before
    log = installed.leader.process.log_text
    assert "rules loaded" not in log()
    installed.container.mount()
    wait_until(lambda: "rules loaded" in log(), 10.0, "the changed rules in force")

    configuration = tmp_path / "deploy" / "base" / "vane.yaml"
    configuration.write_text(configuration.read_text() + "  verbosity: 2\n")
    kubectl(installed.cluster, "apply -k deploy/overlays/two-replicas", tmp_path)
    assert installed.api.get(deployment)["metadata"]["generation"] == before + 1
