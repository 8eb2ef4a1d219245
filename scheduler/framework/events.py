"""Cluster events and queueing hints: what may help a refused Pod.

Source: kube-scheduler v1.37 framework/events.go and the EventsToRegister of each plugin.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

from scheduler.model.catalog import CatalogObject
from scheduler.model.objects import Node
from scheduler.model.pods import PodInfo
from scheduler.model.rules import Match


class Resource(enum.StrEnum):
    """What an event is about. AssignedPod: a bound Pod; TargetPod: the queued Pod itself."""

    NODE = "Node"
    ASSIGNED_POD = "AssignedPod"
    TARGET_POD = "TargetPod"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    STORAGE_CLASS = "StorageClass"
    CSI_NODE = "CSINode"
    CSI_DRIVER = "CSIDriver"
    CSI_STORAGE_CAPACITY = "CSIStorageCapacity"
    VOLUME_ATTACHMENT = "VolumeAttachment"
    NAMESPACE = "Namespace"
    SIGNALS = "Signals"
    RULES = "Rules"
    WILDCARD = "*"


class Action(enum.IntFlag):
    """What happened; a node or Pod update is announced once per changed aspect."""

    ADD = enum.auto()
    DELETE = enum.auto()
    UPDATE_NODE_ALLOCATABLE = enum.auto()
    UPDATE_NODE_LABEL = enum.auto()
    UPDATE_NODE_TAINT = enum.auto()
    UPDATE_NODE_CONDITION = enum.auto()
    UPDATE_NODE_ANNOTATION = enum.auto()
    UPDATE_NODE_DECLARED_FEATURE = enum.auto()
    UPDATE_POD_LABEL = enum.auto()
    UPDATE_POD_SCALE_DOWN = enum.auto()
    UPDATE_POD_SCALE_UP = enum.auto()
    UPDATE_POD_TOLERATION = enum.auto()
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = enum.auto()
    UPDATE_OTHER = enum.auto()
    REFRESHED = enum.auto()
    """Vane's own: a rule's verdict may have changed with new samples or a new rule set."""

    UPDATE = (
        UPDATE_NODE_ALLOCATABLE
        | UPDATE_NODE_LABEL
        | UPDATE_NODE_TAINT
        | UPDATE_NODE_CONDITION
        | UPDATE_NODE_ANNOTATION
        | UPDATE_NODE_DECLARED_FEATURE
        | UPDATE_POD_LABEL
        | UPDATE_POD_SCALE_DOWN
        | UPDATE_POD_SCALE_UP
        | UPDATE_POD_TOLERATION
        | UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        | UPDATE_OTHER
    )

    @property
    def label(self) -> str:
        """The name that kube-scheduler gives a single action in the metric label `event`."""
        if self is Action.UPDATE_OTHER:
            return "Update"
        return "".join(word.capitalize() for word in (self.name or "").split("_"))


EVERYONE = Match()
EventObject = Node | PodInfo | CatalogObject


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """One event with the object before and after, as far as it has them.

    `label` is the value of the metric label `event`, e.g. NodeAdd, AssignedPodDelete, SignalsRefreshed.
    `rules` are the rules whose verdict changed, for SIGNALS and RULES, as far as the Pods of `concerned` read them.
    """

    resource: Resource
    action: Action
    label: str
    old: EventObject | None = None
    new: EventObject | None = None
    rules: frozenset[str] = frozenset()
    concerned: Match = EVERYONE

    @classmethod
    def of(
        cls, resource: Resource, action: Action, old: EventObject | None = None, new: EventObject | None = None
    ) -> ClusterEvent:
        """Make an event with the label `<Resource><Action>`, e.g. NodeUpdateNodeTaint."""
        return cls(resource, action, f"{resource.value}{action.label}", old, new)

    @property
    def is_wildcard(self) -> bool:
        return self.resource is Resource.WILDCARD


class QueueingHint(enum.Enum):
    QUEUE = "Queue"
    SKIP = "Skip"


SCHEDULE_ATTEMPT_FAILURE = "ScheduleAttemptFailure"
BACKOFF_COMPLETE = "BackoffComplete"
POP_FROM_BACKOFF = "PopFromBackoffQ"
FORCE_ACTIVATE = "ForceActivate"
UNSCHEDULED_POD_ADD = "UnscheduledPodAdd"
UNSCHEDULABLE_TIMEOUT = ClusterEvent(Resource.WILDCARD, Action(0), "UnschedulableTimeout")
SIGNALS_REFRESHED = "SignalsRefreshed"
RULE_SOFTENED = "RuleSoftened"
RULES_RELOADED = "RulesReloaded"


def signals_refreshed(rules: frozenset[str], concerned: Match = EVERYONE) -> ClusterEvent:
    """Return the event that new samples, or time, changed the verdicts of `rules` for some Pods."""
    return ClusterEvent(Resource.SIGNALS, Action.REFRESHED, SIGNALS_REFRESHED, rules=rules, concerned=concerned)


def rules_reloaded(rules: frozenset[str]) -> ClusterEvent:
    """Return the event that `rules` were changed or taken away by a reload."""
    return ClusterEvent(Resource.RULES, Action.REFRESHED, RULES_RELOADED, rules=rules)


HintFunction = Callable[[PodInfo, ClusterEvent], QueueingHint]


def always_queue(_pod: PodInfo, _event: ClusterEvent) -> QueueingHint:
    return QueueingHint.QUEUE


@dataclass(frozen=True, slots=True)
class EventInterest:
    """A plugin's wish to hear of events when it has refused a Pod; a hint that raises counts as QUEUE."""

    resource: Resource
    actions: Action
    hint: HintFunction = always_queue

    def covers(self, event: ClusterEvent) -> bool:
        if event.is_wildcard:
            return True
        return event.resource is self.resource and bool(event.action & self.actions)
