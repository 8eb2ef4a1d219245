from __future__ import annotations

from typing import Any

import pytest

from scheduler.model.unsupported import unsupported
from tests.builders import make_pod

NEEDED = "requiredDuringSchedulingIgnoredDuringExecution"


def volume(**source: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "v", **source}]}


def container(**fields: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", **fields}]}


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"resourceClaims": [{"name": "gpu"}]}, "spec.resourceClaims"),
        (container(resources={"claims": [{"name": "gpu"}]}), "spec.containers.resources.claims"),
        ({"schedulingGroup": {"podGroupName": "g"}}, "spec.schedulingGroup"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_not_built_is_named(spec: dict[str, Any], path: str) -> None:
    assert unsupported(make_pod(spec=spec).pod) == (f"{path}: not built yet in Vane 0.1",)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="a plain Pod"),
        pytest.param({"topologySpreadConstraints": [{"maxSkew": 1}]}, id="a constraint on the spread"),
        pytest.param({"resourceClaims": []}, id="an empty list"),
        pytest.param({"affinity": {"podAffinity": {NEEDED: [{"topologyKey": "zone"}]}}}, id="affinity between Pods"),
        pytest.param(volume(emptyDir={}), id="an emptyDir"),
        pytest.param(volume(configMap={"name": "x"}), id="a ConfigMap"),
        pytest.param(volume(hostPath={"path": "/x"}), id="a hostPath"),
        pytest.param(volume(image={"reference": "x"}), id="an image volume"),
        pytest.param(volume(persistentVolumeClaim={"claimName": "x"}), id="a claim"),
        pytest.param(volume(iscsi={"iqn": "x"}), id="a disk"),
        pytest.param(container(restartPolicyRules=[{"action": "Restart"}]), id="another restart rule"),
        pytest.param({"hostNetwork": True}, id="the host's network"),
    ],
)
def test_what_is_built_is_let_through(spec: dict[str, Any]) -> None:
    assert unsupported(make_pod(spec=spec).pod) == ()


def terms(n: int, n_values: int = 1) -> dict[str, Any]:
    values = [f"v{i}" for i in range(n_values)]
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": values}]}
    return {"affinity": {"podAntiAffinity": {NEEDED: [{"topologyKey": "zone", "labelSelector": selector}] * n}}}


def constraints(n: int) -> dict[str, Any]:
    return {"topologySpreadConstraints": [{"topologyKey": f"k{i}", "maxSkew": 1} for i in range(n)]}


@pytest.mark.parametrize(
    ("most", "beyond", "path", "what"),
    [
        pytest.param(terms(2_000), terms(2_001), "spec.affinity", "2,000 terms about other Pods", id="terms"),
        pytest.param(terms(1, 19_999), terms(1, 20_000), "spec.affinity", "20,000 labels", id="values"),
        pytest.param(constraints(500), constraints(501), "spec.topologySpreadConstraints", "500", id="constraints"),
    ],
)
def test_more_selectors_than_a_decision_has_time_to_read_are_refused(
    most: dict[str, Any], beyond: dict[str, Any], path: str, what: str
) -> None:
    assert unsupported(make_pod(spec=most).pod) == ()
    (found,) = unsupported(make_pod(spec=beyond).pod)
    assert found.startswith(f"{path}: at most ")
    assert what in found


def test_terms_of_a_placed_pod_that_has_too_many_count_for_nothing() -> None:
    assert make_pod(node="n", spec=terms(2_000)).affinity_terms.required_anti
    assert not make_pod(node="n", spec=terms(2_001)).affinity_terms.required_anti


def test_everything_is_named_at_once() -> None:
    spec = {"resourceClaims": [{"name": "gpu"}], "schedulingGroup": {"podGroupName": "g"}}

    assert len(unsupported(make_pod(spec=spec).pod)) == 2
