"""`--real`: a Prometheus of its own for each test, started with the samples of the test and ended with it."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from scheduler.child_process import ending_with_us, free_port
from scheduler.errors import ConfigError, Problem
from scheduler.model.rules import RuleSet
from scheduler.rule_tests.model import InputSeries
from scheduler.rule_tests.remote_write import HEADERS, write_requests
from scheduler.rule_tests.servers import Clock, no_promql
from scheduler.signals.asking.client import QueryClient, QueryResult
from scheduler.signals.asking.query_errors import PrometheusUnreachable, QueryRejected
from scheduler.signals.asking.session import parse_answer

PROGRAM: Final = "prometheus"

_READY_S: Final = 60.0
_LOOK_S: Final = 0.05
_STOP_S: Final = 10.0
_QUERY_S: Final = 60.0
_TAIL_LINES: Final = 8
# Proxies of the environment are none of the loopback's business.
_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def find_prometheus(folder: Path | None, environ: Mapping[str, str]) -> Path:
    """Return the program, from `folder` or else from PATH.

    Raises
    ------
    ConfigError
        Where there is none.
    """
    if folder is not None:
        program = folder / PROGRAM
        if not program.is_file():
            raise ConfigError(f"--prometheus-dir {folder}: no program `{PROGRAM}` in it. Write the folder that has it")
        return program.resolve()
    found = shutil.which(PROGRAM, path=environ.get("PATH", ""))
    if found is None:
        raise ConfigError(f"--real: no program `{PROGRAM}` in PATH. Install it, or write --prometheus-dir DIR")
    return Path(found).resolve()


class RealServer:
    """Starts a Prometheus on a free port of the loopback for each test; `folder` is where its data are, for a while."""

    def __init__(self, program: Path, folder: Path | None = None) -> None:
        self._program = program
        self._folder = folder

    def unsupported(self, rules: RuleSet) -> list[Problem]:
        """Return what is no PromQL at all; what else a Prometheus refuses, its answers say."""
        return no_promql(rules)

    @contextmanager
    def holding(self, series: Sequence[InputSeries], clock: Clock) -> Iterator[QueryClient]:
        with tempfile.TemporaryDirectory(
            prefix="vane-rules-test-", dir=self._folder, ignore_cleanup_errors=True
        ) as name:
            folder = Path(name)
            url = f"http://127.0.0.1:{free_port()}"
            process = self._start(folder, url)
            try:
                _await_ready(process, url, folder)
                for body in write_requests(series):
                    _call(f"{url}/api/v1/write", body, HEADERS)
                yield RealClient(url, clock)
            finally:
                _stop(process)

    def _start(self, folder: Path, url: str) -> subprocess.Popen[bytes]:
        config = folder / "prometheus.yml"
        config.write_text("scrape_configs: []\n")
        argv = [
            str(self._program),
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'data'}",
            # Tests begin in 1970.
            "--storage.tsdb.retention.time=200y",
            "--web.enable-remote-write-receiver",
            f"--web.listen-address={urllib.parse.urlsplit(url).netloc}",
        ]
        with _log(folder).open("wb") as output:
            return subprocess.Popen(
                ending_with_us(argv), stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )


class RealClient:
    """A QueryClient that asks as of the time of the test."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._url = url
        self._clock = clock

    def query(self, expr: str, lookback_s: float | None = None) -> QueryResult:
        at_s = self._clock()
        form = {"query": expr, "time": repr(at_s)}
        if lookback_s is not None:
            form["lookback_delta"] = f"{max(round(lookback_s * 1000), 1)}ms"
        body = _call(f"{self._url}/api/v1/query", urllib.parse.urlencode(form).encode())
        answer = parse_answer(body)
        return QueryResult(answer.series, answer.result_type == "scalar", answer.warnings, at_s, at_s)


def _await_ready(process: subprocess.Popen[bytes], url: str, folder: Path) -> None:
    deadline_s = time.monotonic() + _READY_S
    while not _is_ready(url):
        if process.poll() is not None or time.monotonic() > deadline_s:
            tail = "\n".join(_log(folder).read_text(errors="replace").splitlines()[-_TAIL_LINES:])
            ended = "it has ended" if process.poll() is not None else f"no answer within {_READY_S:g} s"
            raise ConfigError(f"{PROGRAM} did not become ready, {ended}; the end of its log:\n{tail}")
        time.sleep(_LOOK_S)


def _is_ready(url: str) -> bool:
    try:
        _call(f"{url}/-/ready")
    except (PrometheusUnreachable, QueryRejected):
        return False
    return True


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _call(url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> bytes:
    request = urllib.request.Request(url, data=body, headers=dict(headers or {}))
    try:
        with _OPENER.open(request, timeout=_QUERY_S) as response:
            content: bytes = response.read()
            return content
    except urllib.error.HTTPError as error:
        with error:
            raise _rejected(error.code, error.read()) from error
    except OSError as error:
        raise PrometheusUnreachable(f"{url}: {error}") from error


def _rejected(status: int, body: bytes) -> QueryRejected:
    try:
        said = json.loads(body)
        return QueryRejected(status, str(said["errorType"]), str(said["error"]))
    except (ValueError, KeyError, TypeError):
        return QueryRejected(status, "", body[:200].decode(errors="replace").strip())


def _log(folder: Path) -> Path:
    return folder / "prometheus.log"
