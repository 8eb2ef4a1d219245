"""The image, as far as it can be shown without a container engine: its stages, and what its steps install."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from scheduler import __version__
from tests.deploy.files import BASE, CHECKOUT, kustomize, one

INSTALL = "uv sync"


@dataclass
class Stage:
    """One stage of a Containerfile: its image and its instructions in order."""

    image: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def all(self, name: str) -> list[str]:
        return [text for instruction, text in self.instructions if instruction == name]


@pytest.fixture(scope="module")
def stages() -> list[Stage]:
    """The stages of the Containerfile, arguments filled in."""
    text = re.sub(r"^\s*#.*\n", "", (CHECKOUT / "Containerfile").read_text(), flags=re.MULTILINE)
    arguments: dict[str, str] = {}
    stages: list[Stage] = []
    for line in text.replace("\\\n", " ").splitlines():
        name, _, rest = line.strip().partition(" ")
        if name == "ARG":
            key, _, value = rest.partition("=")
            arguments[key] = value
        elif name == "FROM":
            stages.append(Stage(re.sub(r"\$\{(\w+)\}", lambda found: arguments[found[1]], rest)))
        elif name:
            stages[-1].instructions.append((name, rest))
    return stages


def test_both_stages_stand_on_one_exact_python_that_vane_supports(stages: list[Stage]) -> None:
    build, final = stages
    assert build.image == f"{final.image} AS build"
    version = re.fullmatch(r"python:(\d+\.\d+)\.\d+-slim-[a-z]+", final.image)
    assert version is not None
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    assert f"Programming Language :: Python :: {version[1]}" in project["classifiers"]
    assert re.search(r"uv==\d+\.\d+\.\d+$", build.all("RUN")[0])


def test_the_final_stage_runs_vane_as_the_user_of_the_manifests_and_installs_nothing(
    stages: list[Stage], programs: Path
) -> None:
    final = stages[-1]
    assert final.all("RUN") == []
    assert final.all("COPY") == ["--from=build /opt/vane /opt/vane"]
    assert final.all("ENTRYPOINT") == ['["vane"]']
    pod = one(kustomize(programs, BASE), "Deployment")["spec"]["template"]["spec"]
    context = pod["securityContext"]
    assert final.all("USER") == [f"{context['runAsUser']}:{context['runAsGroup']}"]
    assert "command" not in pod["containers"][0], "the image's entry point"


def test_what_is_copied_is_not_ignored_and_nothing_else_is_sent(stages: list[Stage]) -> None:
    lines = (CHECKOUT / ".containerignore").read_text().splitlines()
    copied = {word for text in stages[0].all("COPY") for word in text.split()[:-1]}
    assert "*" in lines
    assert {line[1:] for line in lines if line.startswith("!")} == copied
    assert all((CHECKOUT / path).exists() for path in copied)


@pytest.mark.timeout(600)
def test_its_steps_install_vane_as_locked_and_nothing_for_developers(stages: list[Stage], tmp_path: Path) -> None:
    """Take the steps of the build stage in an empty folder, with the Python that runs the tests."""
    uv = shutil.which("uv") or str(CHECKOUT / ".uv" / "bin" / "uv")
    source, prefix = tmp_path / "src", tmp_path / "vane"
    source.mkdir()
    given = dict(word.split("=", 1) for text in stages[0].all("ENV") for word in text.split())
    assert given["UV_PROJECT_ENVIRONMENT"] == "/opt/vane"
    given |= {"UV_PROJECT_ENVIRONMENT": str(prefix), "UV_PYTHON": sys.executable}
    # Neither the environment of the tests nor compiling all of numpy again, which takes a while and shows nothing.
    given |= {"UV_COMPILE_BYTECODE": "0", "VIRTUAL_ENV": ""}

    n_installs = 0
    for name, text in stages[0].instructions:
        if name == "COPY":
            *paths, _ = text.split()
            for path in paths:
                _copy(CHECKOUT / path, source / path)
        elif name == "RUN" and text.startswith(INSTALL):
            n_installs += 1
            done = _run([uv, *shlex.split(text)[1:]], source, {**os.environ, **given})
            assert done.returncode == 0, done.stderr
    assert n_installs == 2

    installed = {path.name.split("-")[0].lower() for path in prefix.glob("lib/python*/site-packages/*.dist-info")}
    assert {"vane_scheduler", "numpy", "kubernetes", "aiohttp"} <= installed
    assert not installed & {"pytest", "mypy", "ruff", "hypothesis", "grafana_foundation_sdk", "rich"}
    shutil.rmtree(source)  # the final stage has no sources
    clean = {"PATH": f"{prefix}/bin:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    assert _run(["vane", "version"], tmp_path, clean).stdout == f"vane {__version__}\n"
    checked = _run(["vane", "check", str(CHECKOUT / "rules")], tmp_path, clean)
    assert (checked.returncode, checked.stderr) == (0, "")
    # `run` as far as it comes without a cluster: everything it imports is there.
    run = _run(["vane", "run", "--kubeconfig", str(tmp_path / "none")], tmp_path, clean)
    assert (run.returncode, "no such file" in run.stderr) == (1, True), run.stderr


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def _run(argv: list[str], cwd: Path, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    program = shutil.which(argv[0], path=environ["PATH"])
    assert program is not None
    return subprocess.run(
        [program, *argv[1:]], cwd=cwd, env=environ, capture_output=True, text=True, check=False, timeout=500
    )
