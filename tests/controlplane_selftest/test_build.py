from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane import build

ROOT = Path(__file__).resolve().parents[2]
A_CONTROL_PLANE_TEST = "tests/controlplane_selftest/test_controlplane.py::test_api_server_is_kubernetes_1_37_1"
NAMES = [program.name for program in build.PROGRAMS]


def _run_build(**environ: str) -> subprocess.CompletedProcess[str]:
    return _run_build_of(**environ)


def _run_build_of(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "tests/controlplane/build.py", *words]
    return subprocess.run(argv, cwd=ROOT, env={**os.environ, **environ}, capture_output=True, text=True, timeout=60)


def _run_pytest(**environ: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", A_CONTROL_PLANE_TEST]
    inherited = {key: value for key, value in os.environ.items() if key != "CI" and not key.startswith("PYTEST_")}
    return subprocess.run(argv, cwd=ROOT, env={**inherited, **environ}, capture_output=True, text=True, timeout=60)


def _write_program(path: Path, text: str = "#!/bin/sh\n") -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def no_cache(tmp_path: Path) -> str:
    """A cache folder that can't be made: its parent is a file."""
    (tmp_path / "file").touch()
    return str(tmp_path / "file" / "cache")


def test_given_programs_are_linked_and_not_built(tmp_path: Path) -> None:
    for name in NAMES:
        _write_program(tmp_path / ("bin" if name in ("prometheus", "promtool") else "assets") / name)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    cache = str(tmp_path / "cache")
    outcome = _run_build(KUBEBUILDER_ASSETS=str(tmp_path / "assets"), PATH=path, VANE_CACHE=cache)
    assert outcome.returncode == 0, outcome.stderr
    folder = Path(outcome.stdout.splitlines()[-1])
    assert folder.is_relative_to(cache)
    assert {name: (folder / name).resolve().parent.name for name in NAMES} == {
        name: "bin" if name in ("prometheus", "promtool") else "assets" for name in NAMES
    }


def test_second_run_prints_only_the_folder(tmp_path: Path) -> None:
    for name in NAMES:
        _write_program(tmp_path / "assets" / name)
    environ = {"KUBEBUILDER_ASSETS": str(tmp_path / "assets"), "VANE_CACHE": str(tmp_path / "cache")}
    first, second = _run_build(**environ), _run_build(**environ)
    assert second.stdout.splitlines() == first.stdout.splitlines()[-1:]


def test_removed_program_is_linked_anew(tmp_path: Path) -> None:
    for name in NAMES:
        _write_program(tmp_path / "assets" / name)
    environ = {"KUBEBUILDER_ASSETS": str(tmp_path / "assets"), "VANE_CACHE": str(tmp_path / "cache")}
    folder = Path(_run_build(**environ).stdout.splitlines()[-1])
    (folder / "etcd").unlink()
    assert _run_build(**environ).returncode == 0
    assert (folder / "etcd").exists()


def test_unusable_cache_is_a_clean_error(no_cache: str) -> None:
    outcome = _run_build(VANE_CACHE=no_cache)
    assert outcome.returncode == 1
    assert outcome.stderr.startswith("error: cannot write the programs to ")
    assert "Traceback" not in outcome.stderr


def test_failing_go_is_a_clean_error(tmp_path: Path) -> None:
    go = '#!/bin/sh\n[ "$1" = env ] && echo go1.99.0 && exit\necho no network >&2\nexit 3\n'
    _write_program(tmp_path / "bin" / "go", go)
    path = f"{tmp_path / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin"
    outcome = _run_build(PATH=path, VANE_CACHE=str(tmp_path / "cache"), KUBEBUILDER_ASSETS="")
    assert outcome.returncode == 1
    assert outcome.stderr == "error: building etcd failed (exit 3): no network\n"


def test_old_go_is_not_taken(tmp_path: Path) -> None:
    _write_program(tmp_path / "go", "#!/bin/sh\necho go1.19.2\n")
    assert build.go_version(tmp_path / "go") == (1, 19, 2)
    assert build.go_version(tmp_path / "go") < build.required_go()
    assert build.go_version(tmp_path / "absent") == (0,)


def test_tests_are_skipped_with_the_reason_where_the_programs_cannot_be_had(no_cache: str) -> None:
    outcome = _run_pytest(VANE_CACHE=no_cache)
    assert outcome.returncode == 0, outcome.stdout
    assert "1 skipped" in outcome.stdout
    assert "no control plane: cannot write the programs to" in outcome.stdout


def test_tests_fail_in_ci_where_the_programs_cannot_be_had(no_cache: str) -> None:
    outcome = _run_pytest(VANE_CACHE=no_cache, CI="true")
    assert outcome.returncode == 1, outcome.stdout
    assert "no control plane: cannot write the programs to" in outcome.stdout


def test_mark_deselects_the_tests() -> None:
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", "not controlplane", A_CONTROL_PLANE_TEST]
    outcome = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert "1 deselected" in outcome.stdout


def test_the_oracle_has_a_folder_of_its_own_and_is_built_once(oracle: Path) -> None:
    outcome = _run_build_of("oracle")
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.splitlines() == [str(oracle)]
    assert oracle.parent.name == f"oracle-{build.source_key(build.ORACLE)}"


def test_the_parser_has_a_folder_of_its_own_too(promql_parser: Path) -> None:
    outcome = _run_build_of("parser")
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.splitlines() == [str(promql_parser)]
    assert promql_parser.parent.name == f"parser-{build.source_key(build.PARSER)}"


def test_failing_go_is_a_clean_error_for_the_oracle_too(tmp_path: Path) -> None:
    _write_program(tmp_path / "bin" / "go", '#!/bin/sh\n[ "$1" = env ] && echo go1.99.0 && exit\nexit 3\n')
    path = f"{tmp_path / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin"
    outcome = _run_build_of("oracle", PATH=path, VANE_CACHE=str(tmp_path / "cache"))
    assert outcome.returncode == 1
    assert outcome.stderr.startswith("error: building oracle failed (exit 3)")


def test_exporters_have_a_folder_of_their_own_and_are_built_once(tmp_path: Path) -> None:
    folder = build.exporters_folder({"VANE_CACHE": str(tmp_path)})
    folder.mkdir(parents=True)
    for program in build.EXPORTERS:
        _write_program(folder / program.name)
    outcome = _run_build_of("exporters", VANE_CACHE=str(tmp_path))
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.splitlines() == [str(folder)]


def test_failing_go_is_a_clean_error_for_the_exporters_too(tmp_path: Path) -> None:
    _write_program(tmp_path / "bin" / "go", '#!/bin/sh\n[ "$1" = env ] && echo go1.99.0 && exit\nexit 3\n')
    path = f"{tmp_path / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin"
    outcome = _run_build_of("exporters", PATH=path, VANE_CACHE=str(tmp_path / "cache"))
    assert outcome.returncode == 1
    assert outcome.stderr.startswith("error: building node_exporter failed (exit 3)")


@pytest.mark.parametrize("program", build.EXPORTERS, ids=[program.name for program in build.EXPORTERS])
def test_an_exporter_is_pinned_to_the_version_that_it_says(program: build.Program) -> None:
    required = (program.module / "go.mod").read_text()
    said = re.findall(r"common/version\.Version=(\S+)|gitVersion=v(\S+)", program.ldflags)
    for version in {one or other for one, other in said}:
        assert re.search(rf"{re.escape(_module_of(program.package))} v{re.escape(version)}\b", required)
    assert (program.module / "go.sum").stat().st_size > 0


def _module_of(package: str) -> str:
    return package.partition("/cmd/")[0]


def test_what_needs_the_exporters_says_how_to_build_them(tmp_path: Path) -> None:
    cache = tmp_path / "cache" / "vane"
    cache.mkdir(parents=True)
    programs = build.cache_root(os.environ) / build.cache_key(build.provided_programs(os.environ))
    (cache / "controlplane").mkdir()
    (cache / "controlplane" / programs.name).symlink_to(programs)
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", "-rs", "tests/exporters/test_packs.py"]
    environ = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    environ["VANE_CACHE"] = str(tmp_path / "cache")
    outcome = subprocess.run(argv, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=120)
    assert outcome.returncode == 0, outcome.stdout
    assert "not built: node_exporter, " in outcome.stdout
    assert "`make exporters` builds them" in outcome.stdout
    assert "passed" not in outcome.stdout
