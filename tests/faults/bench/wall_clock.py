"""The wall clock of one replica, which can be stepped: its processes see it through libfaketime."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.faults.bench.bench import RowError

_PACKAGE = "libfaketime"
_LIBRARY = "libfaketime.so.1"
_SYSTEM = Path("/usr/lib")
_FILE = "wall-clock"


class NoLibraryError(RowError):
    """libfaketime is not installed, and could not be had from the distribution."""


def library(cache: Path | None = None) -> Path:
    """Return libfaketime: the installed one, else that of the distribution's package, unpacked into the cache.

    Raises
    ------
    NoLibraryError
        There is neither; the message says what to install.
    """
    folder = cache or Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "vane" / _PACKAGE
    for root in (_SYSTEM, folder):
        found = next(iter(sorted(root.glob(f"**/faketime/{_LIBRARY}"))), None)
        if found is not None:
            return found
    folder.mkdir(parents=True, exist_ok=True)
    try:
        subprocess.run(["apt-get", "download", "--quiet", _PACKAGE], cwd=folder, capture_output=True, check=True)
        package = next(folder.glob("*.deb"))
        subprocess.run(["dpkg", "--extract", package.name, "."], cwd=folder, capture_output=True, check=True)
        return next(folder.glob(f"**/faketime/{_LIBRARY}"))
    except (OSError, subprocess.CalledProcessError, StopIteration) as error:
        raise NoLibraryError(f"no clock can be stepped: install {_PACKAGE} (Debian, Ubuntu: faketime)") from error


def environ(folder: Path, replica: str) -> Mapping[str, str]:
    """Return the variables by which a replica sees the clock that `step` sets; its monotonic clock stays as it is."""
    step(folder, replica, 0)
    return {
        "LD_PRELOAD": str(library()),
        "FAKETIME_TIMESTAMP_FILE": str(_path(folder, replica)),
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }


def step(folder: Path, replica: str, ahead_s: int) -> None:
    """Let a replica's clock be so far ahead of the true one, behind it if negative, within a second."""
    draft = _path(folder, replica).with_suffix(".new")
    draft.write_text(f"{ahead_s:+d}")
    draft.replace(_path(folder, replica))


def _path(folder: Path, replica: str) -> Path:
    return folder / f"{replica}.{_FILE}"
