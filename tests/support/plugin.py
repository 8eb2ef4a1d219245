"""The pytest plugin of the tests that run against a real control plane and a real Prometheus."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from tests.controlplane.build import BuildError, ensure_oracle, ensure_parser, ensure_programs
from tests.support.audit import AuditLog
from tests.support.cleanup import clean
from tests.support.controlplane import ControlPlane
from tests.support.exporter import NodeExporter
from tests.support.kubeapi import KubeApi
from tests.support.kubelet import TestKubelet
from tests.support.prometheus import PrometheusServer, Samples, import_samples

_MARK = "controlplane"
_LONGEST = (
    "tests/e2e/test_outage_matrix.py",
    "tests/e2e/test_failover.py",
    "tests/e2e/test_bind_variants.py",
    "tests/e2e/test_demo.py",
    "tests/deploy/",
    "tests/e2e/",
    "tests/kube/",
)
"""What several workers begin with, so that none is left with a long file when the others have nothing to do."""

_SHARED_FOLDERS = ("tests/deploy/",)
"""Whose files share what takes long to start: one worker runs them all."""

_PROGRAMS = pytest.StashKey[Path | BuildError]()
_ORACLE = pytest.StashKey[Path | BuildError]()
_PARSER = pytest.StashKey[Path | BuildError]()
_BUILT_HERE: Final[Mapping[str, tuple[pytest.StashKey[Path | BuildError], Callable[..., Path]]]] = {
    "oracle": (_ORACLE, ensure_oracle),
    "promql_parser": (_PARSER, ensure_parser),
}
"""By the fixture that needs it: what is built of sources of ours."""

StartPrometheus = Callable[..., PrometheusServer]
Recorded = Callable[[str | Mapping[str, Samples]], PrometheusServer]


# First, so that `-m "not controlplane"`, which is applied in the same hook, sees the marks.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(_needs(item, fixture) for fixture in ("programs", *_BUILT_HERE)):
            item.add_marker(_MARK)
    if os.environ.get("PYTEST_XDIST_WORKER"):
        items.sort(key=lambda item: _place(item.nodeid))


def _place(nodeid: str) -> int:
    return next((place for place, start in enumerate(_LONGEST) if nodeid.startswith(start)), len(_LONGEST))


class Shares(LoadScopeScheduling):  # type: ignore[misc]  # without types
    """What one of several workers runs as a whole: a file, or a folder whose files share something."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # by the number of tests, which says little of how long they take

    def _split_scope(self, nodeid: str) -> str:
        shared = next((folder for folder in _SHARED_FOLDERS if nodeid.startswith(folder)), "")
        return shared or nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Shares:
    return Shares(config, log)


# Before the tests and not in the fixture: a first build takes longer than the timeout of the test that would wait.
@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    if session.config.option.collectonly or not any(item.get_closest_marker(_MARK) for item in session.items):
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")

    def progress(line: str) -> None:
        if reporter is not None:
            reporter.write_line(line)

    session.config.stash[_PROGRAMS] = _built(lambda: ensure_programs(progress=progress))
    for fixture, (key, ensure) in _BUILT_HERE.items():
        if any(_needs(item, fixture) for item in session.items):
            session.config.stash[key] = _built(functools.partial(ensure, progress=progress))


def _needs(item: pytest.Item, fixture: str) -> bool:
    return fixture in getattr(item, "fixturenames", ())


def _built(build: Callable[[], Path]) -> Path | BuildError:
    try:
        return build()
    except BuildError as error:
        return error


def _or_skipped(outcome: Path | BuildError) -> Path:
    if isinstance(outcome, Path):
        return outcome
    reason = f"no control plane: {' '.join(str(outcome).split())}"
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def programs(request: pytest.FixtureRequest) -> Path:
    """The folder of etcd, kube-apiserver, kube-scheduler, kube-controller-manager, kubectl, prometheus, promtool."""
    return _or_skipped(request.config.stash[_PROGRAMS])


@pytest.fixture(scope="session")
def oracle(request: pytest.FixtureRequest) -> Path:
    """The program that answers scheduling cases with kube-scheduler's own plugins."""
    return _or_skipped(request.config.stash[_ORACLE])


@pytest.fixture(scope="session")
def promql_parser(request: pytest.FixtureRequest) -> Path:
    """The program that reads expressions with Prometheus' own parser."""
    return _or_skipped(request.config.stash[_PARSER])


@pytest.fixture(scope="session")
def control_plane(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    control_plane = ControlPlane(programs, tmp_path_factory.mktemp("control-plane"))
    control_plane.start()
    yield control_plane
    control_plane.stop()


@pytest.fixture
def api(control_plane: ControlPlane) -> KubeApi:
    """The admin's client of a cluster without nodes, Pods or anything else a test made."""
    api = control_plane.client()
    clean(api)
    return api


@pytest.fixture(scope="session")
def other_control_plane(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Another cluster."""
    control_plane = ControlPlane(programs, tmp_path_factory.mktemp("other-control-plane"))
    control_plane.start()
    yield control_plane
    control_plane.stop()


@pytest.fixture
def other_api(other_control_plane: ControlPlane) -> KubeApi:
    """The other cluster's admin, as `api`."""
    api = other_control_plane.client()
    clean(api)
    return api


@pytest.fixture
def audit(api: KubeApi, control_plane: ControlPlane) -> AuditLog:
    """What the API server is asked from the test's start on."""
    return control_plane.audit.from_now()


@pytest.fixture
def kubelet(api: KubeApi) -> Iterator[TestKubelet]:
    kubelet = TestKubelet(api)
    kubelet.start()
    yield kubelet
    kubelet.stop()
    assert kubelet.errors == []


@pytest.fixture
def exporter() -> Iterator[NodeExporter]:
    exporter = NodeExporter()
    exporter.start()
    yield exporter
    exporter.stop()


@pytest.fixture
def start_prometheus(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartPrometheus]:
    """Start Prometheus servers, which end with the test; the arguments are those of `PrometheusServer`."""
    servers: list[PrometheusServer] = []

    def start(scrape_configs: Sequence[Mapping[str, Any]] = (), **settings: Any) -> PrometheusServer:
        server = PrometheusServer(programs, tmp_path_factory.mktemp("prometheus"), scrape_configs, **settings)
        servers.append(server)
        server.start()
        return server

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def recorded(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """Start Prometheus servers on recorded samples; query them with `time=`."""
    servers: list[PrometheusServer] = []

    def start(samples: str | Mapping[str, Samples]) -> PrometheusServer:
        server = PrometheusServer(programs, tmp_path_factory.mktemp("recorded"))
        servers.append(server)
        import_samples(programs, server.data, samples)
        server.start()
        return server

    yield start
    for server in servers:
        server.stop()
