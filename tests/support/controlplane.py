from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3
import yaml

from tests.support import pki
from tests.support.audit import POLICY, AuditLog
from tests.support.kubeapi import ApiError, KubeApi
from tests.support.ports import free_port
from tests.support.process import Process, running

_SHM = Path("/dev/shm")
_ETCD_PREFIX = "vane-etcd-"

# The API server reads its token file only once; other users get a client certificate (`make_kubeconfig`) or a
# ServiceAccount's token (`service_account_token`).
TOKEN_USERS: dict[str, tuple[str, ...]] = {"admin": ("system:masters",), "vane": (), "nobody": ()}

_IMMEDIATELY_READY = urllib3.Timeout(connect=1, read=5)


@dataclass(frozen=True)
class Component:
    """A running kube-scheduler or kube-controller-manager; `url` serves its /metrics and /healthz."""

    process: Process
    url: str
    ca_path: Path

    def metrics(self) -> str:
        return self.page("metrics")

    def page(self, path: str) -> str:
        return _get(f"{self.url}/{path}", self.ca_path)[1]


class ControlPlane:
    """etcd and kube-apiserver on free loopback ports, RBAC on, every request audited unless the policy says less.

    `flags` are further ones of the API server, without dashes.
    """

    def __init__(
        self,
        programs: Path,
        folder: Path,
        audit_policy: Mapping[str, Any] = POLICY,
        flags: Mapping[str, str] | None = None,
    ) -> None:
        self.programs = programs
        self.folder = folder
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self.audit = AuditLog(folder / "audit.log")
        self._audit_policy = audit_policy
        self._flags = dict(flags or {})
        self._serving = folder / "serving.crt", folder / "serving.key"
        self._authority = pki.CertificateAuthority()
        self._tokens = {user: f"{user}-{base64.b16encode(os.urandom(12)).decode().lower()}" for user in TOKEN_USERS}
        self._etcd: Process | None = None
        self._apiserver: Process | None = None
        self._etcd_data: Path | None = None
        self._clients: dict[str, KubeApi] = {}

    @property
    def ca_path(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def kubeconfig_path(self) -> Path:
        """The admin's kubeconfig."""
        return self.folder / "admin.kubeconfig"

    @property
    def pids(self) -> dict[str, int]:
        """The process IDs of what runs, by program."""
        return {process.name: process.pid for process in (self._etcd, self._apiserver) if process is not None}

    def token(self, user: str = "admin") -> str:
        return self._tokens[user]

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            etcd_url = self._start_etcd()
            self._write_credentials()
            self._start_apiserver(etcd_url)
        except BaseException:
            self.stop()
            raise
        self.make_kubeconfig("admin", path=self.kubeconfig_path)

    def stop(self) -> None:
        for client in self._clients.values():
            client.close()
        self._clients.clear()
        for process in (self._apiserver, self._etcd):
            if process is not None:
                process.stop()
        if self._etcd_data is not None:
            shutil.rmtree(self._etcd_data, ignore_errors=True)

    def _start_etcd(self) -> str:
        _remove_abandoned_data()
        parent = _SHM if os.access(_SHM, os.W_OK) else self.folder
        self._etcd_data = Path(tempfile.mkdtemp(prefix=f"{_ETCD_PREFIX}{os.getpid()}-", dir=parent))
        client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        argv: list[str | Path] = [
            self.programs / "etcd",
            "--unsafe-no-fsync",
            "--log-level=warn",
            f"--data-dir={self._etcd_data}",
        ]
        argv += [f"--listen-client-urls={client}", f"--advertise-client-urls={client}"]
        argv += [f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}"]
        argv += [f"--initial-cluster=default={peer}", "--quota-backend-bytes=8589934592"]
        self._etcd = Process(argv, self.folder / "etcd.log")
        self._etcd.start()
        self._etcd.wait_ready(lambda: _answers(f"{client}/readyz"))
        return client

    def _write_credentials(self) -> None:
        names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
        certificate, key = self._authority.issue_server(names, ["127.0.0.1", "::1"])
        account_key = pki.new_key()
        lines = [
            f'{self._tokens[user]},{user},{user}-uid,"{",".join(groups)}"\n' for user, groups in TOKEN_USERS.items()
        ]
        self.ca_path.write_bytes(self._authority.pem)
        for name, content in (
            ("serving.crt", certificate),
            ("serving.key", key),
            ("service-account.key", pki.private_pem(account_key)),
            ("service-account.pub", pki.public_pem(account_key)),
            ("tokens.csv", "".join(lines).encode()),
            ("audit-policy.json", json.dumps(self._audit_policy).encode()),
        ):
            _write_private(self.folder / name, content)

    def _start_apiserver(self, etcd_url: str) -> None:
        self._apiserver = self._new_apiserver(etcd_url, self.port, self.audit.path, "kube-apiserver.log", {})
        self._apiserver.start()
        self._apiserver.wait_ready(self._is_ready)

    def _new_apiserver(
        self, etcd_url: str, port: int, audit_path: Path, log_name: str, further: Mapping[str, str]
    ) -> Process:
        flags = {
            "etcd-servers": etcd_url,
            "bind-address": "127.0.0.1",
            "secure-port": port,
            # The reconciler refuses to publish a loopback address as the `kubernetes` Service's endpoint.
            "endpoint-reconciler-type": "none",
            "service-cluster-ip-range": "10.0.0.0/24",
            "tls-cert-file": self._serving[0],
            "tls-private-key-file": self._serving[1],
            "client-ca-file": self.ca_path,
            "token-auth-file": self.folder / "tokens.csv",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": self.folder / "service-account.pub",
            "service-account-signing-key-file": self.folder / "service-account.key",
            "authorization-mode": "RBAC",
            # No controller makes ServiceAccounts or takes the not-ready taint away here.
            "disable-admission-plugins": "ServiceAccount,TaintNodesByCondition",
            "audit-policy-file": self.folder / "audit-policy.json",
            "audit-log-path": audit_path,
            "audit-log-mode": "blocking",
            "audit-log-maxsize": 4096,
            "delete-collection-workers": 8,
            "allow-privileged": "true",
            **self._flags,
            **further,
        }
        argv: list[str | Path] = [
            self.programs / "kube-apiserver",
            *(f"--{flag}={value}" for flag, value in flags.items()),
        ]
        return Process(argv, self.folder / log_name)

    def _is_ready(self) -> bool:
        try:
            api = self.client("admin")
            api.get("/readyz")
            # These two come after /readyz turns ok.
            return api.exists("/api/v1/namespaces/default") and api.exists("/api/v1/namespaces/kube-node-lease")
        except (urllib3.exceptions.HTTPError, OSError, ApiError):
            return False

    def client(self, user: str = "admin", groups: Sequence[str] = ()) -> KubeApi:
        """Return a client for a user; closed with the control plane."""
        key = "\0".join((user, *groups))
        if key not in self._clients:
            if self._has_token(user, groups):
                self._clients[key] = KubeApi(self.url, self.ca_path, token=self._tokens[user])
            else:
                certificate = self._client_certificate(user, groups)
                self._clients[key] = KubeApi(self.url, self.ca_path, client_certificate=certificate)
        return self._clients[key]

    def make_kubeconfig(self, user: str, groups: Sequence[str] = (), path: Path | None = None) -> Path:
        """Write a kubeconfig: with the token of a token user (`TOKEN_USERS`), else with a client certificate."""
        if self._has_token(user, groups):
            return self.write_kubeconfig({"token": self._tokens[user]}, path)
        certificate, key = self._client_certificate(user, groups)
        return self.write_kubeconfig(
            {"client-certificate-data": _base64(certificate), "client-key-data": _base64(key)}, path
        )

    def write_kubeconfig(self, credentials: Mapping[str, Any], path: Path | None = None) -> Path:
        cluster = {"server": self.url, "certificate-authority-data": _base64(self.ca_path)}
        path = path or self._new_file(".kubeconfig")
        _write_private(path, as_kubeconfig(cluster, credentials).encode())
        return path

    def service_account_token(self, name: str, namespace: str = "default", seconds: int = 600) -> str:
        """Create the ServiceAccount if need be, and return a token of it; the API server's least is 600 s."""
        api = self.client()
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        if not api.exists(f"{accounts}/{name}"):
            api.post(accounts, {"metadata": {"name": name}})
        request = {"spec": {"expirationSeconds": seconds}}
        return str(api.post(f"{accounts}/{name}/token", request)["status"]["token"])

    def kubectl(self, *arguments: str, user: str = "admin", groups: Sequence[str] = ()) -> Process:
        """Start kubectl; wait for it with `.wait()`, and read `.log_text()`."""
        kubeconfig = self.make_kubeconfig(user, groups)
        argv: list[str | Path] = [self.programs / "kubectl", f"--kubeconfig={kubeconfig}", *arguments]
        process = Process(argv, self._new_file(".kubectl.log"))
        process.start()
        return process

    @contextlib.contextmanager
    def start_kube_scheduler(
        self, config: str | Mapping[str, Any] | None = None, flags: Sequence[str] = ()
    ) -> Iterator[Component]:
        """Run a real kube-scheduler with this KubeSchedulerConfiguration, which need not name kubeconfig or version."""
        given = yaml.safe_load(config) if isinstance(config, str) else dict(config or {})
        kubeconfig = self.make_kubeconfig("system:kube-scheduler")
        merged = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            **given,
            "clientConnection": {"qps": 1000, "burst": 1000, **given.get("clientConnection", {})},
        }
        merged["clientConnection"].setdefault("kubeconfig", str(kubeconfig))
        path = self._new_file(".scheduler.yaml")
        path.write_text(yaml.safe_dump(merged))
        with self._component("kube-scheduler", kubeconfig, [f"--config={path}", *flags], "/readyz") as component:
            yield component

    @contextlib.contextmanager
    def start_controller_manager(
        self, controllers: Sequence[str] = ("*",), flags: Sequence[str] = ()
    ) -> Iterator[Component]:
        # The role system:kube-controller-manager covers the manager; its controllers have roles of their own, which
        # they'd use as ServiceAccounts. One user with all rights spares the tests those accounts.
        kubeconfig = self.make_kubeconfig("system:kube-controller-manager", ["system:masters"])
        arguments = [f"--kubeconfig={kubeconfig}", f"--controllers={','.join(controllers)}", "--leader-elect=false"]
        arguments += [f"--service-account-private-key-file={self.folder / 'service-account.key'}"]
        arguments += [f"--root-ca-file={self.ca_path}", *flags]
        with self._component("kube-controller-manager", kubeconfig, arguments, "/healthz") as component:
            yield component

    @contextlib.contextmanager
    def _component(
        self, program: str, kubeconfig: Path, arguments: Sequence[str], ready_path: str
    ) -> Iterator[Component]:
        port = free_port()
        url = f"https://127.0.0.1:{port}"
        argv: list[str | Path] = [self.programs / program, "--bind-address=127.0.0.1", f"--secure-port={port}"]
        argv += [f"--tls-cert-file={self._serving[0]}", f"--tls-private-key-file={self._serving[1]}"]
        argv += [f"--authentication-kubeconfig={kubeconfig}", f"--authorization-kubeconfig={kubeconfig}"]
        argv += ["--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics", *arguments]
        process = Process(argv, self._new_file(f".{program}.log"))
        with running(process, lambda: _answers(f"{url}{ready_path}", self.ca_path)):
            yield Component(process, url, self.ca_path)

    def _has_token(self, user: str, groups: Sequence[str]) -> bool:
        return user in TOKEN_USERS and tuple(groups) in ((), TOKEN_USERS[user])

    def _client_certificate(self, user: str, groups: Sequence[str]) -> tuple[Path, Path]:
        certificate, key = self._authority.issue_client(user, groups)
        paths = self._new_file(".crt"), self._new_file(".key")
        for path, content in zip(paths, (certificate, key), strict=True):
            _write_private(path, content)
        return paths

    def _new_file(self, suffix: str) -> Path:
        handle, name = tempfile.mkstemp(suffix=suffix, dir=self.folder)
        os.close(handle)
        return Path(name)


def as_kubeconfig(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> str:
    """Return a kubeconfig, as YAML, for one cluster and whom it is told that we are."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": dict(cluster)}],
        "users": [{"name": "test", "user": dict(user)}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    }
    return yaml.safe_dump(config)


def _remove_abandoned_data() -> None:
    """Free the memory that etcd data of killed test runs still takes."""
    for folder in _SHM.glob(f"{_ETCD_PREFIX}*"):
        pid = folder.name.removeprefix(_ETCD_PREFIX).split("-")[0]
        if not Path(f"/proc/{pid}").exists():
            shutil.rmtree(folder, ignore_errors=True)


def _write_private(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _get(url: str, ca: Path | None = None) -> tuple[int, str]:
    ca_certs = None if ca is None else str(ca)
    with urllib3.PoolManager(retries=False, timeout=_IMMEDIATELY_READY, ca_certs=ca_certs) as pool:
        response = pool.request("GET", url)
        return response.status, response.data.decode()


def _answers(url: str, ca: Path | None = None) -> bool:
    try:
        return _get(url, ca)[0] == 200
    except (urllib3.exceptions.HTTPError, OSError):
        return False
