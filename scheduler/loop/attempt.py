"""One attempt to place one entity, from pop to the end of its binding."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from scheduler.errors import VaneError
from scheduler.framework.plugin import Plugin
from scheduler.framework.profile import Profile
from scheduler.framework.queued import QueuedEntity
from scheduler.loop.messages import Settle
from scheduler.model.catalog import CatalogObject, ObjectKey
from scheduler.model.pods import PodInfo

Walk = Generator[None, Any, None]
"""The steps to a bind: a generator that yields where it waits, and is sent the answer."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """`began_s` is the monotonic second of the pop."""

    entity: QueuedEntity
    profile: Profile
    began_s: float

    @property
    def pod(self) -> PodInfo:
        return self.entity.pod

    @property
    def scheduler_name(self) -> str:
        return self.profile.scheduler_name


@dataclass(frozen=True, slots=True)
class Placement:
    """An attempt that has found its node; `states` are the plugins' of PreFilter, or what Reserve put there."""

    attempt: Attempt
    node_name: str
    states: Mapping[str, object]

    @property
    def pod(self) -> PodInfo:
        return self.attempt.pod

    @property
    def profile(self) -> Profile:
        return self.attempt.profile

    def state_of(self, plugin: Plugin) -> object:
        return self.states.get(plugin.name)

    def with_state(self, plugin: Plugin, state: object) -> Placement:
        return replace(self, states={**self.states, plugin.name: state})


class LostError(VaneError):
    """The Pod is bound elsewhere or gone, says an answer; its place is given back, and the watch has the last word."""


@dataclass(slots=True)
class Flight:
    """What is known of the way so far.

    waiting_since_s
        When it began to wait at Permit.
    is_past_permit
        From where on no event is kept for it: whatever sends it back counts as an error.
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
    is_past_permit: bool = False
    preparing: str = ""
    awaits_bind: bool = False
    assumed: dict[ObjectKey, CatalogObject] = field(default_factory=dict)
    written: dict[ObjectKey, str] = field(default_factory=dict)
    is_nominated: bool = False
