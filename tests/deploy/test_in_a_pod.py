"""What a Pod has and has not: the service account's files and variables, nothing that can be written, no capability."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.container import Container
from tests.deploy.files import NAMESPACE, kubectl
from tests.support.controlplane import ControlPlane
from tests.support.ports import free_port
from tests.support.process import Process, running
from tests.support.prometheus import PrometheusServer
from tests.support.waiting import wait_until

# Before the program: the service account's files where kubelet puts them ($1 holds them), then nothing to write to.
IN_A_POD = """
set -e
mount -t tmpfs none /var/run
mkdir -p /var/run/secrets/kubernetes.io/serviceaccount
cp "$1"/* /var/run/secrets/kubernetes.io/serviceaccount
for folder in /var/run /tmp /var/tmp /dev/shm; do
    mount --bind "$folder" "$folder"
    mount -o remount,bind,ro "$folder"
done
mount -o remount,bind,ro /
cd /
for folder in / /tmp /var/tmp /dev/shm /var/run .; do
    if touch "$folder/probe" 2>/dev/null; then echo "$folder can be written"; exit 99; fi
done
shift
exec setpriv --no-new-privs --inh-caps=-all --bounding-set=-all "$@"
"""
OWN_MOUNTS = (shutil.which("unshare") or "unshare", "--map-root-user", "--mount")


@pytest.fixture(scope="module")
def own_mounts() -> tuple[str, ...]:
    """What to put before a command so that it may mount what only it sees."""
    try:
        command = [*OWN_MOUNTS, "mount", "-t", "tmpfs", "none", "/mnt"]
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no mounts of one's own on this machine: {error}")
    return OWN_MOUNTS


def test_vane_needs_the_service_account_and_no_folder_to_write_to(
    cluster: ControlPlane, prometheus: PrometheusServer, own_mounts: tuple[str, ...], tmp_path: Path
) -> None:
    account = tmp_path / "account"
    account.mkdir()
    kubectl(cluster, "apply -k deploy/base")
    api = cluster.client()
    container = Container(api, tmp_path)
    container.mount()
    (account / "token").write_text(cluster.service_account_token("vane", NAMESPACE))
    (account / "ca.crt").write_bytes(cluster.ca_path.read_bytes())

    environ = {
        **container.environ("vane-0"),
        "PATH": "/usr/bin:/bin",
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": str(cluster.port),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    vane = Path(sys.executable).parent / "vane"
    flags = [*container.flags, f"--prometheus={prometheus.url}", f"--secure-port={free_port()}"]
    command: list[str | Path] = [*own_mounts, "sh", "-c", IN_A_POD, "sh", account, vane, "run", *flags]
    process = Process(command, tmp_path / "vane.log", environ)
    with running(process, lambda: "this replica is the leader" in process.log_text()):
        api.create_pod("in-a-pod", scheduler_name="vane")
        api.wait_bound("in-a-pod")
        wait_until(lambda: api.events("in-a-pod", reason="Scheduled"), 10.0, "its Event")
        process.stop()
    assert process.returncode == 0
    api.delete_pod("in-a-pod", grace=0)
