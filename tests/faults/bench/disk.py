"""A disk that is small enough to be filled."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from tests.support.process import Process
from tests.support.waiting import wait_until

_MOUNT = 'mount -t tmpfs -o size="$1" none /mnt && mkdir /mnt/home && exec sleep infinity'


class SmallDisk:
    """A tmpfs in namespaces of its own, which need no rights; everybody sees it by the process that holds them.

    `stop` copies what lies there to `kept`.
    """

    def __init__(self, kept: Path, size_bytes: int) -> None:
        self._kept = kept
        argv = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", _MOUNT, "sh", str(size_bytes)]
        self._holder = Process([shutil.which(argv[0]) or argv[0], *argv[1:]], kept / "disk.log")
        self._holder.start()
        self.folder = Path(f"/proc/{self._holder.pid}/root/mnt/home")
        self._filler = self.folder / "filler"
        wait_until(self.folder.is_dir, 5.0, f"a small disk (see {self._holder.log})")

    def fill(self) -> int:
        """Leave no byte free; return how many were."""
        n_bytes = 0
        with self._filler.open("ab", buffering=0) as file:
            with contextlib.suppress(OSError):
                while True:
                    n_bytes += file.write(bytes(4096))
        return n_bytes

    def free(self) -> None:
        self._filler.unlink(missing_ok=True)

    @property
    def n_free_bytes(self) -> int:
        status = os.statvfs(self.folder)
        return status.f_bavail * status.f_frsize

    def stop(self) -> None:
        shutil.copytree(self.folder, self._kept, dirs_exist_ok=True, ignore=shutil.ignore_patterns("filler"))
        self._holder.kill()
