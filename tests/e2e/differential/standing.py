"""Sets a drawn cluster up on the API server, and reads it back as the oracle wants it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from tests.conformance.generate.draw import Fields, name_of
from tests.e2e.differential.drawing import DrawnPod
from tests.support.kubeapi import ApiError, KubeApi

_COLLECTIONS = {
    "namespaces": "/api/v1/namespaces",
    "priorityclasses": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "storageclasses": "/apis/storage.k8s.io/v1/storageclasses",
    "csidrivers": "/apis/storage.k8s.io/v1/csidrivers",
    "nodes": "/api/v1/nodes",
    "csinodes": "/apis/storage.k8s.io/v1/csinodes",
    "persistentvolumeclaims": "/api/v1/persistentvolumeclaims",
    "persistentvolumes": "/api/v1/persistentvolumes",
    "csistoragecapacities": "/apis/storage.k8s.io/v1/csistoragecapacities",
    "volumeattachments": "/apis/storage.k8s.io/v1/volumeattachments",
    "services": "/api/v1/services",
    "replicasets": "/apis/apps/v1/replicasets",
    "statefulsets": "/apis/apps/v1/statefulsets",
    "replicationcontrollers": "/api/v1/replicationcontrollers",
    "poddisruptionbudgets": "/apis/policy/v1/poddisruptionbudgets",
    "pods": "/api/v1/pods",
}
"""What the oracle reads, in the order in which it can be created."""

_CREATED_WITH_STATUS = ("nodes",)
_EXISTING = ("default",)
_LONG_S = 3600


class Cluster:
    """A drawn cluster on the API server; `pods` are still to be submitted, all that they name stands.

    `refusals` tells of each drawn Pod that is left out what the API server has against it, or why it would wait.
    """

    def __init__(self, api: KubeApi, objects: Mapping[str, list[Fields]]) -> None:
        self.refusals: list[str] = []
        self.pods: Sequence[DrawnPod] = ()
        self._api = api
        self._claim_uids: dict[tuple[str, str], str] = {}
        self._still: dict[str, list[Fields]] = {}
        self._stand_up(objects)

    def take(self, pods: Iterable[DrawnPod]) -> None:
        """Set up what these Pods name. From now on nothing but Pods may change."""
        self.pods = tuple(pods)
        self._stand_up(
            {plural: [one for pod in self.pods for one in pod.objects.get(plural, ())] for plural in _COLLECTIONS}
        )
        self._still = {plural: self._listed(plural) for plural in _COLLECTIONS if plural != "pods"}

    def accepted(self, drawn: Iterable[DrawnPod]) -> Iterator[DrawnPod]:
        """Yield the Pods that the API server takes, and their volumes, and that can be bound without a controller."""
        for pod in drawn:
            if pod.waits_for_consumer:
                self.refusals.append("its claim is bound by the PV controller, which does not run here")
                continue
            try:
                for volume in pod.objects.get("persistentvolumes", ()):
                    self._api.post(_path("persistentvolumes", volume), volume, dryRun="All")
                self._api.post(pods_of(pod.manifest), pod.manifest, dryRun="All")
            except ApiError as error:
                self._refuse(error)
            else:
                yield pod

    def objects(self) -> dict[str, list[Fields]]:
        """Return all objects as they are now; only Pods change after the start."""
        return self._still | {"pods": self._listed("pods")}

    def n_placed(self) -> int:
        """Return how many Pods schedulers count: those with a node that have not ended."""
        listed = self._api.pods(fieldSelector="status.phase!=Succeeded,status.phase!=Failed")
        return sum("nodeName" in pod["spec"] for pod in listed)

    def place(self, pod: Fields) -> None:
        """Create a Pod on its node, as it was read before."""
        kept = {
            key: pod["metadata"][key]
            for key in ("name", "namespace", "labels", "annotations")
            if key in pod["metadata"]
        }
        self._create("pods", {"metadata": kept, "spec": pod["spec"], "status": pod["status"]})

    def _refuse(self, error: ApiError) -> None:
        if error.status != 422:
            raise error
        self.refusals.append(error.message.partition(": ")[2])

    def _stand_up(self, objects: Mapping[str, list[Fields]]) -> None:
        unknown = objects.keys() - _COLLECTIONS.keys()
        assert not unknown, f"no collection for {sorted(unknown)}"
        for plural in _COLLECTIONS:
            self._api.for_each(partial(self._create, plural), objects.get(plural, ()))

    def _create(self, plural: str, fields: Fields) -> None:
        if plural == "namespaces" and name_of(fields) in _EXISTING:
            return
        path = _path(plural, fields)
        if plural == "persistentvolumes" and "claimRef" in fields["spec"]:
            holder = fields["spec"]["claimRef"]
            holder["uid"] = self._claim_uids.get((holder["namespace"], holder["name"]), "gone")
        metadata = {key: value for key, value in fields["metadata"].items() if not key.startswith("deletion")}
        try:
            created = self._api.post(path, fields | {"metadata": metadata})
        except ApiError as error:
            if plural != "pods":
                raise
            self._refuse(error)
            return
        if plural == "persistentvolumeclaims":
            self._claim_uids[metadata["namespace"], metadata["name"]] = created["metadata"]["uid"]
        if fields.get("status") and plural not in _CREATED_WITH_STATUS:
            self._api.patch(f"{path}/{metadata['name']}/status", {"status": fields["status"]})
        if metadata != fields["metadata"]:
            # It stays, being deleted: a claim is protected, and a Pod has a grace period and no kubelet.
            self._api.delete(f"{path}/{metadata['name']}", gracePeriodSeconds=_LONG_S)

    def _listed(self, plural: str) -> list[Fields]:
        found = self._api.list(_COLLECTIONS[plural])
        for one in found:
            one["metadata"].pop("managedFields", None)
        return found


def pods_of(manifest: Fields) -> str:
    """Return the path of the Pods of a Pod's namespace."""
    return _path("pods", manifest)


def _path(plural: str, fields: Fields) -> str:
    group, _, resource = _COLLECTIONS[plural].rpartition("/")
    namespace = fields["metadata"].get("namespace")
    return f"{group}/namespaces/{namespace}/{resource}" if namespace else f"{group}/{resource}"
