"""What a decision leaves behind of the Pod's tenant: enough to see why a node was refused for its sake."""

from __future__ import annotations

import msgspec

from scheduler.decision.decide import decide
from scheduler.decision.record import DecisionRecord, record_of
from scheduler.decision.tenant_record import BoundUse, TenantFigure, TenantUse
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from tests.builders import default_profile, make_pod
from tests.plugins.test_tenant_overcommit import BOUNDED, HELD_BACK, SHOP, node, of_shop, world


def recorded(pod: PodInfo, snapshot: Snapshot) -> DecisionRecord:
    return record_of(pod, snapshot, decide(pod, snapshot, default_profile()), "vane", 0.0)


def test_the_chosen_node_s_figures_stand_in_it() -> None:
    snapshot = world([node()], [make_pod("there", node="n", cpu="8")], [BOUNDED], [0.5])

    assert recorded(of_shop(cpu="400m", memory="1Gi"), snapshot).tenant == TenantUse(
        tenant="shop",
        overcommit=1.05,
        n_publishing=1,
        bounds=(BoundUse("use", "fresh", 0.0, 1, 0.5),),
        node="n",
        figures=(TenantFigure("cpu", 8_000, 400, 8_400),),
    )


def test_of_refused_nodes_that_with_the_most_room_stands_in_it() -> None:
    nodes = [node(name="full"), node(name="fuller"), node(None, "silent")]
    pods = [
        make_pod(f"on-{name}", node=name, cpu=cpu) for name, cpu in (("full", "8"), ("fuller", "9"), ("silent", "9"))
    ]
    record = recorded(of_shop(cpu="1200m"), world(nodes, pods, [BOUNDED], [0.9, 0.5, 0.5]))

    assert record.node == ""
    assert {(one.plugin, one.reason, one.n_nodes) for one in record.refusals} >= {
        ("NodeResourcesFit", "Insufficient cpu", 2)
    }
    assert record.tenant is not None
    assert record.tenant.node == "full"
    assert record.tenant.figures == (TenantFigure("cpu", 8_000, 1_200, 8_000),)
    assert record.tenant.bounds == (BoundUse("use", "fresh", 0.0, 1, 0.9),)


def test_why_a_bound_kept_a_node_back_is_seen() -> None:
    record = recorded(of_shop(cpu="8200m"), world([node()], tenants=[BOUNDED], uses=[0.9]))

    assert [(one.rule, one.reason) for one in record.refusals] == [("tenant shop", HELD_BACK)]
    assert record.tenant is not None
    assert record.tenant.bounds == (BoundUse("use", "fresh", 0.0, 0, 0.9),)
    assert record.tenant.figures[0].most == 8_000


def test_a_pod_of_none_has_what_is_real() -> None:
    use = recorded(make_pod(namespace="bank", cpu="1"), world([node()], tenants=[SHOP])).tenant

    assert use == TenantUse("", 1.0, 1, (), "n", (TenantFigure("cpu", 0, 1_000, 8_000),))


def test_where_nobody_publishes_anything_nothing_is_kept() -> None:
    assert recorded(of_shop(cpu="1"), world([node(None)])).tenant is None
    assert recorded(of_shop(cpu="1"), world([node()], tenants=[])).tenant is None


def test_it_is_plain_data() -> None:
    use = recorded(of_shop(cpu="1"), world([node()], tenants=[BOUNDED])).tenant

    assert msgspec.json.decode(msgspec.json.encode(use))["bounds"][0]["freshness"] == "absent"


def test_of_equal_nodes_the_first_by_name_stands_in_it_whichever_came_first() -> None:
    for names in (("a", "b"), ("b", "a")):
        use = recorded(of_shop(cpu="9"), world([node(name=name) for name in names])).tenant
        assert use is not None
        assert use.node == "a"
