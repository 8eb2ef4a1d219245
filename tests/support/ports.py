from __future__ import annotations

import os
import random
import socket
import threading

import pytest

# Below the range from which Linux takes the local ports of outgoing connections (32768 and up): a port found free
# here is not lost to one of those before its server listens.
_FIRST, _END = 20000, 32000

# Workers of one run take turns: what one finds free, another doesn't hand out before a server listens there.
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_RANGE = range(_FIRST + _WORKER, _END, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))

_handed_out: set[int] = set()
_lock = threading.Lock()
_random = random.SystemRandom()


def free_port() -> int:
    """Return a loopback TCP port nobody listens on; never the same one twice in a process."""
    with _lock:
        while True:
            port = _random.choice(_RANGE)
            if port not in _handed_out and _is_free(port):
                _handed_out.add(port)
                return port


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def own_address() -> str:
    """Return an address of this machine that is not loopback, though nothing sent to it leaves the machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        return str(probe.getsockname()[0])
