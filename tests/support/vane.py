"""`vane run` as a process of its own, as an operator starts it."""

from __future__ import annotations

import os
import ssl
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.support.ports import free_port
from tests.support.process import Process
from tests.support.waiting import wait_until

_DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


def rbac_rules() -> list[dict[str, Any]]:
    """Return the rules of the ClusterRole that is shipped: tests run with these rights and no others."""
    documents = yaml.safe_load_all((_DEPLOY / "rbac.yaml").read_text())
    role = next(document for document in documents if document["kind"] == "ClusterRole")
    rules: list[dict[str, Any]] = role["rules"]
    return rules


class VaneProcess:
    """One scheduler; every access of its deciding thread that must not be is in `violations`."""

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

    def start(self, timeout: float = 30.0) -> None:
        self.process.start()
        self.process.wait_ready(self.is_ready, timeout)

    def stop(self) -> None:
        self.process.stop()

    def is_ready(self) -> bool:
        return self.page("readyz").startswith("ok")

    def page(self, path: str) -> str:
        """Return the text of a page, empty if there is none (yet)."""
        context = ssl._create_unverified_context()  # noqa: SLF001 - its certificate is self-signed
        try:
            with urllib.request.urlopen(f"https://127.0.0.1:{self.port}/{path}", timeout=5, context=context) as answer:
                return str(answer.read().decode())
        except OSError:
            return ""

    def metric(self, series: str) -> float | None:
        """Return the value of one series, written as on the page; None if it is not there."""
        for line in self.page("metrics").splitlines():
            name, _, value = line.rpartition(" ")
            if name == series:
                return float(value)
        return None

    def wait_for_metric(self, series: str, value: float, timeout: float = 15.0) -> None:
        wait_until(lambda: self.metric(series) == value, timeout, f"{series} = {value}")
