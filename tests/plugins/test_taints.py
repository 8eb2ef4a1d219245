from __future__ import annotations

from typing import Any

import pytest

from scheduler.plugins.taints import NodeUnschedulable, TaintToleration
from tests.builders import make_node, make_pod, snapshot_of
from tests.plugins.run import final_scores, raw_scores, refusals

UU = "UnschedulableAndUnresolvable"
TAINTED = {("UnschedulableAndUnresolvable", "node(s) had untolerated taint(s)")}
CORDON = "node.kubernetes.io/unschedulable"


@pytest.mark.parametrize(
    ("toleration", "passes"),
    [
        pytest.param(None, False, id="no toleration"),
        pytest.param({"key": "k", "operator": "Equal", "value": "v"}, True, id="Equal with the value, any effect"),
        pytest.param({"key": "k", "value": "v", "effect": "NoSchedule"}, True, id="no operator means Equal"),
        pytest.param({"key": "k", "value": "w"}, False, id="another value"),
        pytest.param({"key": "k", "value": "v", "effect": "NoExecute"}, False, id="another effect"),
        pytest.param({"key": "k", "operator": "Exists"}, True, id="Exists asks for no value"),
        pytest.param({"operator": "Exists"}, True, id="Exists without a key tolerates everything"),
        pytest.param({"operator": "Equal", "value": "v"}, True, id="Equal without a key compares the value"),
        pytest.param({"operator": "Equal"}, False, id="Equal without key and value does not"),
        pytest.param({"key": "k", "operator": "Gt", "value": "1"}, False, id="Gt is off"),
    ],
)
def test_which_tolerations_let_a_pod_onto_a_tainted_node(toleration: dict[str, Any] | None, passes: bool) -> None:
    snapshot = snapshot_of([make_node("n", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])])
    pod = make_pod(spec={"tolerations": [toleration]} if toleration else {})

    assert refusals(TaintToleration(), pod, snapshot) == ({} if passes else {"n": TAINTED})


@pytest.mark.parametrize(
    ("effect", "refuses"),
    [
        pytest.param("NoSchedule", True, id="NoSchedule refuses"),
        pytest.param("NoExecute", True, id="NoExecute refuses"),
        pytest.param("PreferNoSchedule", False, id="PreferNoSchedule only scores"),
    ],
)
def test_which_effects_refuse(effect: str, refuses: bool) -> None:
    snapshot = snapshot_of([make_node("n", taints=[{"key": "k", "effect": effect}]), make_node("free")])

    assert set(refusals(TaintToleration(), make_pod(), snapshot)) == ({"n"} if refuses else set())


def test_fewer_untolerated_preferences_score_better() -> None:
    def taints(*keys: str) -> list[dict[str, str]]:
        return [{"key": key, "effect": "PreferNoSchedule"} for key in keys]

    snapshot = snapshot_of([make_node(f"n{i}", taints=taints(*"abc"[:i])) for i in range(4)])
    # A toleration of NoSchedule says nothing about preferences, so `b` is counted.
    tolerations = [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists", "effect": "NoSchedule"}]
    pod = make_pod(spec={"tolerations": tolerations})

    assert raw_scores(TaintToleration(), pod, snapshot) == {"TaintToleration": [0, 0, 1, 2]}
    assert final_scores(TaintToleration(), pod, snapshot) == {"TaintToleration": [100, 100, 50, 0]}


def test_without_any_preference_every_node_scores_100() -> None:
    snapshot = snapshot_of([make_node("a"), make_node("b")])

    assert final_scores(TaintToleration(), make_pod(), snapshot) == {"TaintToleration": [100, 100]}


@pytest.mark.parametrize(
    ("tolerations", "refused"),
    [
        pytest.param([], True, id="without a toleration"),
        pytest.param([{"key": CORDON, "operator": "Exists"}], False, id="with one of the taint"),
        pytest.param([{"key": CORDON, "operator": "Exists", "effect": "NoExecute"}], True, id="with the wrong effect"),
    ],
)
def test_a_cordoned_node_refuses(tolerations: list[dict[str, str]], refused: bool) -> None:
    snapshot = snapshot_of([make_node("open"), make_node("cordoned", unschedulable=True)])

    found = refusals(NodeUnschedulable(), make_pod(spec={"tolerations": tolerations}), snapshot)

    assert found == ({"cordoned": {(UU, "node(s) were unschedulable")}} if refused else {})
