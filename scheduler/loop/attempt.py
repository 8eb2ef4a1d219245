"""One attempt to place one entity, from pop to the end of its binding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from scheduler.framework.plugin import Plugin
from scheduler.framework.profile import Profile
from scheduler.framework.queued import QueuedEntity
from scheduler.model.pods import PodInfo


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
