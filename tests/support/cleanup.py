from __future__ import annotations

from dataclasses import dataclass

from tests.support.kubeapi import ApiError, KubeApi
from tests.support.manifests import Json
from tests.support.waiting import wait_until

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_NOT_BOOTSTRAPPED = {"labelSelector": "kubernetes.io/bootstrapping!=rbac-defaults"}
_KEPT_NAMESPACES = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})


@dataclass(frozen=True)
class _Kind:
    group: str
    resource: str
    namespaced: bool = False
    selector: tuple[tuple[str, str], ...] = ()


# Owners come before what they own, and Pods before what a Pod protects.
_KINDS: tuple[_Kind, ...] = (
    *(_Kind("/apis/apps/v1", name, True) for name in ("deployments", "statefulsets", "daemonsets", "replicasets")),
    _Kind("/apis/batch/v1", "jobs", True),
    _Kind("/api/v1", "replicationcontrollers", True),
    _Kind("/apis/policy/v1", "poddisruptionbudgets", True),
    _Kind("/api/v1", "pods", True),
    _Kind("/api/v1", "services", True, (("labelSelector", "component!=apiserver"),)),
    *(_Kind("/api/v1", name, True) for name in ("resourcequotas", "limitranges", "persistentvolumeclaims")),
    *(_Kind("/apis/resource.k8s.io/v1", name, True) for name in ("resourceclaims", "resourceclaimtemplates")),
    *(_Kind("/apis/resource.k8s.io/v1", name) for name in ("resourceslices", "deviceclasses")),
    _Kind("/api/v1", "nodes"),
    _Kind("/api/v1", "persistentvolumes"),
    *(
        _Kind("/apis/storage.k8s.io/v1", name)
        for name in ("storageclasses", "csinodes", "csidrivers", "volumeattachments")
    ),
    _Kind("/apis/storage.k8s.io/v1", "csistoragecapacities", True),
    _Kind(
        "/apis/scheduling.k8s.io/v1",
        "priorityclasses",
        selector=(("fieldSelector", "metadata.name!=system-node-critical,metadata.name!=system-cluster-critical"),),
    ),
    *(_Kind(_RBAC, name, True, tuple(_NOT_BOOTSTRAPPED.items())) for name in ("rolebindings", "roles")),
    *(_Kind(_RBAC, name, False, tuple(_NOT_BOOTSTRAPPED.items())) for name in ("clusterrolebindings", "clusterroles")),
    _Kind(
        "/apis/coordination.k8s.io/v1",
        "leases",
        True,
        (("labelSelector", "apiserver.kubernetes.io/identity!=kube-apiserver"),),
    ),
    _Kind("/api/v1", "configmaps", True, (("fieldSelector", "metadata.namespace!=kube-system"),)),
    *(_Kind("/api/v1", name, True) for name in ("secrets", "serviceaccounts", "events")),
)


def clean(api: KubeApi, timeout: float = 60.0) -> None:
    """Delete everything that tests made, Pods without grace and objects with finalizers too."""
    namespaces = api.list("/api/v1/namespaces")
    names = [namespace["metadata"]["name"] for namespace in namespaces]
    for kind in _KINDS:
        _delete_all(api, kind, names, timeout)
    for namespace in namespaces:
        if namespace["metadata"]["name"] not in _KEPT_NAMESPACES:
            _delete_namespace(api, namespace, timeout)


def _delete_all(api: KubeApi, kind: _Kind, namespaces: list[str], timeout: float) -> None:
    selector = dict(kind.selector)
    collection = f"{kind.group}/{kind.resource}"
    if not api.list(collection, limit=1, **selector):
        return
    collections = [f"{kind.group}/namespaces/{name}/{kind.resource}" for name in namespaces]
    for path in collections if kind.namespaced else [collection]:
        if kind.resource == "services":
            # The one kind here without a delete of the collection on all servers.
            for service in api.list(path, **selector):
                api.delete(f"{path}/{service['metadata']['name']}")
        else:
            api.delete(path, gracePeriodSeconds=0, propagationPolicy="Background", **selector)

    def gone() -> bool:
        left = api.list(collection, **selector)
        for item in left:
            _drop_finalizers(api, kind, item)
        return not left

    wait_until(gone, timeout, f"deletion of all {kind.resource}")


def _drop_finalizers(api: KubeApi, kind: _Kind, item: Json) -> None:
    metadata = item["metadata"]
    if not metadata.get("finalizers"):
        return
    scope = f"/namespaces/{metadata['namespace']}" if kind.namespaced else ""
    path = f"{kind.group}{scope}/{kind.resource}/{metadata['name']}"
    try:
        api.patch(path, {"metadata": {"finalizers": None}})
    except ApiError as error:
        if error.status != 404:
            raise


def _delete_namespace(api: KubeApi, namespace: Json, timeout: float) -> None:
    """Delete and finalize a namespace, which is the namespace controller's task in a cluster that runs one."""
    path = f"/api/v1/namespaces/{namespace['metadata']['name']}"
    try:
        if "deletionTimestamp" not in namespace["metadata"]:
            namespace = api.delete(path)
        namespace["spec"]["finalizers"] = []
        api.put(f"{path}/finalize", namespace)
    except ApiError as error:
        if error.status not in (404, 409):
            raise
    api.wait_gone(path, timeout)
