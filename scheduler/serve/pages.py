"""Which pages there are, and what they are made of. Nothing here speaks HTTP: both processes know the queries."""

from __future__ import annotations

from typing import Any, Final, Protocol

from scheduler.loop.messages import PermitCall
from scheduler.loop.pages.decisions import DecisionsQuery
from scheduler.loop.pages.metrics import MetricsQuery
from scheduler.loop.pages.pages import HealthQuery
from scheduler.loop.pages.resources import ResourcesQuery
from scheduler.loop.pages.signals import SignalsQuery
from scheduler.serve.answered_page import AnsweredPage, Body, RoutedPage
from scheduler.serve.decisions import DecisionsPage
from scheduler.serve.metrics import MetricsPage
from scheduler.serve.resources import ResourcesPage
from scheduler.serve.signals import SignalsPage

PAGES: Final[tuple[type[RoutedPage[Any, Any]], ...]] = (DecisionsPage, MetricsPage, ResourcesPage, SignalsPage)
"""Each page with a path of its own."""

AnyQuery = DecisionsQuery | HealthQuery | MetricsQuery | ResourcesQuery | SignalsQuery
"""What pages ask the deciding thread: the wire reads these and no others."""


class PageSource(Protocol):
    """What pages are made of; called in the server's event loop, so nothing here may block."""

    async def fill(self, page: AnsweredPage[Any, Body]) -> Body:
        """Have the page's query answered, and return the page's body."""
        ...

    async def permit(self, call: PermitCall) -> bool:
        """Carry a call out, and return whether its Pod was waiting."""
        ...
