from __future__ import annotations

import asyncio
from collections.abc import Sequence

from scheduler.loop.pages.signal_listing import SignalsQuery
from scheduler.serve.calls import PermitCall
from scheduler.serve.decisions import DecisionsQuery
from scheduler.serve.pages import Check


class Source:
    """A PageSource whose answers are set by the test; an exception is raised, None never answers."""

    def __init__(self) -> None:
        self.page: bytes | BaseException | None = b"# TYPE a gauge\na 1.0\n"
        self.checks: list[Check] | BaseException | None = [Check("ping", True, "")]
        self.pieces: list[bytes] = []
        self.asked: list[str] = []
        self.queries: list[DecisionsQuery] = []
        self.signals_page = b'{"signals":[]}'
        self.nodes: set[str] = set()
        self.signal_queries: list[SignalsQuery] = []
        self.calls: list[PermitCall] = []
        self.waiting: bool | None = True

    async def metrics(self) -> bytes:
        if self.page is None:
            await _stuck()
        if isinstance(self.page, BaseException):
            raise self.page
        return self.page or b""

    async def resources(self) -> Sequence[bytes]:
        return self.pieces

    async def health(self, kind: str) -> Sequence[Check]:
        self.asked.append(kind)
        if self.checks is None:
            await _stuck()
        if isinstance(self.checks, BaseException):
            raise self.checks
        return self.checks or []

    async def decisions(self, asked: DecisionsQuery) -> bytes:
        self.queries.append(asked)
        return b'{"next":7,"decisions":[]}'

    async def signals(self, asked: SignalsQuery) -> bytes | str:
        self.signal_queries.append(asked)
        if asked.node and asked.node not in self.nodes:
            return f"no node {asked.node!r}"
        return self.signals_page

    async def permit(self, call: PermitCall) -> bool:
        self.calls.append(call)
        if self.waiting is None:
            await _stuck()
        return bool(self.waiting)


async def _stuck() -> None:
    """Wait longer than any page does, and don't end when told to."""
    for _ in range(2):
        try:
            await asyncio.sleep(4)
        except asyncio.CancelledError:
            continue
