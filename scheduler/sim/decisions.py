"""Reads the scheduler's pages: whether it is ready, and what it has decided and why."""

from __future__ import annotations

import json
from typing import Any, Final

import aiohttp

Json = dict[str, Any]

_LIMIT: Final = 50
_TIMEOUT: Final = aiohttp.ClientTimeout(total=2.0)


class SchedulerPages:
    """The HTTPS port of one `vane run`; its certificate is self-signed, and nothing but loopback is asked."""

    def __init__(self, port: int) -> None:
        self._url = f"https://127.0.0.1:{port}"
        self._session: aiohttp.ClientSession | None = None
        self._next = 0

    async def is_ready(self) -> bool:
        return await self._get("/readyz") is not None

    async def new_decisions(self) -> list[Json]:
        """Return what was decided since the last call, oldest first; nothing while the page does not answer."""
        body = await self._get(f"/decisions?after={self._next}&limit={_LIMIT}")
        if body is None:
            return []
        answer = json.loads(body)
        self._next = int(answer["next"])
        return list(answer["decisions"])

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _get(self, path: str) -> bytes | None:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=_TIMEOUT, connector=aiohttp.TCPConnector(ssl=False))
        try:
            async with self._session.get(self._url + path) as answer:
                return await answer.read() if answer.status == 200 else None
        except (TimeoutError, aiohttp.ClientError):
            return None
