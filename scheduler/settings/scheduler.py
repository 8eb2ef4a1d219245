"""What a KubeSchedulerConfiguration v1 says of scheduling, as data; `kube_scheduler` reads it.

What the names of plugins mean is for `app/profiles.py`, which is handed the place of each, so that its messages can
say where.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler.strict_yaml.document import Places

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
KIND: Final = "KubeSchedulerConfiguration"
MULTI_POINT: Final = "multiPoint"
ALL: Final = "*"
"""Stands among `disabled` for every plugin of the default chain."""

POINTS: Final = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
)
MAX_WEIGHT: Final = 100


@dataclass(frozen=True, slots=True)
class PluginLine:
    """One item of `enabled` or `disabled`; `place` says where its name stands: file, line, column and path."""

    name: str
    place: str
    weight: int | None = None


@dataclass(frozen=True, slots=True)
class PluginSet:
    """What a profile says of one extension point."""

    enabled: tuple[PluginLine, ...] = ()
    disabled: tuple[PluginLine, ...] = ()


@dataclass(frozen=True, slots=True)
class PluginConfig:
    """The arguments of one plugin as plain data; `places` has the place of each value below `args`."""

    name: str
    place: str
    args: Mapping[str, Any] = field(default_factory=dict, hash=False)
    places: Places = field(default=Places(), hash=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ProfileSettings:
    """One profile; without a name, which only a sole one may be, it has that of the settings."""

    scheduler_name: str = ""
    place: str = ""
    plugins: tuple[tuple[str, PluginSet], ...] = ()
    plugin_config: tuple[PluginConfig, ...] = ()

    def at(self, point: str) -> PluginSet:
        return dict(self.plugins).get(point, PluginSet())


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """What a KubeSchedulerConfiguration says of scheduling; without profiles there is one, of the default chain.

    `notices` tell of fields that have no effect in Vane, with their places.
    """

    profiles: tuple[ProfileSettings, ...] = ()
    initial_backoff_s: float = 1.0
    max_backoff_s: float = 10.0
    notices: tuple[str, ...] = ()
