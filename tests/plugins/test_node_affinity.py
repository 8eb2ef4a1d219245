from __future__ import annotations

from typing import Any

import pytest

from scheduler.errors import InvalidObjectError
from scheduler.framework.status import SKIP, Code, PreFilterResult, Status
from scheduler.model.pods import PodInfo
from scheduler.plugins.node_affinity import REASON_CONFLICT, NodeAffinity
from tests.builders import make_node, make_pod, snapshot_of
from tests.plugins.run import final_scores, raw_scores, refusals

NODES = [
    make_node("a", labels={"zone": "z1", "gen": "3"}),
    make_node("b", labels={"zone": "z2", "gen": "8"}),
    make_node("c", labels={"gen": "x"}),
]


def wants(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def expressions(*requirements: dict[str, Any]) -> dict[str, Any]:
    return {"matchExpressions": list(requirements)}


def fields(*requirements: dict[str, Any]) -> dict[str, Any]:
    return {"matchFields": list(requirements)}


def required(*terms: dict[str, Any], **spec: Any) -> PodInfo:
    selector = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return make_pod(spec={"affinity": {"nodeAffinity": selector}, **spec})


def preferring(*terms: tuple[int, dict[str, Any]]) -> PodInfo:
    preferred = [{"weight": weight, "preference": term} for weight, term in terms]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    return make_pod(spec={"affinity": affinity})


NAME_A = wants("metadata.name", "In", "a")


@pytest.mark.parametrize(
    ("pod", "passing"),
    [
        pytest.param(make_pod(spec={"nodeSelector": {"zone": "z1"}}), "a", id="nodeSelector"),
        pytest.param(make_pod(spec={"nodeSelector": {"zone": "z1", "gen": "8"}}), "", id="every label of it"),
        pytest.param(make_pod(spec={"nodeSelector": {}}), "abc", id="an empty nodeSelector"),
        pytest.param(required(expressions(wants("zone", "In", "z1", "z2"))), "ab", id="In"),
        pytest.param(required(expressions(wants("zone", "NotIn", "z1"))), "bc", id="NotIn matches a missing key"),
        pytest.param(required(expressions(wants("zone", "Exists"))), "ab", id="Exists"),
        pytest.param(required(expressions(wants("zone", "DoesNotExist"))), "c", id="DoesNotExist"),
        pytest.param(required(expressions(wants("gen", "Gt", "3"))), "b", id="Gt, not for text"),
        pytest.param(required(expressions(wants("gen", "Lt", "4"))), "a", id="Lt"),
        pytest.param(required(expressions(wants("zone", "In", "z1"), wants("gen", "Gt", "5"))), "", id="AND in a term"),
        pytest.param(
            required(expressions(wants("zone", "In", "z1")), expressions(wants("gen", "Gt", "5"))),
            "ab",
            id="OR of terms",
        ),
        pytest.param(required(), "", id="no terms match nothing"),
        pytest.param(required({}), "", id="an empty term matches nothing"),
        pytest.param(
            required(expressions(wants("zone", "In", "z1")), nodeSelector={"gen": "8"}), "", id="selector AND affinity"
        ),
        pytest.param(
            required(expressions(wants("gen", "Gt", "many")), expressions(wants("zone", "In", "z2"))),
            "b",
            id="a term that cannot be read matches nothing, the others count",
        ),
        pytest.param(required(fields(NAME_A)), "a", id="a field"),
        pytest.param(required(fields(wants("metadata.name", "NotIn", "a"))), "bc", id="a field, NotIn"),
        pytest.param(required(fields(wants("metadata.name", "In", "a", "b"))), "", id="a field takes one value"),
        pytest.param(
            required({**fields(NAME_A), **expressions(wants("zone", "In", "z2"))}), "", id="fields AND labels"
        ),
    ],
)
def test_which_nodes_pass(pod: PodInfo, passing: str) -> None:
    refused = refusals(NodeAffinity(), pod, snapshot_of(NODES))

    assert set("abc") - set(refused) == set(passing)
    expected = {("UnschedulableAndUnresolvable", "node(s) didn't match Pod's node affinity/selector")}
    assert all(found == expected for found in refused.values())


@pytest.mark.parametrize(
    ("pod", "names"),
    [
        pytest.param(required(fields(NAME_A)), {"a"}, id="one term, one name"),
        pytest.param(required(fields(NAME_A), fields(wants("metadata.name", "In", "b"))), {"a", "b"}, id="a union"),
        pytest.param(required(fields(NAME_A), expressions(wants("zone", "Exists"))), None, id="not every term has one"),
        pytest.param(required(fields(wants("metadata.name", "NotIn", "a"))), None, id="NotIn names no node"),
    ],
)
def test_names_limit_who_is_looked_at(pod: PodInfo, names: set[str] | None) -> None:
    result = NodeAffinity().prefilter(pod, snapshot_of(NODES))

    assert isinstance(result, PreFilterResult)
    assert result.node_names == names


def test_names_that_exclude_each_other_end_the_cycle() -> None:
    pod = required(fields(NAME_A, wants("metadata.name", "In", "b")))

    result = NodeAffinity().prefilter(pod, snapshot_of(NODES))

    assert result == Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (REASON_CONFLICT,))


def test_a_pod_without_wishes_is_skipped() -> None:
    assert NodeAffinity().prefilter(make_pod(), snapshot_of(NODES)) is SKIP
    assert NodeAffinity().prescore(make_pod(), snapshot_of(NODES), slice(None)) is SKIP


def test_preferred_terms_add_their_weights() -> None:
    pod = preferring((30, expressions(wants("zone", "Exists"))), (20, expressions(wants("gen", "Gt", "5"))), (9, {}))

    assert raw_scores(NodeAffinity(), pod, snapshot_of(NODES)) == {"NodeAffinity": [30, 50, 0]}
    assert final_scores(NodeAffinity(), pod, snapshot_of(NODES)) == {"NodeAffinity": [60, 100, 0]}


def test_a_preferred_term_that_cannot_be_read_fails_the_attempt() -> None:
    pod = preferring((1, expressions(wants("gen", "Gt", "-1"))))

    with pytest.raises(InvalidObjectError, match="'-1'"):
        NodeAffinity().prescore(pod, snapshot_of(NODES), slice(None))


def test_a_term_of_weight_zero_is_not_even_read() -> None:
    pod = preferring((0, expressions(wants("gen", "Gt", "-1"))))

    assert final_scores(NodeAffinity(), pod, snapshot_of(NODES)) == {"NodeAffinity": [0, 0, 0]}
