"""Where the manifests stand, and kubectl as an operator types it in a checkout."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import yaml

from tests.support.controlplane import ControlPlane
from tests.support.manifests import Json

CHECKOUT = Path(__file__).resolve().parents[2]
DEPLOY = CHECKOUT / "deploy"
BASE, TWO_REPLICAS = DEPLOY / "base", DEPLOY / "overlays" / "two-replicas"
REMOTE_BINDER, MONITORING = DEPLOY / "components" / "remote-binder", DEPLOY / "monitoring"
DATA = Path(__file__).parent / "data"
NAMESPACE = "vane-system"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:vane"


def kustomize(programs: Path, folder: Path) -> list[Json]:
    """Return the objects that `kubectl kustomize` makes of a folder."""
    done = subprocess.run(
        [programs / "kubectl", "kustomize", folder], capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", "a warning"
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def kubectl(cluster: ControlPlane, command: str, cwd: Path = CHECKOUT) -> str:
    """Run a kubectl command as the admin, and return what it printed, warnings too; it must end with 0."""
    done = subprocess.run(
        [cluster.programs / "kubectl", f"--kubeconfig={cluster.kubeconfig_path}", *shlex.split(command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
        cwd=cwd,
    )
    assert done.returncode == 0, f"kubectl {command}\n{done.stdout}"
    return done.stdout


def one(objects: list[Json], kind: str, name: str = "vane") -> Json:
    """Return the object of this kind and name; of a ConfigMap with a hash in its name, the name without it."""
    (found,) = (
        document
        for document in objects
        if document["kind"] == kind and (document["metadata"]["name"] + "-").startswith(name + "-")
    )
    return found


def overlay(folder: Path, kustomization: Json) -> Path:
    """Write a kustomization of somebody's own, whose `resources` and `components` are folders of the checkout."""

    def related(paths: list[Path]) -> list[str]:
        return [os.path.relpath(path, folder.resolve()) for path in paths]

    folders = {key: related(kustomization[key]) for key in ("resources", "components") if key in kustomization}
    folder.mkdir(exist_ok=True)
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization | folders))
    return folder
