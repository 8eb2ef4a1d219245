"""Tells which features a Pod asks for, so that a run can say what it was about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from tests.conformance.generate.draw import PREFERRED, REQUIRED, Fields, name_of
from tests.e2e.differential.drawing import POLITE, DrawnPod

Objects = Mapping[str, Sequence[Fields]]

_HARD = "DoNotSchedule"
_PATIENCE = 10
_DISKS = ("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd")

FEATURES: tuple[str, ...] = (
    "node selector", "required node affinity", "preferred node affinity", "tolerations", "host ports", "hard spreading",
    "soft spreading", "spreading with matchLabelKeys", "spreading with minDomains", "default spreading by services",
    "default spreading by an owner",
    *(f"{how} pod {kind}" for how in ("required", "preferred") for kind in ("affinity", "anti-affinity")),
    "pod affinity by namespaceSelector", "bound volume with a place", "bound volume with a zone label",
    "volume of a limited driver", "ReadWriteOncePod", "disk of its own", "claim that is not bound", "several images",
    "plain init container", "sidecar", "Pod-level resources", "extended resource", "no requests", "priority class",
)  # fmt: skip
"""All that `features_of` may find."""


def features_of(pod: Fields, objects: Objects) -> set[str]:
    """Return which of FEATURES a Pod has, among these objects."""
    return {*_of_nodes(pod["spec"]), *_of_neighbours(pod, objects), *_of_volumes(pod, objects), *_of_room(pod["spec"])}


def with_all_features(drawn: Iterable[DrawnPod], n_pods: int, standing: Objects) -> Iterator[DrawnPod]:
    """Yield n Pods that have all FEATURES between them: at the end those are passed over that bring no missing one.

    `standing` is what stands in the cluster beside what the Pods bring.
    """
    missing = set(FEATURES)
    n_left = n_pods
    for pod in islice(drawn, _PATIENCE * n_pods):
        objects = {
            plural: [*standing.get(plural, ()), *pod.objects.get(plural, ())] for plural in {*standing, *pod.objects}
        }
        found = features_of(pod.manifest, objects) & missing
        if found or n_left > len(missing):
            missing -= found
            n_left -= 1
            yield pod
        if n_left == 0:
            return


def _of_nodes(spec: Fields) -> Iterator[str]:
    affinity = spec.get("affinity", {}).get("nodeAffinity", {})
    own = [one for one in spec.get("tolerations", []) if not one.get("key", "").startswith("node.kubernetes.io/")]
    containers = [*spec["containers"], *spec.get("initContainers", [])]
    ports = [port for container in containers for port in container.get("ports", []) if port.get("hostPort")]
    found = {
        "node selector": "nodeSelector" in spec,
        "required node affinity": REQUIRED in affinity,
        "preferred node affinity": PREFERRED in affinity,
        "tolerations": bool(own),
        "host ports": bool(ports),
        "several images": len({container["image"] for container in containers}) > 1,
    }
    yield from (name for name, has in found.items() if has)


def _of_neighbours(pod: Fields, objects: Objects) -> Iterator[str]:
    constraints = pod["spec"].get("topologySpreadConstraints", [])
    for one in constraints:
        yield "hard spreading" if one["whenUnsatisfiable"] == _HARD else "soft spreading"
        yield from (f"spreading with {field}" for field in ("matchLabelKeys", "minDomains") if one.get(field))
    if not constraints:
        yield from _default_spreading(pod, objects)
    for kind, called in (("podAffinity", "affinity"), ("podAntiAffinity", "anti-affinity")):
        affinity = pod["spec"].get("affinity", {}).get(kind, {})
        yield from (f"required pod {called}" for _ in affinity.get(REQUIRED, []))
        yield from (f"preferred pod {called}" for _ in affinity.get(PREFERRED, []))
        terms = [*affinity.get(REQUIRED, []), *(one["podAffinityTerm"] for one in affinity.get(PREFERRED, []))]
        if any("namespaceSelector" in term for term in terms):
            yield "pod affinity by namespaceSelector"


def _default_spreading(pod: Fields, objects: Objects) -> Iterator[str]:
    namespace, labels = pod["metadata"]["namespace"], pod["metadata"].get("labels", {})
    for service in objects.get("services", ()):
        selector = service["spec"].get("selector") or {}
        if service["metadata"]["namespace"] == namespace and selector and selector.items() <= labels.items():
            yield "default spreading by services"
    owners = {reference["name"] for reference in pod["metadata"].get("ownerReferences", [])}
    for plural in ("replicasets", "statefulsets", "replicationcontrollers"):
        if any(name_of(one) in owners and one["metadata"]["namespace"] == namespace for one in objects.get(plural, ())):
            yield "default spreading by an owner"


def _of_volumes(pod: Fields, objects: Objects) -> Iterator[str]:
    namespace = pod["metadata"]["namespace"]
    claims = {
        name_of(one): one
        for one in objects.get("persistentvolumeclaims", ())
        if one["metadata"]["namespace"] == namespace
    }
    volumes = {name_of(one): one for one in objects.get("persistentvolumes", ())}
    limited = {
        driver["name"]
        for node in objects.get("csinodes", ())
        for driver in node["spec"]["drivers"] or ()
        if "count" in driver.get("allocatable", {})
    }
    for source in pod["spec"].get("volumes", []):
        if any(kind in source for kind in _DISKS):
            yield "disk of its own"
        if "persistentVolumeClaim" not in source:
            continue
        claim = claims.get(source["persistentVolumeClaim"]["claimName"])
        if claim is None or claim["status"]["phase"] != "Bound":
            yield "claim that is not bound"
        if claim is None:
            continue
        if "ReadWriteOncePod" in claim["spec"]["accessModes"]:
            yield "ReadWriteOncePod"
        yield from _of_volume(volumes.get(claim["spec"].get("volumeName", ""), {}), limited)


def _of_volume(volume: Fields, limited: set[str]) -> Iterator[str]:
    if "nodeAffinity" in volume.get("spec", {}):
        yield "bound volume with a place"
    if any("zone" in label for label in volume.get("metadata", {}).get("labels", {})):
        yield "bound volume with a zone label"
    if volume.get("spec", {}).get("csi", {}).get("driver") in limited:
        yield "volume of a limited driver"


def _of_room(spec: Fields) -> Iterator[str]:
    requests = [
        one.get("resources", {}).get("requests", {}) for one in (*spec["containers"], *spec.get("initContainers", []))
    ]
    restarts = {one.get("restartPolicy") == "Always" for one in spec.get("initContainers", [])}
    found = {
        "sidecar": True in restarts,
        "plain init container": False in restarts,
        "Pod-level resources": "resources" in spec,
        "extended resource": any("/" in name for request in requests for name in request),
        "no requests": not any(requests),
        "priority class": spec.get("priorityClassName") in POLITE,
    }
    yield from (name for name, has in found.items() if has)
