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


def test_everything_is_named_at_once() -> None:
    spec = {"resourceClaims": [{"name": "gpu"}], "schedulingGroup": {"podGroupName": "g"}}

    assert len(unsupported(make_pod(spec=spec).pod)) == 2
