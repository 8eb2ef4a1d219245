"""What is shipped in deploy/: it renders, it says what our policy asks for, and the real API server takes it."""

from __future__ import annotations

import copy
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from scheduler import __version__
from scheduler.model.rules import Mode, Rule
from scheduler.settings.load import load
from scheduler.signals.format.rule_files import parse_rule_files
from tests.deploy.files import (
    BASE,
    CHECKOUT,
    DEPLOY,
    MONITORING,
    NAMESPACE,
    REMOTE_BINDER,
    TWO_REPLICAS,
    kubectl,
    kustomize,
    one,
    overlay,
)
from tests.deploy.policy import problems
from tests.support.controlplane import ControlPlane
from tests.support.kubeapi import ApiError
from tests.support.manifests import Json

RULES = CHECKOUT / "rules"
EXAMPLE = DEPLOY / "example" / "web.yaml"


def test_the_base_is_one_replica_and_the_overlay_two_that_may_not_end_together(programs: Path) -> None:
    base, two = kustomize(programs, BASE), kustomize(programs, TWO_REPLICAS)

    kinds = sorted(document["kind"] for document in base)
    rights = [*2 * ["ServiceAccount"], *3 * ["ClusterRole", "ClusterRoleBinding"], "Role", "RoleBinding"]
    running = ["Namespace", "Deployment", "ConfigMap", "ConfigMap", "Service", "NetworkPolicy"]
    assert kinds == sorted([*rights, *running])
    assert one(base, "Deployment")["spec"]["replicas"] == 1
    assert one(two, "Deployment")["spec"]["replicas"] == 2
    (added,) = [document for document in two if document["kind"] not in kinds]
    assert added["kind"] == "PodDisruptionBudget"
    assert added["spec"]["selector"] == one(two, "Deployment")["spec"]["selector"]
    assert added["spec"]["maxUnavailable"] == 1


def test_selectors_ports_and_accounts_fit_together(programs: Path) -> None:
    objects = kustomize(programs, TWO_REPLICAS)
    template = one(objects, "Deployment")["spec"]["template"]
    labels = template["metadata"]["labels"].items()
    (container,) = template["spec"]["containers"]
    (port,) = container["ports"]

    for selector in (
        one(objects, "Service")["spec"]["selector"],
        one(objects, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
        one(objects, "Deployment")["spec"]["selector"]["matchLabels"],
        *(spread["labelSelector"]["matchLabels"] for spread in template["spec"]["topologySpreadConstraints"]),
    ):
        assert selector.items() <= labels
    assert one(objects, "Service")["spec"]["ports"] == [
        {"name": "https-metrics", "port": 10259, "targetPort": port["name"]}
    ]
    bindings = [document for document in objects if document["kind"] in ("ClusterRoleBinding", "RoleBinding")]
    assert len(bindings) == 4
    for binding in bindings:
        is_reader = binding["metadata"]["name"] == "vane-reader"  # of who types `kubectl vane top`
        account = "vane-reader" if is_reader else template["spec"]["serviceAccountName"]
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}]
    mounted = {volume["configMap"]["name"] for volume in template["spec"]["volumes"]}
    assert mounted == {document["metadata"]["name"] for document in objects if document["kind"] == "ConfigMap"}


def test_the_base_begins_with_one_pack_that_only_watches(programs: Path) -> None:
    data = one(kustomize(programs, BASE), "ConfigMap", "vane-rules")["data"]
    assert data.keys() == {"node-utilisation.yaml"}
    loaded = parse_rule_files({name: text.encode() for name, text in data.items()}, 1)
    pack = parse_rule_files({"acting": (RULES / "node-utilisation.yaml").read_bytes()}, 1)

    def watching(rule: Rule) -> Rule:
        return replace(rule, mode=Mode.SHADOW, where="")

    assert [replace(rule, where="") for rule in loaded.rules] == [watching(rule) for rule in pack.rules]
    assert {name: replace(one, where="") for name, one in loaded.signals.items()} == {
        name: replace(one, where="") for name, one in pack.signals.items()
    }


def test_every_pack_is_one_line_away(programs: Path, tmp_path: Path) -> None:
    shutil.copytree(RULES, tmp_path / "rules")
    kustomization = tmp_path / "rules" / "Kustomization"
    text = kustomization.read_text().replace("- shadow/node-utilisation.yaml", "- node-utilisation.yaml")
    kustomization.write_text(re.sub(r"# (- [a-z-]+\.yaml)", r"\1", text))
    (rules,) = kustomize(programs, tmp_path / "rules")
    assert rules["data"] == {path.name: path.read_text() for path in RULES.glob("*.yaml")}


