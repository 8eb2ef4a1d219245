"""PluginArgs: the base of what `pluginConfig` may hold for a plugin."""

from __future__ import annotations

import msgspec


class PluginArgs(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A field `max_pods: int = 10` is `maxPods` in configuration; what has no field is refused with its place.

    A ValueError in `__post_init__` is told with its place too. A subclass says `frozen=True` itself.
    """
