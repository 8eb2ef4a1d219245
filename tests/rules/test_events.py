"""A Pod that was refused for how far the Pods that it calls are comes back when these come, go or change."""

from __future__ import annotations

import msgspec
import pytest

from scheduler.framework.events import Action, ClusterEvent, Resource
from scheduler.model.pods import PodInfo
from scheduler.model.rules import Calls, Rule, RuleFilter, RuleSet
from scheduler.rules.events import may_free
from tests.builders import make_node, make_pod
from tests.signals.columns.keyed_world import CART, RTT, cart

RULES = RuleSet({"rtt": RTT}, (Rule("near", "rtt", filter=RuleFilter(max=5.0), calls=Calls(CART)),))
RENAMED = make_pod("cart-0", labels={"app": "other"}, node="a")
ELSEWHERE = cart("a", namespace="other")


def leaving() -> PodInfo:
    pod = cart("a").pod
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp="2024-01-01T00:00:00Z")
    return PodInfo(msgspec.structs.replace(pod, metadata=metadata))


@pytest.mark.parametrize(
    ("action", "old", "new", "frees"),
    [
        (Action.ADD, None, cart("a"), True),
        (Action.DELETE, cart("a"), None, True),
        (Action.DELETE, leaving(), None, True),
        (Action.UPDATE_POD_LABEL, cart("a"), RENAMED, True),
        (Action.UPDATE_POD_LABEL, RENAMED, cart("a"), True),
        (Action.UPDATE_POD_SCALE_DOWN, cart("a"), cart("a"), False),
        (Action.ADD, None, ELSEWHERE, False),
        (Action.DELETE, make_pod("web", node="a"), None, False),
    ],
)
def test_which_pods_may_free(action: Action, old: PodInfo | None, new: PodInfo | None, frees: bool) -> None:
    event = ClusterEvent.of(Resource.ASSIGNED_POD, action, old, new)
    assert may_free(RULES, {"near"}, make_pod(), event) is frees
    assert not may_free(RULES, {"another"}, make_pod(), event)


def test_a_named_domain_and_nodes_change_with_no_pod() -> None:
    named = RuleSet({"rtt": RTT}, (Rule("near", "rtt", filter=RuleFilter(max=5.0), calls=Calls(pod_label="zone")),))
    assert not may_free(
        named, {"near"}, make_pod(), ClusterEvent.of(Resource.ASSIGNED_POD, Action.ADD, None, cart("a"))
    )
    event = ClusterEvent.of(Resource.NODE, Action.DELETE, make_node("a"), None)
    assert not may_free(RULES, {"near"}, make_pod(), event)
