"""The container of the applied Deployment, as far as a process of this machine can be it."""

from __future__ import annotations

import os
from pathlib import Path

from tests.deploy.files import NAMESPACE
from tests.support.kubeapi import KubeApi
from tests.support.manifests import Json


class Container:
    """Mounts the ConfigMaps below a folder and says what the container's arguments are there.

    Everything is read from the API server, nothing from the files in deploy/.
    """

    def __init__(self, api: KubeApi, folder: Path) -> None:
        self._api = api
        self._folder = folder
        self._pod: Json = api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/vane")["spec"]["template"]["spec"]
        (self._spec,) = self._pod["containers"]
        self._mounts = {mount["name"]: mount["mountPath"] for mount in self._spec["volumeMounts"]}
        self._n_mounted = 0

    @property
    def flags(self) -> list[str]:
        """The arguments after `run`, with the paths of mounts as they are on this machine."""
        words = [str(word) for word in self._spec["args"]]
        assert words[0] == "run"
        for path in self._mounts.values():
            words = [word.replace(path, str(self._folder) + path) for word in words]
        return words[1:]

    def environ(self, pod_name: str) -> dict[str, str]:
        """Return what the downward API says in a Pod of that name."""
        told = {"metadata.name": pod_name, "metadata.namespace": NAMESPACE, "metadata.uid": f"uid-of-{pod_name}"}
        return {entry["name"]: told[entry["valueFrom"]["fieldRef"]["fieldPath"]] for entry in self._spec["env"]}

    def mount(self) -> None:
        """Write the ConfigMaps as they are now: as kubelet does, into a new folder that one rename puts in place."""
        self._n_mounted += 1
        for volume in self._pod["volumes"]:
            name = volume["configMap"]["name"]
            data = self._api.get(f"/api/v1/namespaces/{NAMESPACE}/configmaps/{name}")["data"]
            target = Path(str(self._folder) + self._mounts[volume["name"]])
            version = target / f"..{self._n_mounted}"
            version.mkdir(parents=True)
            for key, text in data.items():
                (version / key).write_text(text)
                link = target / key
                if not link.is_symlink():
                    link.symlink_to(Path("..data") / key)
            new = target / "..data_tmp"
            new.symlink_to(version.name)
            os.replace(new, target / "..data")
