"""Runs the `vane` command with an audit hook: what the deciding thread opens, connects, looks up or sleeps.

`python -m tests.support.audited REPORT run …`; every line of REPORT is one violation. Only what happens below
`SchedulingLoop.run` counts: before it starts and after it has ended nothing is being decided.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from pathlib import Path
from types import FrameType

from scheduler.cli.main import main
from scheduler.loop.scheduler import SchedulingLoop

_FORBIDDEN = ("open", "os.open", "socket.connect", "socket.getaddrinfo", "socket.gethostbyname")
_LOOP = SchedulingLoop.run.__code__


def _is_deciding() -> bool:
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 - there is no public way to walk the stack this cheaply
    while frame is not None:
        if frame.f_code is _LOOP:
            return True
        frame = frame.f_back
    return False


def audit(report: Path) -> None:
    """Write violations from a thread of its own: the audited one must not open the report either."""
    deciding = threading.main_thread().ident
    found: queue.SimpleQueue[str] = queue.SimpleQueue()

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event in _FORBIDDEN and threading.get_ident() == deciding and _is_deciding():
            found.put(f"{event} {arguments!r}")

    def write() -> None:
        with report.open("w", buffering=1) as file:
            file.write("")
            while True:
                file.write(found.get() + "\n")

    def profile(_frame: FrameType, event: str, called: object) -> None:
        # A sleep is no audit event before Python 3.13, but a call into C like any other.
        if event == "c_call" and called is time.sleep and _is_deciding():
            found.put("time.sleep")

    threading.Thread(target=write, daemon=True).start()
    sys.addaudithook(hook)
    sys.setprofile(profile)


if __name__ == "__main__":
    audit(Path(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
