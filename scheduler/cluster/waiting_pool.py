"""WaitingPool: entities that only an event, an update or the flush brings back."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from scheduler.framework.queued import QueuedEntity


class WaitingPool:
    """Unschedulable and gated entities, grouped by all that decides whether an event concerns them.

    5,000 replicas refused by the same plugins are one group: an event asks one hint, not 5,000. That is right
    because Pods of one class must be treated alike by every plugin (`PodInfo.class_key`).
    """

    def __init__(self) -> None:
        self._group_of: dict[str, Hashable] = {}
        self._groups: dict[Hashable, dict[str, QueuedEntity]] = {}

    def __len__(self) -> int:
        return len(self._group_of)

    def __contains__(self, uid: str) -> bool:
        return uid in self._group_of

    def __iter__(self) -> Iterator[QueuedEntity]:
        return (entity for group in list(self._groups.values()) for entity in list(group.values()))

    @property
    def n_gated(self) -> int:
        return sum(len(group) for group in self._groups.values() if next(iter(group.values())).gated_by)

    def get(self, uid: str) -> QueuedEntity | None:
        key = self._group_of.get(uid)
        return None if key is None else self._groups[key][uid]

    def add(self, entity: QueuedEntity) -> bool:
        """Add an entity, or regroup one that has changed; return whether it is new here."""
        is_new = self.remove(entity.uid) is None
        key = _group_key(entity)
        self._group_of[entity.uid] = key
        self._groups.setdefault(key, {})[entity.uid] = entity
        return is_new

    def remove(self, uid: str) -> QueuedEntity | None:
        key = self._group_of.pop(uid, None)
        if key is None:
            return None
        group = self._groups[key]
        entity = group.pop(uid)
        if not group:
            del self._groups[key]
        return entity

    def groups(self) -> list[list[QueuedEntity]]:
        """Return the groups, each at least one entity, safe to change the pool over."""
        return [list(group.values()) for group in self._groups.values()]


def _group_key(entity: QueuedEntity) -> Hashable:
    pods = tuple((member.pod.spec.scheduler_name, member.class_key) for member in entity.members)
    return (pods, entity.rejected_by, entity.rejected_rules, entity.gated_by, entity.waits_for_update)
