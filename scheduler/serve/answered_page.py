"""What every page is that the deciding thread answers: a query, the slices of the answer, the body made of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Generic, Self, TypeVar

from scheduler.errors import VaneError
from scheduler.loop.pages.query import PageQuery
from scheduler.signals.asking.query_health import QueryHealth

ANSWER_LIMIT_S: Final = 2.0
"""How long a page waits for its source; kubelet gives a probe 1 s unless told otherwise, Prometheus a scrape 10 s."""

Query = TypeVar("Query", bound=PageQuery)
Body = TypeVar("Body")


@dataclass(frozen=True, slots=True)
class OwnFigures:
    """What the process that serves the pages knows itself.

    metrics
        Pages in Prometheus' text format by process; of the deciding one only what need not be asked for.
    query_health
        By signal, of those that are asked for.
    """

    metrics: Callable[[], dict[str, bytes]]
    query_health: Callable[[], Mapping[str, QueryHealth]]


class PageRefused(VaneError):
    """What is asked for cannot be shown: 400 where the call is wrong, 404 where it names what is not known."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class AnsweredPage(ABC, Generic[Query, Body]):
    """One page for one request: its query is asked, the slices of the answer are added, the body is sent.

    limit_s
        How long the request waits for all of that.
    shared_s
        Where not None, requests with equal queries share one page while it is filled, and for so many seconds after.
    """

    limit_s: ClassVar[float] = ANSWER_LIMIT_S
    shared_s: ClassVar[float | None] = None

    def __init__(self, query: Query) -> None:
        self.query = query

    @abstractmethod
    def add(self, slice_: bytes) -> None:
        """Take one slice of the answer, or the whole answer where it has no slices."""

    @abstractmethod
    def body(self, own: OwnFigures) -> Body:
        """Return what to send; PageRefused where what is asked for is not known. May be called more than once."""


class RoutedPage(AnsweredPage[Query, Body]):
    """A page with a path of its own; a body in pieces is compressed for who takes that."""

    path: ClassVar[str]
    content_type: ClassVar[str] = "application/json"

    @classmethod
    @abstractmethod
    def read(cls, parameters: Mapping[str, str]) -> Self:
        """Return the page that is asked for; PageRefused where the call is wrong."""
