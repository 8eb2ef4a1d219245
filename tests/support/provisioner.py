"""What a storage driver's provisioner does, as far as schedulers see it: it makes volumes, or says that it cannot."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Collection

from tests.support import storage
from tests.support.kubeapi import ApiError, KubeApi, Watch
from tests.support.manifests import Json

_WATCHED = "/api/v1/persistentvolumeclaims"


class TestProvisioner:
    """Makes a volume for each claim of its class on the node that the scheduler has chosen.

    Parameters
    ----------
    full
        Nodes where it can make none: it takes the choice back, as the external-provisioner does.
    elsewhere
        The node that its volumes can be used from instead of the one chosen, "" for none.
    """

    __test__ = False

    def __init__(self, api: KubeApi, storage_class: str, full: Collection[str] = (), elsewhere: str = "") -> None:
        self.errors: list[str] = []
        self.asked: list[str] = []
        self._api = api
        self._class = storage_class
        self._full = full
        self._elsewhere = elsewhere
        self._watch: Watch | None = None
        self._thread = threading.Thread(target=self._run, name="provisioner", daemon=True)

    def start(self) -> None:
        version = self._api.get(_WATCHED)["metadata"]["resourceVersion"]
        self._watch = self._api.watch(_WATCHED, version)
        self._thread.start()

    def stop(self) -> None:
        if self._watch is not None:
            self._watch.close()
        self._thread.join(10.0)

    def _run(self) -> None:
        assert self._watch is not None
        for event in self._watch:
            claim = event["object"]
            node = claim["metadata"].get("annotations", {}).get(storage.SELECTED_NODE)
            is_open = not claim["spec"].get("volumeName") and event["type"] != "DELETED"
            if node is None or not is_open or claim["spec"].get("storageClassName") != self._class:
                continue
            try:
                self._provision(claim, node)
            except ApiError as error:
                if error.status not in (404, 409):
                    self.errors.append(traceback.format_exc())

    def _provision(self, claim: Json, node: str) -> None:
        self.asked.append(node)
        metadata = claim["metadata"]
        if node in self._full:
            path = f"/api/v1/namespaces/{metadata['namespace']}/persistentvolumeclaims/{metadata['name']}"
            self._api.patch(path, {"metadata": {"annotations": {storage.SELECTED_NODE: None}}})
            return
        reference = {"kind": "PersistentVolumeClaim", **{key: metadata[key] for key in ("namespace", "name", "uid")}}
        name = f"pvc-{metadata['uid']}"
        volume = storage.local_volume(name, self._class, self._elsewhere or node, claimRef=reference)
        volume["metadata"]["annotations"] = {"pv.kubernetes.io/provisioned-by": "test.example.com"}
        self._api.post(storage.VOLUMES, volume)
