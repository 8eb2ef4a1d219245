from __future__ import annotations

import json
import ssl
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.support.ports import free_port
from tests.support.process import Process, ProcessError
from tests.support.waiting import wait_until

Samples = Iterable[tuple[float, float]]


@dataclass(frozen=True)
class WebAccess:
    """How the tests themselves are let in where `--web.config.file` asks for TLS or a user."""

    context: ssl.SSLContext | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class PrometheusServer:
    """A real Prometheus on one port and one data folder for as long as it lives, restarts included."""

    def __init__(
        self,
        programs: Path,
        folder: Path,
        scrape_configs: Sequence[Mapping[str, Any]] = (),
        *,
        scrape_interval: str = "1s",
        retention: str = "100y",
        rule_groups: Sequence[Mapping[str, Any]] = (),
        flags: Sequence[str] = (),
        web: WebAccess | None = None,
    ) -> None:
        self.folder = folder
        self.port = free_port()
        self._web = web or WebAccess()
        self.url = f"{'https' if self._web.context else 'http'}://127.0.0.1:{self.port}"
        self.scrape_interval = scrape_interval
        argv: list[str | Path] = [
            programs / "prometheus",
            f"--config.file={self._config_path}",
            f"--storage.tsdb.path={self.data}",
            f"--storage.tsdb.retention.time={retention}",
            # Prometheus takes up new targets only every 5 s unless told otherwise.
            "--scrape.discovery-reload-interval=100ms",
            *flags,
        ]
        argv += [f"--web.listen-address=127.0.0.1:{self.port}", "--web.enable-lifecycle", "--web.enable-admin-api"]
        self.process = Process(argv, folder / "prometheus.log")
        folder.mkdir(parents=True, exist_ok=True)
        self._write_config(scrape_configs, rule_groups)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def _config_path(self) -> Path:
        return self.folder / "prometheus.yml"

    def start(self, timeout: float = 30.0) -> None:
        self.process.start()
        self.process.wait_ready(self._is_ready, timeout)

    def stop(self) -> None:
        self.process.stop()

    def kill(self) -> None:
        """End it as a crash would: connections break, the WAL stays as it is."""
        self.process.kill()

    def restart(self, timeout: float = 30.0) -> None:
        """Start again on the same port and data, after `kill` or `stop` or from running."""
        self.process.stop()
        self.start(timeout)

    def reload(
        self, scrape_configs: Sequence[Mapping[str, Any]], rule_groups: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        self._write_config(scrape_configs, rule_groups)
        _request(f"{self.url}/-/reload", b"", self._web)

    def query(self, expression: str, time: float | None = None) -> list[dict[str, Any]]:
        """Return the result of an instant query; `time` is in seconds since the epoch."""
        parameters = {"query": expression} | ({} if time is None else {"time": repr(time)})
        result: list[dict[str, Any]] = self._api("query", parameters)["result"]
        return result

    def query_range(self, expression: str, start: float, end: float, step: float) -> list[dict[str, Any]]:
        parameters = {"query": expression, "start": repr(start), "end": repr(end), "step": repr(step)}
        result: list[dict[str, Any]] = self._api("query_range", parameters)["result"]
        return result

    def values(self, expression: str, label: str = "instance", time: float | None = None) -> dict[str, float]:
        """Return the values of an instant vector, by one of its labels."""
        return {sample["metric"].get(label, ""): float(sample["value"][1]) for sample in self.query(expression, time)}

    def wait_for_value(
        self, expression: str, key: str, low: float, high: float, timeout: float = 15.0, label: str = "instance"
    ) -> float:
        """Wait until the vector has a value within low and high for that key, and return the value."""

        def within() -> tuple[float, ...]:
            value = self.values(expression, label).get(key)
            return () if value is None or not low <= value <= high else (value,)

        return wait_until(within, timeout, f"{expression} of {key} in [{low}, {high}]", interval=0.1)[0]

    def _api(self, endpoint: str, parameters: Mapping[str, str]) -> dict[str, Any]:
        body = urllib.parse.urlencode(parameters).encode()
        answer = json.loads(_request(f"{self.url}/api/v1/{endpoint}", body, self._web))
        data: dict[str, Any] = answer["data"]
        return data

    def _is_ready(self) -> bool:
        try:
            _request(f"{self.url}/-/ready", None, self._web)
        except OSError:
            return False
        return True

    def _write_config(
        self, scrape_configs: Sequence[Mapping[str, Any]], rule_groups: Sequence[Mapping[str, Any]]
    ) -> None:
        rules = self.folder / "rules.yml"
        rules.write_text(yaml.safe_dump({"groups": [dict(group) for group in rule_groups]}))
        interval = {"scrape_interval": self.scrape_interval, "evaluation_interval": self.scrape_interval}
        config = {
            "global": {**interval, "scrape_timeout": self.scrape_interval},
            "rule_files": [str(rules)],
            "scrape_configs": [dict(scrape) for scrape in scrape_configs],
        }
        self._config_path.write_text(yaml.safe_dump(config))


def openmetrics_text(series: Mapping[str, Samples]) -> str:
    """Return the OpenMetrics text of samples (seconds since the epoch, value) by series, `name{label="value"}`."""
    lines: list[str] = []
    # A family's samples have to stand together.
    for name in sorted(series, key=lambda key: (key.partition("{")[0], key)):
        lines += [f"{name} {value!r} {time!r}" for time, value in sorted(series[name])]
    return "\n".join([*lines, "# EOF", ""])


def import_samples(programs: Path, data: Path, samples: str | Mapping[str, Samples]) -> None:
    """Write samples into a Prometheus data folder, given by series or as OpenMetrics text."""
    data.mkdir(parents=True, exist_ok=True)
    source = data.parent / f"{data.name}.openmetrics"
    source.write_text(samples if isinstance(samples, str) else openmetrics_text(samples))
    argv: list[str | Path] = [
        programs / "promtool",
        "tsdb",
        "create-blocks-from",
        "openmetrics",
        "--quiet",
        source,
        data,
    ]
    outcome = subprocess.run(argv, capture_output=True, text=True)
    if outcome.returncode != 0:
        raise ProcessError(f"promtool could not import the samples: {outcome.stderr or outcome.stdout}")


def _request(url: str, body: bytes | None, web: WebAccess) -> bytes:
    request = urllib.request.Request(url, data=body, headers=dict(web.headers))
    try:
        with urllib.request.urlopen(request, timeout=10, context=web.context) as response:
            content: bytes = response.read()
            return content
    except urllib.error.HTTPError as error:
        with error:
            raise OSError(f"{url}: {error.code} {error.read().decode(errors='replace')}") from None
