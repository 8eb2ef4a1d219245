"""The kubectl commands of the README, as typed, on a cluster with the controllers of a real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.deploy.files import CHECKOUT, NAMESPACE, kubectl
from tests.deploy.test_installed import SHORT_LEASE
from tests.readme import blocks, commands
from tests.support.controlplane import ControlPlane
from tests.support.prometheus import PrometheusServer
from tests.support.vane import VaneProcess


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What stands in a reader's checkout, with the kustomization that the README shows."""
    for name in ("deploy", "dashboards", "rules"):
        (tmp_path / name).symlink_to(CHECKOUT / name)
    (kustomization,) = (block.text for block in blocks("yaml") if "kind: Kustomization" in block.text)
    own = tmp_path / "my-vane"
    own.mkdir()
    # kustomize takes no absolute paths, and follows no link out of the folder.
    text = kustomization.replace("../deploy", f"{'../' * 20}{CHECKOUT.relative_to('/')}/deploy")
    (own / "kustomization.yaml").write_text(text)
    return tmp_path


def test_they_do_what_they_say(
    cluster: ControlPlane, prometheus: PrometheusServer, folder: Path, tmp_path: Path
) -> None:
    typed = [command.removeprefix("kubectl ") for command in commands("kubectl")]
    installing = [command for command in typed if "my-vane" in command or NAMESPACE in command]
    assert len(installing) == 2
    said = {command: kubectl(cluster, command, folder) for command in installing}
    assert "deployment.apps/vane" in said[installing[0]]
    assert "prometheusrule.monitoring.coreos.com/vane" in said[installing[0]]
    assert 'deployment "vane" successfully rolled out' in said[installing[1]]

    # The Pods of that Deployment have no container behind them here: the same program runs beside.
    token = cluster.service_account_token("vane", NAMESPACE)
    kubeconfig = cluster.write_kubeconfig({"token": token}, tmp_path / "vane.kubeconfig")
    vane = VaneProcess(tmp_path, kubeconfig, prometheus=prometheus.url, flags=SHORT_LEASE)
    vane.start()
    try:
        said |= {command: kubectl(cluster, command, folder) for command in typed if command not in installing}
    finally:
        vane.stop()

    told = "\n".join(f"$ kubectl {command}\n{text}" for command, text in said.items())
    assert 'deployment "web" successfully rolled out' in told
    assert "configmap/vane-scheduling" in told or "vane-scheduling" in told
    assert "Successfully assigned default/web-" in told
