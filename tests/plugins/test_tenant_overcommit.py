"""TenantOvercommit: exact at the bound, safe without samples, silent where nobody publishes anything."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from scheduler.decision.decide import decide
from scheduler.framework.events import Action, ClusterEvent, QueueingHint, Resource
from scheduler.framework.status import SKIP
from scheduler.model.objects import Node
from scheduler.model.pods import PodInfo
from scheduler.model.real_allocatable import ANNOTATION
from scheduler.model.rules import Effect, EffectKind, FilterMissing, Rule, RuleFilter, RuleSet, Signal, Tenant, Unit
from scheduler.model.signals import SignalColumn, SignalTable
from scheduler.model.snapshot import Snapshot
from scheduler.plugins.tenant_overcommit import TenantOvercommit
from tests.builders import cluster_of, default_profile, make_node, make_pod, object_of
from tests.plugins.run import refusals

UNSCHEDULABLE, UNRESOLVABLE = "Unschedulable", "UnschedulableAndUnresolvable"
BOTH = ("cpu", "memory")
USE = Signal("use", "use", interval_s=15.0, max_age_s=60.0)
BOUND = Rule("tenant shop, use", "use", filter=RuleFilter(max=0.8, max_clear=0.8, missing=FilterMissing.REJECT))
SHOP = Tenant("shop", ("shop",), per_mille=1050, resources=BOTH)
BOUNDED = Tenant("shop", ("shop",), per_mille=1050, resources=BOTH, bounds=(BOUND,))
SHORT = 'node(s) had too little real cpu for tenant "shop"'
HELD_BACK = f"{SHORT} without overcommit, whose bounds did not hold"
NOBODY = "node(s) had too little real cpu for pods without a tenant"


def node(real: str | None = '{"cpu": "8"}', name: str = "n", **fields: str) -> Node:
    annotations = {} if real is None else {ANNOTATION: real}
    return make_node(name, annotations=annotations, extended={"cpu": "10", "memory": "40Gi"} | fields)


def world(
    nodes: Sequence[Node],
    pods: Sequence[PodInfo] = (),
    tenants: Sequence[Tenant] = (SHOP,),
    uses: Sequence[float] | None = None,
    age_s: float = 0.0,
    labels: Mapping[str, str] | None = None,
    open_valves: frozenset[str] = frozenset(),
) -> Snapshot:
    """Return nodes that measure `uses`, if anything, and the Namespace `shop` if it has labels."""
    objects = [object_of("Namespace", {"metadata": {"name": "shop", "labels": dict(labels)}})] if labels else []
    state = cluster_of(nodes, pods, objects=objects)
    columns, tripped = {}, {}
    if uses is not None:
        values = np.array(uses)
        columns["use"] = SignalColumn(USE, values, age_s)
        tripped[BOUND.name] = values > 0.8
    table = SignalTable(RuleSet({"use": USE}, tenants=tuple(tenants)), columns, tripped, open_valves)
    return Snapshot(state, table, 0.0)


def of_shop(name: str = "pod", **requests: str) -> PodInfo:
    return make_pod(name, namespace="shop", extended=requests)


def said(pod: PodInfo, snapshot: Snapshot) -> dict[str, set[tuple[str, str]]]:
    return refusals(TenantOvercommit(), pod, snapshot)


@pytest.mark.parametrize(
    ("cpu", "fits"),
    [
        pytest.param("400m", True, id="8 cores and 105 percent: 8,400 millicores"),
        pytest.param("401m", False, id="one millicore more"),
    ],
)
def test_the_bound_is_exact(cpu: str, fits: bool) -> None:
    snapshot = world([node()], [make_pod("there", node="n", cpu="8")])

    assert said(of_shop(cpu=cpu), snapshot) == ({} if fits else {"n": {(UNSCHEDULABLE, SHORT)}})


def test_large_amounts_do_not_wrap() -> None:
    real = 9_000_000_000_000_001
    snapshot = world(
        [node(f'{{"memory": {real}}}', memory=str(9_100_000_000_000_000))],
        tenants=[Tenant("shop", ("shop",), per_mille=1001, resources=BOTH)],
    )
    most = real * 1001 // 1000

    assert said(of_shop(memory=str(most)), snapshot) == {}
    assert "n" in said(of_shop(memory=str(most + 1)), snapshot)


@pytest.mark.parametrize(
    ("tenant", "namespace", "most_milli", "reason"),
    [
        pytest.param(SHOP, "shop", 8_400, SHORT, id="its tenant's share"),
        pytest.param(SHOP, "bank", 8_000, NOBODY, id="nobody's: what is real"),
        pytest.param(Tenant("shop", per_mille=750, resources=BOTH), "any", 6_000, SHORT, id="less than all"),
        pytest.param(Tenant("shop", per_mille=2000, resources=BOTH), "any", 10_000, SHORT, id="at most as advertised"),
        pytest.param(Tenant("shop", per_mille=1050, resources=("memory",)), "any", 8_000, SHORT, id="not of cpu"),
    ],
)
def test_whose_pod_may_use_how_much(tenant: Tenant, namespace: str, most_milli: int, reason: str) -> None:
    snapshot = world([node()], tenants=[tenant])

    assert said(make_pod(namespace=namespace, cpu=f"{most_milli}m"), snapshot) == {}
    beyond = said(make_pod(namespace=namespace, cpu=f"{most_milli + 1}m"), snapshot)
    assert beyond == {"n": {(UNRESOLVABLE, reason)}}


@pytest.mark.parametrize(
    "real",
    [
        pytest.param(None, id="not published"),
        pytest.param("eight", id="unreadable: as advertised"),
        pytest.param('{"cpu": "12"}', id="more than advertised"),
        pytest.param('{"memory": "8Gi"}', id="cpu not named"),
    ],
)
def test_elsewhere_it_is_what_is_advertised(real: str | None) -> None:
    snapshot = world([node(real)])

    assert said(of_shop(cpu="10"), snapshot) == {}
    decision = decide(of_shop(cpu="10001m"), snapshot, default_profile())
    assert {refusal.plugin for refusal in decision.diagnosis.refusals} == {"NodeResourcesFit"}


def test_a_share_below_all_counts_where_figures_cannot_be_read_and_not_where_there_are_none() -> None:
    tenants = [Tenant("shop", per_mille=500, resources=BOTH)]
    snapshot = world([node("?", "bad"), node(None, "silent"), node("{}", "empty")], tenants=tenants)

    assert set(said(of_shop(cpu="5001m"), snapshot)) == {"bad", "empty"}
    assert said(of_shop(cpu="5"), snapshot) == {}


@pytest.mark.parametrize(
    ("uses", "age_s", "valves", "held_back"),
    [
        pytest.param([0.8, 0.8], 0.0, (), set(), id="within"),
        pytest.param([0.9, 0.1], 0.0, (), {"n0"}, id="beyond on one node"),
        pytest.param([math.nan, 0.1], 0.0, (), {"n0"}, id="no sample of one node"),
        pytest.param([0.1, 0.1], 59.0, (), set(), id="fading"),
        pytest.param([0.1, 0.1], 61.0, (), {"n0", "n1"}, id="too old"),
        pytest.param(None, 0.0, (), {"n0", "n1"}, id="never asked"),
        pytest.param([0.1, 0.1], 0.0, (BOUND.name,), {"n0", "n1"}, id="in doubt"),
    ],
)
def test_more_than_all_only_while_each_bound_holds(
    uses: list[float] | None, age_s: float, valves: tuple[str, ...], held_back: set[str]
) -> None:
    nodes = [node(name="n0"), node(name="n1")]
    snapshot = world(nodes, (), [BOUNDED], uses, age_s, open_valves=frozenset(valves))

    assert said(of_shop(cpu="8"), snapshot) == {}
    assert said(of_shop(cpu="8400m"), snapshot) == {name: {(UNRESOLVABLE, HELD_BACK)} for name in held_back}
    assert said(of_shop(cpu="8401m"), snapshot) == {name: {(UNRESOLVABLE, SHORT)} for name in ("n0", "n1")}


@pytest.mark.parametrize(
    ("labels", "most_milli"),
    [
        pytest.param({"team": "a"}, 8_400, id="the first that matches"),
        pytest.param({"team": "b"}, 4_000, id="the second"),
        pytest.param(None, 4_000, id="labels not known: the first cannot match"),
    ],
)
def test_the_first_tenant_that_covers_the_namespace_counts(labels: dict[str, str] | None, most_milli: int) -> None:
    tenants = [
        Tenant("first", namespace_labels={"team": ("a",)}, per_mille=1050, resources=BOTH),
        Tenant("second", ("shop",), per_mille=500, resources=BOTH),
    ]
    snapshot = world([node()], tenants=tenants, labels=labels)

    assert said(of_shop(cpu=f"{most_milli}m"), snapshot) == {}
    assert set(said(of_shop(cpu=f"{most_milli + 1}m"), snapshot)) == {"n"}


@pytest.mark.parametrize(
    ("nodes", "tenants", "requests"),
    [
        pytest.param([node()], (), {"cpu": "1"}, id="no tenants"),
        pytest.param([node(None)], (SHOP,), {"cpu": "1"}, id="nobody publishes anything"),
        pytest.param([node()], (SHOP,), {}, id="nothing is asked for"),
        pytest.param([node()], (SHOP,), {"memory": "1Gi"}, id="nothing is withheld of what is asked for"),
    ],
)
def test_it_is_left_out_where_it_has_nothing_to_say(
    nodes: list[Node], tenants: tuple[Tenant, ...], requests: dict[str, str]
) -> None:
    assert TenantOvercommit().prefilter(of_shop(**requests), world(nodes, tenants=tenants)) is SKIP


def test_pods_of_all_schedulers_count_and_a_full_node_takes_who_asks_for_nothing() -> None:
    there = make_pod("other", node="n", cpu="10", spec={"schedulerName": "default-scheduler"})
    snapshot = world([node()], [there])

    assert said(of_shop(cpu="1m"), snapshot) == {"n": {(UNSCHEDULABLE, SHORT)}}
    assert said(of_shop(memory="1Gi"), snapshot) == {}


def test_preemption_frees_room_below_the_bound() -> None:
    low = [make_pod(f"low-{i}", node="n", cpu="4", priority=0) for i in range(2)]
    pod = make_pod("pod", namespace="shop", cpu="3", priority=10)

    decision = decide(pod, world([node()], low), default_profile())

    assert decision.nomination == "n"
    assert len(decision.victims) == 1


def test_preemption_does_not_help_against_what_is_measured() -> None:
    low = make_pod("low", node="n", cpu="100m", priority=0)
    pod = make_pod("pod", namespace="shop", cpu="8200m", priority=10)

    decision = decide(pod, world([node()], [low], [BOUNDED], [0.9]), default_profile())

    assert decision.victims == ()
    assert decision.diagnosis.reasons() == {HELD_BACK: 1}
    assert decision.diagnosis.rules == {"tenant shop"}


def test_what_is_in_flight_counts_against_a_bound() -> None:
    """Samples of 0.75 say nothing yet of the Pod on n1, which will add a tenth of its node's 10 cores."""
    use = replace(USE, unit=Unit.RATIO, inflight=Effect(EffectKind.REQUEST, "cpu"))
    placed = make_pod("placed", node="n1", cpu="1")
    snapshot = world([node(name="n0"), node(name="n1")], [placed], [BOUNDED], [0.75, 0.75])
    column = SignalColumn(use, snapshot.signals.columns["use"].values, 0.0, as_of_unix_s=1_767_225_600.0)
    table = replace(snapshot.signals, rules=RuleSet({"use": use}, tenants=(BOUNDED,)), columns={"use": column})
    state = cluster_of([node(name="n0"), node(name="n1")], [placed])

    found = said(of_shop(cpu="7300m"), Snapshot(state, table, 0.0))

    assert found == {"n1": {(UNSCHEDULABLE, HELD_BACK)}}


