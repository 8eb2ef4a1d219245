from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.errors import InvalidObjectError
from scheduler.framework.events import Action, ClusterEvent, QueueingHint, Resource
from scheduler.framework.intree_args import NodeAffinityArgs
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


ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
OWN = "node(s) didn't match Pod's node affinity/selector"


def adding(*terms: dict[str, Any], preferred: list[dict[str, Any]] | None = None) -> NodeAffinity:
    """Return the plugin with an `addedAffinity`; without terms it requires nothing."""
    affinity: dict[str, Any] = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    if terms:
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": list(terms)}
    return NodeAffinity(msgspec.convert({"addedAffinity": affinity}, NodeAffinityArgs))


@pytest.mark.parametrize(
    ("plugin", "pod", "expected"),
    [
        pytest.param(adding(expressions(wants("zone", "Exists"))), make_pod(), {"c": ENFORCED}, id="of every Pod"),
        pytest.param(
            adding(expressions(wants("zone", "In", "z1"))),
            make_pod(spec={"nodeSelector": {"gen": "8"}}),
            {"a": OWN, "b": ENFORCED, "c": ENFORCED},
            id="told first, and alone",
        ),
        pytest.param(
            adding(fields(NAME_A), expressions(wants("zone", "In", "z2"))),
            make_pod(),
            {"c": ENFORCED},
            id="OR of terms",
        ),
        pytest.param(adding({}), make_pod(), dict.fromkeys("abc", ENFORCED), id="an empty term matches nothing"),
        pytest.param(adding(), make_pod(), {}, id="none required"),
    ],
)
def test_what_the_profile_requires(plugin: NodeAffinity, pod: PodInfo, expected: dict[str, str]) -> None:
    found = refusals(plugin, pod, snapshot_of(NODES))
    assert found == {name: {("UnschedulableAndUnresolvable", reason)} for name, reason in expected.items()}


def test_what_the_profile_requires_names_no_nodes() -> None:
    result = adding(fields(NAME_A)).prefilter(make_pod(), snapshot_of(NODES))
    assert isinstance(result, PreFilterResult)
    assert result.node_names is None


def test_what_the_profile_prefers_adds_to_the_pods_own() -> None:
    plugin = adding(preferred=[{"weight": 5, "preference": expressions(wants("gen", "Exists"))}])
    pod = preferring((30, expressions(wants("zone", "In", "z1"))))
    assert raw_scores(plugin, pod, snapshot_of(NODES)) == {"NodeAffinity": [35, 5, 5]}
    assert raw_scores(plugin, make_pod(), snapshot_of(NODES)) == {"NodeAffinity": [5, 5, 5]}


def test_a_preference_of_weight_zero_is_scored_all_the_same() -> None:
    plugin = adding(preferred=[{"weight": 0, "preference": expressions(wants("gen", "Exists"))}])
    assert raw_scores(plugin, make_pod(), snapshot_of(NODES)) == {"NodeAffinity": [0, 0, 0]}


@pytest.mark.parametrize(
    ("before", "after", "pod", "helps"),
    [
        pytest.param(None, {"zone": "z1"}, make_pod(), True, id="a matching node came"),
        pytest.param(None, {}, make_pod(), False, id="a node came that the profile leaves out"),
        pytest.param({}, {"zone": "z1"}, make_pod(), False, id="it begins to match the profile only"),
        pytest.param(
            {"zone": "z1"},
            {"zone": "z1", "gen": "8"},
            make_pod(spec={"nodeSelector": {"gen": "8"}}),
            True,
            id="it begins to match the Pod, too",
        ),
    ],
)
def test_hints_heed_the_profile(
    before: dict[str, str] | None, after: dict[str, str], pod: PodInfo, helps: bool
) -> None:
    (interest,) = adding(expressions(wants("zone", "Exists"))).events()
    old = None if before is None else make_node("n", labels=before)
    action = Action.ADD if before is None else Action.UPDATE_NODE_LABEL
    event = ClusterEvent(Resource.NODE, action, "", old=old, new=make_node("n", labels=after))
    assert interest.hint(pod, event) is (QueueingHint.QUEUE if helps else QueueingHint.SKIP)


SOME_LABELS = st.dictionaries(st.sampled_from(["zone", "gen"]), st.sampled_from(["1", "2", "3"]))
SOME_EXPRESSION = st.builds(
    wants, st.sampled_from(["zone", "gen"]), st.sampled_from(["In", "NotIn"]), st.sampled_from(["1", "2", "3"])
)
SOME_TERMS = st.lists(st.lists(SOME_EXPRESSION, min_size=1, max_size=2), max_size=3)


def slow_match(terms: list[list[dict[str, Any]]], labels: dict[str, str]) -> bool:
    """One node, any of the terms, all of its expressions: the proof of the columns."""
    return any(
        all((labels.get(one["key"]) in one["values"]) == (one["operator"] == "In") for one in term) for term in terms
    )


@settings(max_examples=150, deadline=None)
@given(
    nodes=st.lists(SOME_LABELS, min_size=1, max_size=8),
    profile=SOME_TERMS,
    own=SOME_TERMS,
    weighed=st.lists(st.tuples(st.integers(1, 100), SOME_TERMS.filter(bool)), max_size=3),
)
def test_profile_and_pod_as_the_plain_loop(
    nodes: list[dict[str, str]],
    profile: list[list[dict[str, Any]]],
    own: list[list[dict[str, Any]]],
    weighed: list[tuple[int, list[list[dict[str, Any]]]]],
) -> None:
    preferred = [{"weight": weight, "preference": expressions(*terms[0])} for weight, terms in weighed]
    plugin = adding(*(expressions(*term) for term in profile), preferred=preferred)
    pod = required(*(expressions(*term) for term in own)) if own else make_pod()
    snapshot = snapshot_of([make_node(f"n{i}", labels=labels) for i, labels in enumerate(nodes)])

    expected = {}
    for i, labels in enumerate(nodes):
        if profile and not slow_match(profile, labels):
            expected[f"n{i}"] = {("UnschedulableAndUnresolvable", ENFORCED)}
        elif own and not slow_match(own, labels):
            expected[f"n{i}"] = {("UnschedulableAndUnresolvable", OWN)}
    assert refusals(plugin, pod, snapshot) == expected
    raw = [float(sum(weight for weight, terms in weighed if slow_match(terms[:1], labels))) for labels in nodes]
    assert raw_scores(plugin, pod, snapshot) == ({"NodeAffinity": raw} if weighed else {})