def test_the_configuration_is_what_the_probes_need_and_the_image_is_this_version(
    programs: Path, tmp_path: Path
) -> None:
    objects = kustomize(programs, BASE)
    (tmp_path / "vane.yaml").write_text(one(objects, "ConfigMap", "vane-config")["data"]["vane.yaml"])
    settings = load({"config": str(tmp_path / "vane.yaml")}, {})
    (container,) = one(objects, "Deployment")["spec"]["template"]["spec"]["containers"]

    assert not settings.serving.is_loopback
    assert not settings.serving.unauthenticated_metrics
    assert settings.serving.secure_port == container["ports"][0]["containerPort"]
    assert container["image"] == f"vane:{__version__}"


@pytest.mark.parametrize("folder", [BASE, TWO_REPLICAS], ids=lambda folder: folder.name)
def test_vane_follows_our_policy(programs: Path, folder: Path) -> None:
    assert problems(one(kustomize(programs, folder), "Deployment")) == []


def test_the_example_follows_our_policy() -> None:
    assert problems(yaml.safe_load(EXAMPLE.read_text()), is_served=False) == []


def remove(*path: str | int) -> Callable[[Json], None]:
    def harm(pod: Json) -> None:
        inner = pod
        for key in path[:-1]:
            inner = inner[key]  # type: ignore[index]  # a list's index is as good
        del inner[path[-1]]  # type: ignore[arg-type]

    return harm


def put(value: object, *path: str | int) -> Callable[[Json], None]:
    def harm(pod: Json) -> None:
        inner = pod
        for key in path[:-1]:
            inner = inner[key]  # type: ignore[index]
        inner[path[-1]] = value  # type: ignore[index]

    return harm


CONTAINER = ("containers", 0)
HARMS: dict[str, tuple[Callable[[Json], None], str]] = {
    "root": (remove("securityContext", "runAsNonRoot"), "runs as root, or does not say as whom"),
    "user": (put(0, "securityContext", "runAsUser"), "runs as root, or does not say as whom"),
    "seccomp": (put({"type": "Unconfined"}, "securityContext", "seccompProfile"), "no seccomp profile"),
    "host network": (put(True, "hostNetwork"), "shares what is the host's"),
    "host path": (put({"name": "config", "hostPath": {"path": "/"}}, "volumes", 0), "mounts what is the host's"),
    "account": (remove("serviceAccountName"), "no service account of its own, or without its token"),
    "token": (
        put(False, "automountServiceAccountToken"),
        "no service account of its own, or without its token",
    ),
    "itself": (put("vane", "schedulerName"), "waits for itself to be placed"),
    "service links": (remove("enableServiceLinks"), "gets variables named after Services"),
    "priority": (remove("priorityClassName"), "no priority over what it places"),
    "requests": (remove(*CONTAINER, "resources", "requests", "cpu"), "vane: no requests for CPU and memory"),
    "limits": (remove(*CONTAINER, "resources", "limits"), "vane: no limit for memory"),
    "latest": (put("vane:latest", *CONTAINER, "image"), "vane: an image without an exact version"),
    "no tag": (put("registry:5000/vane", *CONTAINER, "image"), "vane: an image without an exact version"),
    "escalation": (
        remove(*CONTAINER, "securityContext", "allowPrivilegeEscalation"),
        "vane: may get more privileges",
    ),
    "root file system": (
        remove(*CONTAINER, "securityContext", "readOnlyRootFilesystem"),
        "vane: may write to its root",
    ),
    "capabilities": (remove(*CONTAINER, "securityContext", "capabilities"), "vane: keeps capabilities"),
    "startup": (remove(*CONTAINER, "startupProbe"), "vane: no startupProbe over HTTPS"),
    "liveness": (put("HTTP", *CONTAINER, "livenessProbe", "httpGet", "scheme"), "vane: no livenessProbe over HTTPS"),
    "readiness": (put("web", *CONTAINER, "readinessProbe", "httpGet", "port"), "vane: no readinessProbe over HTTPS"),
}


@pytest.fixture(scope="module")
def base(programs: Path) -> list[Json]:
    return kustomize(programs, BASE)


@pytest.mark.parametrize("harm", HARMS)
def test_our_policy_finds_what_is_missing(base: list[Json], harm: str) -> None:
    deployment = copy.deepcopy(one(base, "Deployment"))
    act, problem = HARMS[harm]
    act(deployment["spec"]["template"]["spec"])
    assert problem in problems(deployment)


