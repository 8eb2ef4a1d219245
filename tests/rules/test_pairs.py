"""What Pods read of pairs of domains, and which changes of called Pods bring back whom that had refused."""

from __future__ import annotations

import msgspec
import pytest

from scheduler.framework.events import Action, ClusterEvent, Resource
from scheduler.model.pods import PodInfo
from scheduler.model.rules import (
    Calls,
    FilterMissing,
    Rule,
    RuleFilter,
    RuleSet,
)
from scheduler.plugins.signals import SignalFilter
from scheduler.rules.compiled import CompiledRules
from tests.builders import compiled, make_node, make_pod
from tests.signals.columns.keyed_world import (
    CART,
    FALLING,
    PAIR_SAMPLES,
    RTT,
    Kept,
    cart,
    pairs,
)


def over_pairs(limits: RuleFilter | None = None, calls: Calls = Calls(CART)) -> Rule:  # noqa: B008
    return Rule("r", "rtt", filter=limits, score=FALLING, calls=calls)


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
    assert CompiledRules(RULES).may_free({"near"}, make_pod(), event) is frees
    assert not CompiledRules(RULES).may_free({"another"}, make_pod(), event)


def test_a_named_domain_and_nodes_change_with_no_pod() -> None:
    named = RuleSet({"rtt": RTT}, (Rule("near", "rtt", filter=RuleFilter(max=5.0), calls=Calls(pod_label="zone")),))
    assert not CompiledRules(named).may_free(
        {"near"}, make_pod(), ClusterEvent.of(Resource.ASSIGNED_POD, Action.ADD, None, cart("a"))
    )
    event = ClusterEvent.of(Resource.NODE, Action.DELETE, make_node("a"), None)
    assert not CompiledRules(RULES).may_free({"near"}, make_pod(), event)


class TestPairs:
    SAMPLES = PAIR_SAMPLES

    def test_a_node_has_the_mean_over_the_called_pods(self) -> None:
        kept = Kept(over_pairs(), pods=[cart("a", 0), cart("b", 1), cart("c", 2)])
        kept.publish(RTT, self.SAMPLES)
        # From z1: two of z1, one of z2; from z3 only the way to z1 is measured; e has no zone.
        expected = [(1 + 1 + 20) / 3, (1 + 1 + 20) / 3, (22 + 22 + 2) / 3, 60.0, None]
        assert kept.values(make_pod()) == [value if value is None else pytest.approx(value) for value in expected]

    def test_called_pods_are_of_the_namespace_unless_all_are_meant(self) -> None:
        pods = [cart("a", 0), cart("c", 1, namespace="other")]
        near = Kept(over_pairs(), pods=pods)
        near.publish(RTT, self.SAMPLES)
        assert near.values(make_pod()) == [1.0, 1.0, 22.0, 60.0, None]
        everywhere = Kept(over_pairs(calls=Calls(CART, all_namespaces=True)), pods=pods)
        everywhere.publish(RTT, self.SAMPLES)
        assert everywhere.values(make_pod())[0] == pytest.approx(10.5)

    def test_a_called_pod_that_is_being_deleted_does_not_count(self) -> None:
        leaving = cart("c", 1).pod
        metadata = msgspec.structs.replace(leaving.metadata, deletion_timestamp="2024-01-01T00:00:00Z")
        kept = Kept(over_pairs(), pods=[cart("a"), PodInfo(msgspec.structs.replace(leaving, metadata=metadata))])
        kept.publish(RTT, self.SAMPLES)
        assert kept.values(make_pod())[:3] == [1.0, 1.0, 22.0]

    def test_values_follow_the_called_pods(self) -> None:
        kept = Kept(over_pairs(), pods=[cart("a")])
        kept.publish(RTT, self.SAMPLES)
        snapshot, another = kept.snapshot(), cart("c", 1)
        before = kept.values(make_pod())
        with snapshot.trial() as trial:
            trial.place(another, 2)
            moved = compiled(kept.rules.rules[0], snapshot).reading.column(make_pod(), snapshot)
            assert moved is not None
            assert moved.values[0] == pytest.approx(10.5)
        assert kept.values(make_pod()) == before == [1.0, 1.0, 22.0, 60.0, None]

    def test_a_label_of_the_pod_may_name_the_domain(self) -> None:
        kept = Kept(over_pairs(calls=Calls(pod_label="calls-zone")))
        kept.publish(RTT, self.SAMPLES)
        assert kept.values(make_pod(labels={"calls-zone": "z2"})) == [20.0, 20.0, 2.0, None, None]
        assert kept.values(make_pod(labels={"calls-zone": "z9"})) == [None] * 5
        assert not CompiledRules(kept.rules).rules[0].concerns(make_pod())

    def test_a_strict_rule_waits_for_nobody_who_is_not_there(self) -> None:
        strict = RuleFilter(max=50.0, max_clear=50.0, missing=FilterMissing.REJECT)
        kept = Kept(over_pairs(strict))
        kept.publish(RTT, self.SAMPLES)
        assert kept.refused(make_pod()) == ""
        kept.state.place(cart("d"), 3)
        assert kept.refused(make_pod()) == "abcde", "nobody measures the way to z3"

    def test_one_pair_has_plain_hysteresis(self) -> None:
        kept = Kept(over_pairs(RuleFilter(max=50.0, max_clear=20.0)), pods=[cart("a")])
        kept.publish(RTT, self.SAMPLES)
        assert kept.refused(make_pod()) == "d"
        kept.publish(RTT, pairs(z1z1=40.0, z2z1=20.0, z3z1=40.0))
        assert kept.refused(make_pod()) == "d"
        kept.publish(RTT, pairs(z1z1=40.0, z2z1=20.0, z3z1=20.0))
        assert kept.refused(make_pod()) == ""

    @pytest.mark.parametrize(("clear", "refused"), [(50.0, ""), (40.0, "ab")])
    def test_several_pairs_are_refused_for_their_mean(self, clear: float, refused: str) -> None:
        """From z1 one of two pairs is tripped, so that the limit for their mean, 50, lies halfway to clear."""
        kept = Kept(over_pairs(RuleFilter(max=58.0, max_clear=clear)), pods=[cart("a", 0), cart("c", 1)])
        kept.publish(RTT, pairs(z1z1=10.0, z1z2=90.0, z2z1=1.0, z2z2=1.0))
        assert kept.refused(make_pod()) == refused

    def test_a_change_of_values_between_tripped_pairs_may_free_nodes(self) -> None:
        kept = Kept(over_pairs(RuleFilter(max=50.0, max_clear=50.0)), pods=[cart("a", 0), cart("c", 1)])
        kept.publish(RTT, pairs(z1z1=10.0, z1z2=95.0))
        assert kept.refused(make_pod()) == "ab"
        assert kept.publish(RTT, pairs(z1z1=1.0, z1z2=95.0)) == {"r"}
        assert kept.refused(make_pod()) == ""

    def test_preemption_counts_the_called_pods_as_they_leave(self) -> None:
        kept = Kept(over_pairs(RuleFilter(max=50.0, max_clear=50.0)), pods=[cart("a", 0), cart("c", 1)])
        kept.publish(RTT, pairs(z1z1=10.0, z1z2=95.0))
        plugin, snapshot = SignalFilter(), kept.snapshot()
        assert plugin.tally(None, make_pod(), snapshot, [cart("a", 0)]) is None
        assert plugin.tally(None, make_pod(), snapshot, [make_pod("other")]) is not None
