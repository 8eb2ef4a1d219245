"""The sockets of an aiohttp session, so that all are closed before its event loop ends."""

from __future__ import annotations

import asyncio
import socket
import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

_LOOK_S: Final = 0.002
_LIMIT_S: Final = 2.0


class ClientSockets:
    """Makes the sockets of one session: `TCPConnector(socket_factory=sockets.make)`.

    A connection by TLS takes its leave after `session.close()` has returned, and waits for the server's goodbye; what
    has left the session's pool before, the session no longer knows. A loop that ends then leaves sockets open.
    """

    def __init__(self) -> None:
        self._made: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def make(self, address: Sequence[Any]) -> socket.socket:
        family, kind, protocol, _, _ = address
        made = socket.socket(family, kind, protocol)
        self._made.add(made)
        return made

    async def close(self) -> None:
        """End the connections that are left once the session is closed, and wait until their transports have done so.

        It waits 2 s at most.
        """
        for one in self._open():
            with suppress(OSError):  # not connected, or not any more
                one.shutdown(socket.SHUT_RDWR)
        with suppress(TimeoutError):
            async with asyncio.timeout(_LIMIT_S):
                while self._open():
                    await asyncio.sleep(_LOOK_S)

    def _open(self) -> list[socket.socket]:
        return [one for one in self._made if one.fileno() >= 0]
