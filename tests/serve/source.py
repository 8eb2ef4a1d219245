from __future__ import annotations

import asyncio
from typing import Any

from scheduler.loop.messages import PermitCall
from scheduler.loop.pages.decisions import DecisionsQuery
from scheduler.loop.pages.metrics import MetricsQuery
from scheduler.loop.pages.pages import HealthQuery
from scheduler.loop.pages.resources import ResourcesQuery
from scheduler.loop.pages.signals import SignalsQuery
from scheduler.serve.answered_page import AnsweredPage, PageRefused
from scheduler.serve.health import Check


class Source:
    """A PageSource whose answers are set by the test; an exception is raised, None never answers."""

    def __init__(self) -> None:
        self.page: bytes | BaseException | None = b"# TYPE a gauge\na 1.0\n"
        self.checks: list[Check] | BaseException | None = [Check("ping", True, "")]
        self.pieces: list[bytes] = []
        self.asked: list[str] = []
        self.queries: list[DecisionsQuery] = []
        self.signals_page = b'{"signals":[]}\n'
        self.nodes: set[str] = set()
        self.signal_queries: list[SignalsQuery] = []
        self.calls: list[PermitCall] = []
        self.waiting: bool | None = True

    async def fill(self, page: AnsweredPage[Any, Any]) -> Any:
        match page.query:
            case MetricsQuery():
                return await _told(self.page)
            case ResourcesQuery():
                return self.pieces
            case HealthQuery(kind=kind):
                self.asked.append(kind)
                return await _told(self.checks)
            case DecisionsQuery() as query:
                self.queries.append(query)
                return b'{"next":7,"decisions":[]}\n'
            case SignalsQuery() as query:
                self.signal_queries.append(query)
                if query.node and query.node not in self.nodes:
                    raise PageRefused(f"no node {query.node!r}", 404)
                return self.signals_page
        raise AssertionError(f"nobody asks {page.query}")

    async def permit(self, call: PermitCall) -> bool:
        self.calls.append(call)
        return bool(await _told(self.waiting))


async def _told(answer: object | BaseException | None) -> Any:
    if answer is None:
        await _stuck()
    if isinstance(answer, BaseException):
        raise answer
    return answer


async def _stuck() -> None:
    """Wait longer than any page does, and don't end when told to."""
    for _ in range(2):
        try:
            await asyncio.sleep(4)
        except asyncio.CancelledError:
            continue
