"""What every Pod that is shipped must say: a small linter, as kube-score and its kind have it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.support.manifests import Json

_PINNED = re.compile(r".+(:v?\d+(\.\d+)+[-.\w]*|@sha256:[0-9a-f]{64})")

# What Istio (with and without sidecars), Kuma, Linkerd and Consul read on a Pod that they shall leave alone.
_NO_MESH = {
    "labels": {
        "sidecar.istio.io/inject": "false",
        "istio.io/dataplane-mode": "none",
        "kuma.io/sidecar-injection": "disabled",
    },
    "annotations": {
        "sidecar.istio.io/inject": "false",
        "linkerd.io/inject": "disabled",
        "consul.hashicorp.com/connect-inject": "false",
    },
}


def problems(deployment: Json, is_served: bool = True) -> list[str]:
    """Return what is wrong with a Deployment's Pods; `is_served` demands probes and a service account of its own."""
    pod = deployment["spec"]["template"]["spec"]
    found = [*_pod_problems(pod, deployment["metadata"]["name"] if is_served else None)]
    if is_served:
        metadata = deployment["spec"]["template"]["metadata"]
        found += [
            f"a mesh may put its proxy before the pages: no {kind[:-1]} {key}: {value}"
            for kind, words in _NO_MESH.items()
            for key, value in words.items()
            if metadata.get(kind, {}).get(key) != value
        ]
    for container in [*pod.get("initContainers", []), *pod["containers"]]:
        found += [f"{container['name']}: {problem}" for problem in _container_problems(container, is_served)]
    return found


def _pod_problems(pod: Json, account: str | None) -> Iterator[str]:
    context = pod.get("securityContext", {})
    if context.get("runAsNonRoot") is not True or not context.get("runAsUser"):
        yield "runs as root, or does not say as whom"
    if context.get("seccompProfile") != {"type": "RuntimeDefault"}:
        yield "no seccomp profile"
    if any(pod.get(name) for name in ("hostNetwork", "hostPID", "hostIPC")):
        yield "shares what is the host's"
    if any("hostPath" in volume for volume in pod.get("volumes", [])):
        yield "mounts what is the host's"
    if account is None:
        return
    if pod.get("serviceAccountName") != account or pod.get("automountServiceAccountToken") is not True:
        yield "no service account of its own, or without its token"
    if pod.get("schedulerName", "default-scheduler") != "default-scheduler":
        yield "waits for itself to be placed"
    if pod.get("enableServiceLinks") is not False:
        yield "gets variables named after Services"
    if pod.get("priorityClassName") != "system-cluster-critical":
        yield "no priority over what it places"


def _container_problems(container: Json, is_served: bool) -> Iterator[str]:
    resources: dict[str, Any] = container.get("resources", {})
    if not {"cpu", "memory"} <= resources.get("requests", {}).keys():
        yield "no requests for CPU and memory"
    if "memory" not in resources.get("limits", {}):
        yield "no limit for memory"
    if not _PINNED.fullmatch(container["image"]):
        yield "an image without an exact version"
    context = container.get("securityContext", {})
    if context.get("allowPrivilegeEscalation") is not False or context.get("privileged"):
        yield "may get more privileges"
    if context.get("readOnlyRootFilesystem") is not True:
        yield "may write to its root"
    if context.get("capabilities") != {"drop": ["ALL"]}:
        yield "keeps capabilities"
    ports = {port.get("name") for port in container.get("ports", [])}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe") if is_served else ():
        asked = container.get(probe, {}).get("httpGet", {})
        if asked.get("scheme") != "HTTPS" or asked.get("port") not in ports:
            yield f"no {probe} over HTTPS"
