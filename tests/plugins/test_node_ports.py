from __future__ import annotations

from typing import Any

import pytest

from scheduler.framework.status import SKIP
from scheduler.plugins.node_ports import REASON, HostPorts, NodePorts
from tests.builders import make_node, make_pod, snapshot_of
from tests.plugins.run import refusals


@pytest.mark.parametrize(
    ("held", "wanted", "conflict"),
    [
        pytest.param({"hostPort": 80}, {"hostPort": 80}, True, id="the same port"),
        pytest.param({"hostPort": 80}, {"hostPort": 81}, False, id="another port"),
        pytest.param({"hostPort": 80}, {"hostPort": 80, "protocol": "UDP"}, False, id="another protocol"),
        pytest.param({"hostPort": 80, "protocol": ""}, {"hostPort": 80, "protocol": "TCP"}, True, id="none means TCP"),
        pytest.param({"hostPort": 80, "hostIP": "1.1.1.1"}, {"hostPort": 80}, True, id="every address, one held"),
        pytest.param({"hostPort": 80}, {"hostPort": 80, "hostIP": "1.1.1.1"}, True, id="one address, every one held"),
        pytest.param(
            {"hostPort": 80, "hostIP": "1.1.1.1"}, {"hostPort": 80, "hostIP": "2.2.2.2"}, False, id="two addresses"
        ),
        pytest.param({"hostPort": 80, "hostIP": "::"}, {"hostPort": 80, "hostIP": "1.1.1.1"}, False, id=":: is one IP"),
        pytest.param({"containerPort": 80}, {"hostPort": 80}, False, id="a container port takes nothing"),
    ],
)
def test_which_ports_conflict(held: dict[str, Any], wanted: dict[str, Any], conflict: bool) -> None:
    nodes = [make_node("taken"), make_node("free")]
    snapshot = snapshot_of(nodes, [make_pod("holder", node="taken", ports=[held])])

    found = refusals(NodePorts(), make_pod(ports=[wanted]), snapshot)

    assert found == ({"taken": {("Unschedulable", REASON)}} if conflict else {})


def test_a_pod_without_host_ports_is_skipped() -> None:
    assert NodePorts().prefilter(make_pod(ports=[{"containerPort": 80}]), snapshot_of([])) is SKIP


def test_ports_of_sidecars_count_and_those_of_init_containers_do_not() -> None:
    port = {"ports": [{"hostPort": 80}]}
    pod = make_pod(spec={"initContainers": [{"name": "init", **port}]})
    sidecar = make_pod(spec={"initContainers": [{"name": "side", "restartPolicy": "Always", **port}]})

    assert pod.host_ports == ()
    assert sidecar.host_ports == (("TCP", "0.0.0.0", 80),)


def test_a_shared_port_stays_taken_until_the_last_pod_goes() -> None:
    index = HostPorts()
    one, two = (make_pod(name, ports=[{"hostPort": 80}]) for name in ("one", "two"))
    index.add_pod(one, 3)
    index.add_pod(two, 3)

    index.remove_pod(one, 3)
    assert index.conflicting_rows("TCP", "0.0.0.0", 80).tolist() == [3]

    index.remove_pod(two, 3)
    assert index.conflicting_rows("TCP", "0.0.0.0", 80).tolist() == []


def test_a_trial_frees_the_port_and_its_end_takes_it_again() -> None:
    holder = make_pod("holder", node="n", ports=[{"hostPort": 80}])
    snapshot = snapshot_of([make_node("n")], [holder])
    pod = make_pod(ports=[{"hostPort": 80}])

    with snapshot.trial() as trial:
        trial.remove(holder, 0)
        assert refusals(NodePorts(), pod, snapshot) == {}

    assert set(refusals(NodePorts(), pod, snapshot)) == {"n"}
