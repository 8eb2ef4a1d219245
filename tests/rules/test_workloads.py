"""What Pods read of their own workload, through the real ingest, the store and the plugins."""

from __future__ import annotations

import pytest

from scheduler.model.pods import PodInfo
from scheduler.model.rules import (
    ByKind,
    FilterMissing,
    Rule,
    RuleFilter,
    RuleSet,
    Signal,
    WorkloadKey,
)
from scheduler.rules.compiled import CompiledRules
from scheduler.signals.asking.asker import SignalAsker
from tests.builders import compiled, make_pod
from tests.signals.columns.keyed_world import (
    FALLING,
    P99,
    Kept,
    workload,
)


class TestWorkloads:
    RULE = Rule("r", "p99", score=FALLING, pod_label="app.kubernetes.io/name")

    @staticmethod
    def of(app: str, namespace: str = "shop") -> PodInfo:
        return make_pod(namespace=namespace, labels={"app.kubernetes.io/name": app})

    def test_a_pod_reads_its_own_workload(self) -> None:
        kept = Kept(self.RULE)
        kept.publish(P99, [*workload("shop", "cart", a=10, c=30), *workload("test", "cart", b=20)])
        assert kept.values(self.of("cart")) == [10, None, 30, None, None]
        assert kept.values(self.of("cart", "test")) == [None, 20, None, None, None]
        assert kept.scores(self.of("cart")) == [90, 80, 70, 80, 80]

    def test_a_new_workload_is_neutral_and_may_go_anywhere(self) -> None:
        strict = RuleFilter(max=50.0, max_clear=50.0, missing=FilterMissing.REJECT)
        kept = Kept(Rule("r", "p99", filter=strict, score=FALLING, pod_label="app.kubernetes.io/name"))
        kept.publish(P99, workload("shop", "cart", a=10, c=90))
        assert kept.scores(self.of("new")) == [50.0] * 5
        assert kept.refused(self.of("new")) == ""
        assert not CompiledRules(kept.rules).rules[0].concerns(make_pod(namespace="shop"))
        assert kept.refused(make_pod(namespace="shop")) == ""
        assert kept.refused(self.of("cart")) == "bcde"

    def test_without_an_answer_a_strict_rule_refuses_whoever_has_a_workload(self) -> None:
        strict = RuleFilter(max=50.0, max_clear=50.0, missing=FilterMissing.REJECT)
        kept = Kept(Rule("r", "p99", filter=strict, pod_label="app.kubernetes.io/name"))
        assert kept.refused(self.of("cart")) == "abcde"
        assert kept.refused(make_pod()) == ""

    def test_trips_belong_to_a_workload_on_a_node(self) -> None:
        rule = Rule("r", "p99", filter=RuleFilter(max=50.0, max_clear=20.0), pod_label="app.kubernetes.io/name")
        kept = Kept(rule)
        kept.publish(P99, [*workload("shop", "cart", a=60, b=30), *workload("shop", "web", a=30, b=60)])
        kept.publish(P99, [*workload("shop", "about", a=30), *workload("shop", "cart", a=30, b=30)])
        assert kept.refused(self.of("cart")) == "a"
        assert kept.refused(self.of("about")) == ""
        kept.publish(P99, [*workload("shop", "cart", a=30, b=30, c=30), *workload("shop", "web", a=30, b=30)])
        assert kept.refused(self.of("cart")) == "a"
        assert kept.refused(self.of("web")) == "", "it was not measured in between"

    def test_all_namespaces_are_one_without_a_label_for_it(self) -> None:
        anywhere = Signal("p99", "p99", by=ByKind.WORKLOAD, workload=WorkloadKey("app"))
        kept = Kept(self.RULE)
        kept.signals["p99"] = anywhere
        kept.store.set_rules(RuleSet({"p99": anywhere}, (self.RULE,), 2))
        kept.askers["p99"] = SignalAsker(anywhere, kept.clock, lambda: 0.5)
        kept.publish(anywhere, workload("test", "cart", a=10))
        assert kept.values(self.of("cart")) == [10, None, None, None, None]

    def test_pods_of_one_workload_share_their_arrays(self) -> None:
        kept = Kept(self.RULE)
        kept.publish(P99, workload("shop", "cart", a=10))
        first, second = kept.snapshot(), kept.snapshot()
        one, other = (
            compiled(self.RULE, first).reading.column(self.of("cart"), first),
            compiled(self.RULE, second).reading.column(self.of("cart"), second),
        )
        assert one is not None
        assert other is not None
        assert one.values is other.values
        with pytest.raises(ValueError, match="read-only"):
            one.values[0] = 1.0
