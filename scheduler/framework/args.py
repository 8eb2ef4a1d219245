"""PluginArgs: the base of what `pluginConfig` may hold for a plugin."""

from __future__ import annotations

import msgspec


class PluginArgs(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A field `max_pods: int = 10` is `maxPods` in configuration; an unknown field is refused with its place.

    A ValueError in `__post_init__` is reported with its place too. A subclass says `frozen=True` itself.
    """
