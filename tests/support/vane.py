"""`vane run` as a process of its own, as an operator starts it."""

from __future__ import annotations

import json
import os
import re
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.support.kubeapi import KubeApi
from tests.support.ports import free_port
from tests.support.process import Process, ProcessError
from tests.support.waiting import wait_until

_DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


def shipped_roles(file: str = "base/rbac.yaml") -> list[dict[str, Any]]:
    """Return the ClusterRole and the Role that are shipped in a file of deploy/."""
    documents = yaml.safe_load_all((_DEPLOY / file).read_text())
    return [document for document in documents if document["kind"] in ("ClusterRole", "Role")]


def grant_vane(api: KubeApi, user: str, file: str = "base/rbac.yaml") -> None:
    """Give a user what the shipped roles allow: tests run with these rights and no others."""
    for role in shipped_roles(file):
        api.grant(user, role["rules"], namespace=role["metadata"].get("namespace"))


def grant_reviews(api: KubeApi, user: str) -> None:
    """Let a user ask who calls its pages, as the shipped role does."""
    (role,) = shipped_roles("base/access-reviews.yaml")
    api.grant(user, role["rules"], name=f"test:reviews:{user}")


class VaneProcess:
    """One scheduler; every access of its deciding thread that must not be is in `violations`.

    `token` goes with every request for its pages; those of a Vane on loopback can be read without.
    """

    def __init__(
        self,
        folder: Path,
        kubeconfig: Path,
        rules: Sequence[Path] = (),
        prometheus: str | None = None,
        flags: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        is_audited: bool = True,
    ) -> None:
        self.port = free_port()
        self.token: str | None = None
        self._report = folder / "violations.txt"
        program = ["tests.support.audited", str(self._report)] if is_audited else ["scheduler"]
        command = [sys.executable, "-m", *program, "run"]
        command += ["--kubeconfig", str(kubeconfig), "--secure-port", str(self.port)]
        command += [flag for path in rules for flag in ("--rules", str(path))]
        command += ["--prometheus", prometheus] if prometheus else []
        self.process = Process([*command, *flags], folder / "vane.log", environ={**os.environ, **(env or {})})

    @property
    def violations(self) -> list[str]:
        return self._report.read_text().splitlines()

    @property
    def identity(self) -> str:
        """The name under which it asks the API server and holds the Lease, from its log; "" before it has said so."""
        found = re.search(r'\bidentity(?:=|": ?")([^\s"]+)', self.process.log_text())  # lines may be text or JSON
        return "" if found is None else found[1]

    def pids(self) -> list[int]:
        """Return the deciding process and its children, as far as they run."""
        parent = self.process.pid
        children = Path(f"/proc/{parent}/task/{parent}/children")
        try:
            return [parent, *map(int, children.read_text().split())]
        except OSError:
            return []

    def binder_pid(self) -> int:
        """Return the binder process."""
        return next(pid for pid in self.pids() if b"binder" in Path(f"/proc/{pid}/cmdline").read_bytes())

    def start(self, timeout: float = 60.0) -> None:
        """Start it and wait until it is ready: two seconds of a core, of which a busy machine may give it a tenth."""
        self.process.start()
        try:
            self.process.wait_ready(self.is_ready, timeout)
        except ProcessError as error:
            error.add_note(f"/readyz says: {self._get('readyz')[1]}")
            raise

    def stop(self) -> None:
        self.process.stop()

    def is_ready(self) -> bool:
        return self.page("readyz").startswith("ok")

    def page(self, path: str) -> str:
        """Return the text of a page, empty if there is none (yet)."""
        is_ok, text = self._get(path)
        return text if is_ok else ""

    def _get(self, path: str) -> tuple[bool, str]:
        """Return whether a page is answered without an error, and its text or why there is none."""
        context = ssl._create_unverified_context()  # noqa: SLF001 - its certificate is self-signed
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}/{path}", headers=self._headers())
        try:
            with urllib.request.urlopen(request, timeout=5, context=context) as answer:
                return True, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return False, error.read().decode()
        except OSError as error:
            return False, str(error)

    def call(self, path: str, body: object) -> tuple[int, Any]:
        """Post JSON, and return the status and the JSON of the answer."""
        context = ssl._create_unverified_context()  # noqa: SLF001 - as above
        headers = {"Content-Type": "application/json", **self._headers()}
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}/{path}", json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=5, context=context) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def _headers(self) -> dict[str, str]:
        return {} if self.token is None else {"Authorization": f"Bearer {self.token}"}

    def metric(self, series: str) -> float | None:
        """Return the value of one series, written as on the page; None if it is not there."""
        for line in self.page("metrics").splitlines():
            name, _, value = line.rpartition(" ")
            if name == series:
                return float(value)
        return None

    def wait_for_metric(self, series: str, value: float, timeout: float = 15.0) -> None:
        wait_until(lambda: self.metric(series) == value, timeout, f"{series} = {value}")
