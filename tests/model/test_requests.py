from __future__ import annotations

from typing import Any

import pytest

from scheduler.model.requests import MAX_ADVERTISED, container_requests, is_counted, is_extended, resource_amounts
from tests.builders import make_pod

MIB = 1024 * 1024


def container(name: str = "c", restart: str | None = None, **requests: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": name, "resources": {"requests": requests}}
    return fields | ({"restartPolicy": restart} if restart else {})


@pytest.mark.parametrize(
    ("spec", "cpu_milli"),
    [
        pytest.param({"containers": [container(cpu="1"), container(cpu="250m")]}, 1250, id="containers add up"),
        pytest.param(
            {"containers": [container(cpu="1")], "initContainers": [container(cpu="3")]},
            3000,
            id="or one init container",
        ),
        pytest.param(
            {"containers": [container(cpu="1")], "initContainers": [container(restart="Always", cpu="500m")]},
            1500,
            id="a sidecar runs beside them",
        ),
        pytest.param(
            {
                "containers": [container(cpu="1")],
                "initContainers": [container(restart="Always", cpu="500m"), container(cpu="2")],
            },
            2500,
            id="an init container runs beside earlier sidecars",
        ),
        pytest.param(
            {
                "containers": [container(cpu="1")],
                "initContainers": [container(cpu="2"), container(restart="Always", cpu="500m")],
            },
            2000,
            id="and not beside later ones",
        ),
        pytest.param({"containers": [container(cpu="1")], "overhead": {"cpu": "100m"}}, 1100, id="overhead is added"),
        pytest.param(
            {"containers": [container(cpu="1")], "resources": {"requests": {"cpu": "300m"}}},
            300,
            id="what the Pod as a whole asks for stands instead",
        ),
        pytest.param({"containers": [container(cpu="100n"), container(cpu="100n")]}, 1, id="rounded up, once"),
    ],
)
def test_what_a_pending_pod_asks_for(spec: dict[str, Any], cpu_milli: int) -> None:
    assert make_pod(spec=spec).requests["cpu"] == cpu_milli


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": [container()]}, (100, 200 * MIB), id="defaults for a container without requests"),
        pytest.param({"containers": [container(), container()]}, (200, 400 * MIB), id="for each of them"),
        pytest.param({"containers": [container(cpu="0", memory="0")]}, (0, 0), id="an explicit zero stays"),
        pytest.param(
            {"containers": [container()], "resources": {"requests": {"cpu": "9"}}},
            (100, 200 * MIB),
            id="pod-level requests are not looked at",
        ),
    ],
)
def test_what_a_pending_pod_counts_as_in_scores(spec: dict[str, Any], expected: tuple[int, int]) -> None:
    assert make_pod(spec=spec).scored_requests == expected


def test_other_resources_in_scores_leave_pod_level_requests_out() -> None:
    spec = {
        "containers": [container(**{"hugepages-2Mi": "4Mi", "cpu": "1"})],
        "resources": {"requests": {"hugepages-2Mi": "8Mi"}},
        "overhead": {"cpu": "1"},
    }

    assert container_requests(make_pod(spec=spec).pod) == {"hugepages-2Mi": 4 * MIB, "cpu": 2000}


def status(**fields: Any) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "c", **fields}]}


@pytest.mark.parametrize(
    ("pod_status", "cpu_milli"),
    [
        pytest.param({}, 1000, id="its spec"),
        pytest.param(status(allocatedResources={"cpu": "2"}), 2000, id="what it was allotted, if more"),
        pytest.param(
            status(allocatedResources={"cpu": "500m"}, resources={"requests": {"cpu": "3"}}),
            3000,
            id="what it really has, if more",
        ),
        pytest.param(
            {
                **status(allocatedResources={"cpu": "500m"}),
                "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}],
            },
            500,
            id="not what it will never get",
        ),
    ],
)
def test_what_a_placed_pod_occupies(pod_status: dict[str, Any], cpu_milli: int) -> None:
    pod = make_pod(spec={"containers": [container(cpu="1")]}, status=pod_status)

    assert pod.usage.requests["cpu"] == cpu_milli


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param(None, (150, 200 * MIB), id="each container that names none counts with the defaults"),
        pytest.param({"memory": "1Mi"}, (50, MIB), id="with Pod-level requests only what is named nowhere"),
        pytest.param({"hugepages-2Mi": "4Mi"}, (50, 400 * MIB), id="of each resource on its own"),
    ],
)
def test_what_a_placed_pod_counts_as_in_scores(resources: dict[str, str] | None, expected: tuple[int, int]) -> None:
    containers = [container("a", cpu="50m"), container("b")]
    at_pod_level = {"resources": {"requests": resources}} if resources else {}
    if resources is None:
        containers = [container("a", cpu="50m", memory="0"), container("b")]

    assert make_pod(spec={"containers": containers, **at_pod_level}).usage.scored == expected


def test_amounts_beyond_what_a_node_may_advertise_stop_just_there() -> None:
    amounts = resource_amounts({"memory": "1000000E", "cpu": "1n"})

    assert amounts == {"memory": MAX_ADVERTISED, "cpu": 1}


@pytest.mark.parametrize(
    ("name", "counted", "extended"),
    [
        ("cpu", True, False),
        ("hugepages-2Mi", True, False),
        ("attachable-volumes-csi-x", True, False),
        ("nvidia.com/gpu", True, True),
        ("kubernetes.io/batch", True, False),
        ("requests.nvidia.com/gpu", False, False),
        ("made-up", False, False),
    ],
)
def test_which_resources_count(name: str, counted: bool, extended: bool) -> None:
    assert (is_counted(name), is_extended(name)) == (counted, extended)
