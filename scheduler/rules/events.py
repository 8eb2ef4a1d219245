"""Which changes of Pods and nodes may end a refusal by a rule: those that no sample will tell of.

They are what a built-in signal counts, and, for a signal by pairs of domains, who is called.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from scheduler.framework.events import Action, ClusterEvent, Resource
from scheduler.model.pods import PodInfo
from scheduler.model.rules import BuiltIn, BuiltInKind, ByKind, Rule, RuleFilter, RuleSet, Signal, Unit
from scheduler.rules.built_in import counted_pods
from scheduler.rules.keyed import called_pods

POD_ACTIONS = (
    Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_SCALE_DOWN | Action.UPDATE_POD_SCALE_UP
)
NODE_ACTIONS = Action.DELETE | Action.UPDATE_NODE_ALLOCATABLE
"""Beyond a new node and new labels, which may free a Pod from any rule."""


def may_free(rules: RuleSet, refusing: Collection[str], pod: PodInfo, event: ClusterEvent) -> bool:
    """Return whether the event may end what one of the `refusing` rules, by name, has said of the Pod."""
    if event.resource not in (Resource.ASSIGNED_POD, Resource.NODE):
        return False
    for rule in rules.rules:
        signal = rules.signals.get(rule.signal) if rule.name in refusing else None
        if signal is not None and _is_called(rule, pod, event.old) != _is_called(rule, pod, event.new):
            return True
        if signal is None or signal.built_in is None or rule.filter is None:
            continue
        if event.resource is Resource.NODE:
            if _may_node_free(signal, signal.built_in, event.action):
                return True
        elif _may_pod_free(rule.filter, signal.built_in, pod, event):
            return True
    return False


def _is_called(rule: Rule, pod: PodInfo, other: object) -> bool:
    """Return whether one version of another Pod is among those that the Pod calls.

    One that is being deleted is not called any more; nothing else tells of that than its end.
    """
    match = called_pods(rule, pod) if isinstance(other, PodInfo) else None
    return match is not None and isinstance(other, PodInfo) and replace(match, is_alive=False).holds(other)


def _may_node_free(signal: Signal, built_in: BuiltIn, action: Action) -> bool:
    is_of_room = built_in.kind is BuiltInKind.ALLOCATABLE or signal.unit in (Unit.RATIO, Unit.PERCENT)
    if action & Action.UPDATE_NODE_ALLOCATABLE:
        return is_of_room
    return bool(action & Action.DELETE) and signal.by is not ByKind.NODE


def _may_pod_free(limits: RuleFilter, built_in: BuiltIn, pod: PodInfo, event: ClusterEvent) -> bool:
    before, after = _counts(built_in, pod, event.old), _counts(built_in, pod, event.new)
    is_less, is_more = before and not after, after and not before
    if built_in.kind is BuiltInKind.REQUESTED and before and after:
        is_less = bool(event.action & Action.UPDATE_POD_SCALE_DOWN)
        is_more = bool(event.action & Action.UPDATE_POD_SCALE_UP)
    return (is_less and limits.max is not None) or (is_more and limits.min is not None)


def _counts(built_in: BuiltIn, pod: PodInfo, other: object) -> bool:
    """Return whether one version of another Pod is in the value that the Pod reads."""
    if not isinstance(other, PodInfo) or built_in.kind is BuiltInKind.ALLOCATABLE:
        return False
    if built_in.kind is not BuiltInKind.COUNT:
        return True
    match = counted_pods(built_in, pod)
    return match is not None and match.holds(other)
