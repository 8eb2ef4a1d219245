"""What a case of preemption is counted for: that its outcome hangs on one thing, or on an order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.conformance.generate.losses import FACTS, facts_of_preemption

LOWEST = -(2**31)


def pod(name: str, priority: int = 0, start: str = "10:00", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "labels": {"app": "web"}} | more.get("metadata", {})
    status = {"startTime": f"2026-01-01T{start}:00Z"} | more.get("status", {})
    return {"metadata": metadata, "spec": {"priority": priority, "nodeName": name[0]}, "status": status}


def case(
    pods: list[dict[str, Any]], violations: Mapping[str, int] | None = None, budgets: Any = (), **outcome: Any
) -> dict[str, Any]:
    """Return a case in which all Pods of a node, the first letter of their names, are its victims."""
    candidates = {
        node: {
            "victims": [f"default/{one['metadata']['name']}" for one in pods if one["spec"]["nodeName"] == node],
            "pdb_violations": (violations or {}).get(node, 0),
        }
        for node in sorted({one["spec"]["nodeName"] for one in pods})
    }
    plain = {"code": "Success", "message": "", "candidates": candidates, "non_candidates": {}}
    return {
        "objects": {"pods": pods, "poddisruptionbudgets": list(budgets)},
        "pod": {"spec": {"priority": 9}, "status": {"nominatedNodeName": "a"}},
        "expect": {"postfilter": plain | outcome, "filter": {"a": {"code": "Unschedulable"}}},
    }


def budget(**status: Any) -> dict[str, Any]:
    spec = {"selector": {"matchLabels": {"app": "web"}}}
    return {"metadata": {"namespace": "default"}, "spec": spec, "status": {"disruptionsAllowed": 0} | status}


def marked(deleted: bool = True, priority: int = 0, **condition: str) -> dict[str, Any]:
    mark = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"} | condition
    times = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {}
    return case([pod("a1", priority, metadata=times, status={"conditions": [mark]})])


FAULT = {"a": {"code": "Error"}}


@pytest.mark.parametrize(
    ("made", "fact"),
    [
        (case([pod("a1", 5), pod("b1", 1)], {"b": 1}), "counts the broken budgets"),
        (case([pod("a1", 5), pod("b1", 1)], {"b": 1}), "counts the broken budgets before the highest priority"),
        (case([pod("a1", 5), pod("b1", 4), pod("b2", 4)]), "counts the highest priority before the sum of priorities"),
        (case([pod("a1", 5), pod("b1", 4), pod("b2", 4)]), "counts the highest priority"),
        (case([pod("a1", 5), pod("a2", 4), pod("b1", 5), pod("b2", 3)]), "counts the sum of priorities"),
        (
            case([pod("a1", 5), pod("a2", 5), pod("b1", 5), pod("b2", 4), pod("b3", LOWEST)]),
            "counts the sum of priorities before the number of victims",
        ),
        (case([pod("a1", 5), pod("b1", 5, "11:00"), pod("b2", LOWEST)]), "counts the number of victims"),
        (
            case([pod("a1", 5), pod("b1", 5, "11:00"), pod("b2", LOWEST)]),
            "counts the number of victims before the start of the highest",
        ),
        (case([pod("a1", 5), pod("b1", 5, "11:00")]), "counts the start of the highest"),
        (case([], code="Error", message="preemption: broken"), "ends with a fault"),
        (case([], code="Error", message="preemption: [bent, broken]"), "ends with several faults"),
        (case([pod("b1")], non_candidates=FAULT), "leaves out a node with a fault"),
        (
            case([pod("a1")], budgets=[budget(disruptedPods={"a1": "now"})]),
            "counts no budget for who is disrupted already",
        ),
        (
            case([pod("a1")], budgets=[budget(disruptedPods={"a1": "now"}), budget()]),
            "counts another budget for who is disrupted already",
        ),
        (marked(reason="TerminationByKubelet"), "goes on beside a Pod that leaves for another reason"),
        (marked(deleted=False), "goes on beside a Pod that stays although it is marked"),
        (marked(status="False"), "goes on beside a Pod whose mark is False"),
        (marked(type="Ready"), "goes on beside a Pod with another condition"),
        (marked(priority=9), "goes on beside a Pod that leaves and is not below"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_what_a_case_of_preemption_reaches(made: dict[str, Any], fact: str) -> None:
    assert f"preemption {fact}" in FACTS
    assert f"preemption {fact}" in set(facts_of_preemption(made))


def test_what_hangs_on_nothing_is_counted_for_nothing() -> None:
    """Both nodes lose the same, the budget names nobody, the one that leaves is a victim on its way out."""
    assert set(facts_of_preemption(case([pod("a1"), pod("b1")], budgets=[budget()]))) == set()
    assert set(facts_of_preemption(marked())) == set()
    assert set(facts_of_preemption(case([], code="Error", message="not found"))) == set()