NAMESPACE = object_of("Namespace", {"metadata": {"name": "shop", "labels": {"team": "a"}}})
OTHER_LABELS = object_of("Namespace", {"metadata": {"name": "shop", "labels": {"team": "b"}}})
ELSEWHERE = object_of("Namespace", {"metadata": {"name": "bank"}})
LEFT = make_pod("left", node="n", cpu="1")


@pytest.mark.parametrize(
    ("event", "helps"),
    [
        pytest.param(ClusterEvent.of(Resource.ASSIGNED_POD, Action.DELETE, LEFT), True, id="a Pod left"),
        pytest.param(ClusterEvent.of(Resource.ASSIGNED_POD, Action.DELETE, make_pod()), False, id="one without place"),
        pytest.param(ClusterEvent.of(Resource.ASSIGNED_POD, Action.ADD, None, LEFT), False, id="a Pod came"),
        pytest.param(ClusterEvent.of(Resource.NODE, Action.ADD, None, node()), True, id="a node came"),
        pytest.param(
            ClusterEvent.of(Resource.NODE, Action.UPDATE_NODE_ANNOTATION, node(), node("{}")), True, id="other figures"
        ),
        pytest.param(
            ClusterEvent.of(Resource.NODE, Action.UPDATE_NODE_ANNOTATION, node(), node()), False, id="other annotation"
        ),
        pytest.param(ClusterEvent.of(Resource.NODE, Action.UPDATE_NODE_TAINT, node(), node()), False, id="a taint"),
        pytest.param(
            ClusterEvent.of(Resource.NAMESPACE, Action.UPDATE_OTHER, NAMESPACE, OTHER_LABELS), True, id="its namespace"
        ),
        pytest.param(
            ClusterEvent.of(Resource.NAMESPACE, Action.UPDATE_OTHER, NAMESPACE, NAMESPACE), False, id="labels as before"
        ),
        pytest.param(ClusterEvent.of(Resource.NAMESPACE, Action.ADD, None, ELSEWHERE), False, id="another namespace"),
        pytest.param(ClusterEvent.of(Resource.NAMESPACE, Action.DELETE, NAMESPACE), True, id="its namespace is gone"),
    ],
)
def test_what_brings_a_refused_pod_back(event: ClusterEvent, helps: bool) -> None:
    hints = [one.hint(of_shop(), event) for one in TenantOvercommit().events() if one.covers(event)]

    assert (QueueingHint.QUEUE in hints) == helps