def test_our_policy_finds_a_mesh_that_was_let_in(base: list[Json]) -> None:
    deployment = copy.deepcopy(one(base, "Deployment"))
    del deployment["spec"]["template"]["metadata"]["annotations"]["linkerd.io/inject"]
    deployment["spec"]["template"]["metadata"]["labels"]["istio.io/dataplane-mode"] = "ambient"
    assert problems(deployment) == [
        "a mesh may put its proxy before the pages: no label istio.io/dataplane-mode: none",
        "a mesh may put its proxy before the pages: no annotation linkerd.io/inject: disabled",
    ]


def test_each_object_passes_a_strict_dry_run_on_the_real_api_server(cluster: ControlPlane, tmp_path: Path) -> None:
    own = overlay(tmp_path / "own", {"resources": [TWO_REPLICAS], "components": [MONITORING]})
    objects = kustomize(cluster.programs, own)
    assert {"ServiceMonitor", "PrometheusRule"} <= {document["kind"] for document in objects}
    # A dry run makes no namespace for what comes after it.
    (tmp_path / "namespace.yaml").write_text(yaml.safe_dump(one(objects, "Namespace", NAMESPACE)))
    kubectl(cluster, f"apply -f {tmp_path / 'namespace.yaml'}")

    objects += [yaml.safe_load(EXAMPLE.read_text())]
    objects += yaml.safe_load_all((DEPLOY / "rbac-other-cluster.yaml").read_text())
    for number, document in enumerate(objects):
        (tmp_path / f"{number}.yaml").write_text(yaml.safe_dump(document))
    said = kubectl(cluster, f"apply --dry-run=server --validate=strict -f {tmp_path}")
    assert len(said.splitlines()) == len(objects) + 1  # the namespace's file is still there
    assert all(line.endswith("(server dry run)") for line in said.splitlines())


def test_a_misspelt_field_does_not_pass_that_dry_run(cluster: ControlPlane, base: list[Json], tmp_path: Path) -> None:
    deployment = copy.deepcopy(one(base, "Deployment"))
    deployment["metadata"]["namespace"] = "default"
    deployment["spec"]["template"]["spec"]["terminationGracePeriod"] = 30
    (tmp_path / "bad.yaml").write_text(yaml.safe_dump(deployment))
    with pytest.raises(AssertionError, match=r'unknown field "spec.template.spec.terminationGracePeriod"'):
        kubectl(cluster, f"apply --dry-run=server --validate=strict -f {tmp_path / 'bad.yaml'}")


def test_a_kustomization_of_ones_own_names_the_image_and_adds_what_it_wants(programs: Path, tmp_path: Path) -> None:
    own = overlay(
        tmp_path / "own",
        {
            "resources": [TWO_REPLICAS],
            "components": [REMOTE_BINDER],
            "images": [{"name": "vane", "newName": "my-images/vane"}],
        },
    )

    deployment = one(kustomize(programs, own), "Deployment")

    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["image"] == f"my-images/vane:{__version__}"
    assert problems(deployment) == []
    (cluster_flag,) = (flag for flag in container["args"] if flag.startswith("--cluster="))
    (mount,) = (mount for mount in container["volumeMounts"] if mount["name"] == "clusters")
    assert cluster_flag == f"--cluster=west={mount['mountPath']}/west.kubeconfig"
    assert {"name": "clusters", "secret": {"secretName": "vane-clusters"}} in pod["volumes"]
    assert {"name": "tmp", "mountPath": "/tmp"} in container["volumeMounts"]


def test_pod_security_refuses_a_pod_of_vane_that_may_do_more(cluster: ControlPlane, base: list[Json]) -> None:
    api = cluster.client()
    name = "restricted"
    api.create_namespace(name, one(base, "Namespace", NAMESPACE)["metadata"]["labels"])
    api.post(f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "vane"}})
    pods = f"/api/v1/namespaces/{name}/pods"
    spec = one(base, "Deployment")["spec"]["template"]["spec"]

    api.post(pods, {"metadata": {"name": "as-shipped"}, "spec": spec}, dryRun="All")

    for harm in ("root", "seccomp", "escalation", "capabilities", "host network", "host path"):
        harmed = copy.deepcopy(spec)
        HARMS[harm][0](harmed)
        with pytest.raises(ApiError) as refusal:
            api.post(pods, {"metadata": {"name": "harmed"}, "spec": harmed}, dryRun="All")
        assert "violates PodSecurity" in refusal.value.message, harm
