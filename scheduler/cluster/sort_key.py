"""SortKey: asks the QueueSort plugin so that none of its answers can break a heap."""

from __future__ import annotations

from typing import Any

from scheduler.framework.plugin import QueueSortPlugin
from scheduler.framework.plugin_answers import raised, wrong
from scheduler.framework.queued import QueuedEntity

_KINDS = {int: "a number", float: "a number", bool: "a number", str: "a text", bytes: "bytes"}
_FIRST = (0,)


class SortKey:
    """Keys that compare with each other: tuples with the same kinds of values in the same places.

    An entity without such a key gets a `fault` and comes first, so that its attempt fails at once.
    """

    def __init__(self, plugin: QueueSortPlugin) -> None:
        self._plugin = plugin
        self._kinds: list[str | None] | None = None

    def __call__(self, entity: QueuedEntity) -> tuple[Any, ...]:
        try:
            key: Any = self._plugin.sort_key(entity)
        except Exception as error:  # noqa: BLE001 - a plugin's fault fails this Pod's attempt only
            entity.fault = raised(self._plugin, "QueueSort", error)
            return _FIRST
        kinds = [_KINDS.get(type(value)) for value in key] if type(key) is tuple else None
        # NaN, which alone is unequal to itself, is neither before nor after another number.
        if not kinds or None in kinds or any(value != value for value in key):
            return self._wrong(entity, key, "a tuple of numbers, texts or bytes, none of them NaN")
        if self._kinds is None:
            self._kinds = kinds
        elif kinds != self._kinds:
            return self._wrong(entity, key, f"a tuple of {', '.join(map(str, self._kinds))} as before")
        return (1, *key)

    def _wrong(self, entity: QueuedEntity, key: object, expected: str) -> tuple[Any, ...]:
        entity.fault = wrong(self._plugin, "QueueSort", "", key, expected)
        return _FIRST
