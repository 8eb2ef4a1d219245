from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scheduler.child_process import ending_with_us, module_command, module_environment
from scheduler.sim.apiserver import kubeconfig
from tests.support.process import Process, children_of, has_loaded
from tests.support.waiting import wait_until

SHADOWED = ("asyncio", "ctypes", "json", "msgspec", "numpy", "scheduler")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder of modules that leave a file behind when one of them is imported."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    for name in SHADOWED:
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / f'ran-{name}')!r}, 'w')\n")
    return folder


def ran(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.parent.glob("ran-*"))


def test_no_process_of_vane_imports_from_the_folder_it_was_started_in(hostile: Path, tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    # An API server that refuses: Vane goes on asking until it is ended.
    config.write_text(kubeconfig("http://127.0.0.1:9"))
    run = module_command("scheduler", "run", "--kubeconfig", str(config), "--secure-port", "0")
    vane = Process(run, tmp_path / "vane.log", module_environment(os.environ), cwd=hostile)
    vane.start()
    wait_until(lambda: len(children_of(vane.pid)) == 2, 30.0, "the binder and the refresher")
    loaded = ("_asyncio", "multiarray")
    wait_until(lambda: all(any(has_loaded(pid, one) for pid in children_of(vane.pid)) for one in loaded), 30.0, "both")
    vane.stop()
    assert ran(hostile) == []


def test_neither_does_what_starts_a_program_that_ends_with_us(hostile: Path) -> None:
    told = subprocess.run(
        ending_with_us(["/bin/echo", "hello"]), cwd=hostile, capture_output=True, text=True, check=True
    )
    assert (told.stdout, ran(hostile)) == ("hello\n", [])


def test_a_plain_python_would(hostile: Path) -> None:
    subprocess.run([sys.executable, "-c", "import json"], cwd=hostile, check=True)
    assert ran(hostile) == ["ran-json"]


def test_what_the_user_put_on_the_path_stays(tmp_path: Path) -> None:
    environ = module_environment({"PYTHONPATH": str(tmp_path), "HOME": "/"})
    assert environ["HOME"] == "/"
    assert environ["PYTHONPATH"].split(os.pathsep)[-1] == str(tmp_path)
