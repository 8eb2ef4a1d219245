"""Programs that are started on this machine: they end with us, however we end, and listen on a free port."""

from __future__ import annotations

import os
import signal
import site
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ENDING: Final = (signal.SIGTERM, signal.SIGINT)
"""The signals that end Vane in order."""

# Runs in the child before the program replaces it: the kernel then ends it in order when its parent is killed, and
# nothing is left behind.
_END_WITH_PARENT: Final = """
import os, signal, sys
if sys.platform == "linux":
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)
    if os.getppid() != int(sys.argv[1]):
        sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""


def ending_with_us(argv: Sequence[str]) -> list[str]:
    """Return the command that runs a program, named by its path, for as long as this process lives."""
    return [sys.executable, "-P", "-c", _END_WITH_PARENT, str(os.getpid()), *argv]


def module_command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of ours in a Python of its own; see `module_environment`.

    The folder that we were started in is not on its path (-P): whoever may write there would run code that holds our
    credentials.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def module_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which `module_command` finds this package, one that is not installed too."""
    folder = str(Path(__file__).parents[1])
    if folder in (*site.getsitepackages(), site.getusersitepackages()):
        return dict(environ)
    paths = [folder, *filter(None, [environ.get("PYTHONPATH")])]
    return {**environ, "PYTHONPATH": os.pathsep.join(paths)}


@contextmanager
def endings_held_back() -> Iterator[None]:
    """Start a child in here that ignores these signals once it is loaded: one to the whole group must not end it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def free_port() -> int:
    """Return a port of loopback that nobody listens on now; `vane run` takes 0 for not serving at all."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
