"""The scheduler of an arm: `vane run` as a process, just as an operator starts it, and its pages."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import aiohttp

from scheduler.child_process import ending_with_us, free_port, module_command, module_environment
from scheduler.client_sockets import ClientSockets
from scheduler.errors import VaneError

Json = dict[str, Any]

_MOST_DECISIONS: Final = 50
_PAGE_TIMEOUT: Final = aiohttp.ClientTimeout(total=2.0)
_STOP_S: Final = 8.0
_TAIL_LINES: Final = 8


class SchedulerEndedError(VaneError):
    """A scheduler ended while it was needed; the message has the end of its log."""


class SchedulerProcess:
    """One `vane run`; its pages are on `port`, what it logs in `log`. Without `rules` it places as kube-scheduler."""

    def __init__(self, log: Path, kubeconfig: Path, rules: Path | None, prometheus: str) -> None:
        self.port = free_port()
        self.log = log
        self._flags = [
            *("--kubeconfig", str(kubeconfig)),
            *(() if rules is None else ("--rules", str(rules))),
            *("--prometheus", prometheus),
            *("--secure-port", str(self.port)),
            "--leader-elect=false",
        ]
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, environ: Mapping[str, str]) -> None:
        with self.log.open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                *ending_with_us(module_command("scheduler", "run", *self._flags)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=module_environment(_plain(environ)),
                # A session of its own: it does not get the terminal's ^C, which the demo handles.
                start_new_session=True,
            )

    def check(self) -> None:
        """Raise SchedulerEndedError if the process has ended."""
        if self._process is not None and self._process.returncode is not None:
            raise SchedulerEndedError(f"vane run ended with {self._process.returncode}:\n{self.log_tail()}")

    def log_tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])

    async def stop(self) -> None:
        """End it with SIGTERM, with SIGKILL if that takes too long."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), _STOP_S)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


class SchedulerPages:
    """The HTTPS port of one `vane run`; its certificate is self-signed, and nothing but loopback is asked."""

    def __init__(self, port: int) -> None:
        self._url = f"https://127.0.0.1:{port}"
        self._sockets = ClientSockets()
        self._session: aiohttp.ClientSession | None = None
        self._next = 0

    async def is_ready(self) -> bool:
        return await self._get("/readyz") is not None

    async def new_decisions(self) -> list[Json]:
        """Return what was decided since the last call, oldest first; nothing while the page does not answer."""
        body = await self._get(f"/decisions?after={self._next}&limit={_MOST_DECISIONS}")
        if body is None:
            return []
        answer = json.loads(body)
        self._next = int(answer["next"])
        return list(answer["decisions"])

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            await self._sockets.close()

    async def _get(self, path: str) -> bytes | None:
        if self._session is None:
            connector = aiohttp.TCPConnector(ssl=False, socket_factory=self._sockets.make)
            self._session = aiohttp.ClientSession(timeout=_PAGE_TIMEOUT, connector=connector)
        try:
            async with self._session.get(self._url + path) as answer:
                return await answer.read() if answer.status == 200 else None
        except (TimeoutError, aiohttp.ClientError):
            return None


def _plain(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without what would configure the scheduler beside our flags."""
    kept = {name: value for name, value in environ.items() if not name.startswith(("VANE_", "POD_", "KUBERNETES_"))}
    # Proxies are not for loopback.
    return {**kept, "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}
