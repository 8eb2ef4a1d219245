from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.plugins.node_declared_features import NodeDeclaredFeatures, needed_features
from tests.builders import cluster_of, make_node, make_pod, snapshot_of
from tests.plugins.run import refusals

RESTART = "RestartAllContainersOnContainerExits"
USERS = "UserNamespacesHostNetworkSupport"
MOUNTS = "VolumeBindMountOptions"
REFUSED = {("UnschedulableAndUnresolvable", "node(s) didn't match Pod's required features")}

RULES: dict[str, Any] = {"restartPolicyRules": [{"action": "Restart"}, {"action": "RestartAllContainers"}]}
OPTIONS: dict[str, Any] = {"volumeMounts": [{"name": "a"}, {"name": "b", "bindMountOptions": ["noexec"]}]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, set(), id="a plain Pod needs nothing"),
        pytest.param({"containers": [RULES]}, {RESTART}, id="a rule that restarts all containers"),
        pytest.param({"initContainers": [RULES]}, {RESTART}, id="of an init container, too"),
        pytest.param({"ephemeralContainers": [RULES]}, set(), id="of an ephemeral container it does not count"),
        pytest.param({"containers": [{"restartPolicyRules": [{"action": "Restart"}]}]}, set(), id="another rule"),
        pytest.param({"hostNetwork": True, "hostUsers": False}, {USERS}, id="own users on the host's network"),
        pytest.param({"hostNetwork": True}, set(), id="users as they come"),
        pytest.param({"hostNetwork": True, "hostUsers": True}, set(), id="the host's users"),
        pytest.param({"hostUsers": False}, set(), id="own users on the Pod's network"),
        pytest.param({"containers": [OPTIONS]}, {MOUNTS}, id="options of a bind mount"),
        pytest.param({"initContainers": [OPTIONS]}, {MOUNTS}, id="of an init container, too"),
        pytest.param({"ephemeralContainers": [OPTIONS]}, {MOUNTS}, id="and of an ephemeral one"),
        pytest.param({"containers": [{"volumeMounts": [{"bindMountOptions": []}]}]}, set(), id="no option in the list"),
        pytest.param(
            {"containers": [OPTIONS | RULES], "hostNetwork": True, "hostUsers": False},
            {RESTART, USERS, MOUNTS},
            id="all three",
        ),
    ],
)
def test_which_features_a_pod_needs(spec: dict[str, Any], expected: set[str]) -> None:
    assert needed_features(make_pod(spec=spec).pod.spec) == expected


def test_a_node_has_to_declare_every_needed_feature() -> None:
    nodes = [
        make_node("both", features=[USERS, RESTART]),
        make_node("one", features=[USERS]),
        make_node("others", features=["SomethingNew"]),
        make_node("none"),
    ]
    pod = make_pod(spec={"containers": [RULES], "hostNetwork": True, "hostUsers": False})

    assert refusals(NodeDeclaredFeatures(), pod, snapshot_of(nodes)) == {
        "one": REFUSED, "others": REFUSED, "none": REFUSED
    }  # fmt: skip


def test_a_feature_that_no_node_declares_leaves_none() -> None:
    pod = make_pod(spec={"containers": [OPTIONS]})

    assert refusals(NodeDeclaredFeatures(), pod, snapshot_of([make_node("a")])) == {"a": REFUSED}


def test_what_a_node_declares_is_followed() -> None:
    state = cluster_of([make_node("a", features=[USERS]), make_node("b")])
    columns = state.nodes.features

    state.set_node(make_node("a", features=[RESTART]))
    assert {feature: column[:2].tolist() for feature, column in columns.items()} == {RESTART: [True, False]}

    state.set_node(make_node("b", features=[RESTART]))
    state.nodes.remove_node("a")
    assert {feature: column[:2].tolist() for feature, column in columns.items()} == {RESTART: [False, True]}


ALL = [RESTART, USERS, MOUNTS, "SomethingNew"]


@settings(max_examples=60, deadline=None)
@given(
    declared=st.lists(st.sets(st.sampled_from(ALL)), max_size=90),
    needs=st.sets(st.sampled_from([RESTART, USERS, MOUNTS])),
)
def test_the_columns_say_what_a_loop_over_the_nodes_says(declared: list[set[str]], needs: set[str]) -> None:
    """More nodes than the table's first capacity, so that the columns grow."""
    parts: dict[str, dict[str, Any]] = {
        RESTART: {"initContainers": [RULES]},
        USERS: {"hostNetwork": True, "hostUsers": False},
        MOUNTS: {"ephemeralContainers": [OPTIONS]},
    }
    spec = {field: value for need in needs for field, value in parts[need].items()}
    snapshot = snapshot_of([make_node(f"n{i}", features=sorted(found)) for i, found in enumerate(declared)])

    expected = {f"n{i}": REFUSED for i, found in enumerate(declared) if not needs <= found}
    assert refusals(NodeDeclaredFeatures(), make_pod(spec=spec), snapshot) == expected
