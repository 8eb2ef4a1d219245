"""One Pod on its way from its decision to its bind."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from scheduler.errors import VaneError
from scheduler.loop.attempt import Placement
from scheduler.loop.messages import Settle
from scheduler.model.catalog import CatalogObject, ObjectKey

Walk = Generator[None, Any, None]
"""Steps that yield where they wait, and are sent the answer."""


class LostError(VaneError):
    """The Pod is bound elsewhere or gone: nothing is to be done but to forget it."""


@dataclass(slots=True)
class Flight:
    """What is known of the way so far.

    waiting_since_s
        When it began to wait at Permit.
    preparing
        The PreBind plugin that it is at, "" before and after.
    assumed
        Objects of the catalog that others see as Reserve wants them, and that are not written yet.
    written
        The version of each object that was written for it.
    is_nominated
        Whether `status.nominatedNodeName` was written for it.
    """

    placement: Placement
    steps: Walk = field(init=False)
    settle: Settle = field(init=False)
    waiting_since_s: float | None = None
    preparing: str = ""
    awaits_bind: bool = False
    assumed: dict[ObjectKey, CatalogObject] = field(default_factory=dict)
    written: dict[ObjectKey, str] = field(default_factory=dict)
    is_nominated: bool = False
