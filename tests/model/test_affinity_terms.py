"""Terms about other Pods: whom they mean, and what is said of those that cannot be read."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.errors import InvalidObjectError
from scheduler.model.pods import PodInfo
from scheduler.model.selectors import EVERYTHING, NOTHING, selector_fault, selector_of
from scheduler.model.structs import LabelSelector, Requirement
from tests.builders import make_pod

WEB = {"matchLabels": {"app": "web"}}
BROKEN = {"matchExpressions": [{"key": "app", "operator": "Bogus"}]}
CHARACTERS = (
    "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
KEY_FORM = (
    f"must {CHARACTERS} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_FORM = (
    f"a valid label must be an empty string or {CHARACTERS} (e.g. 'MyValue',  or 'my_value',  or '12345', regex used"
    " for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
PREFIX_FORM = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
    " '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def pod_with(kind: str, *terms: dict[str, Any], preferred: bool = False) -> PodInfo:
    when = "preferred" if preferred else "required"
    items = [{"weight": i + 1, "podAffinityTerm": term} for i, term in enumerate(terms)] if preferred else list(terms)
    return make_pod(
        namespace="mine", spec={"affinity": {kind: {f"{when}DuringSchedulingIgnoredDuringExecution": items}}}
    )


@pytest.mark.parametrize(
    ("term", "namespaces", "selector"),
    [
        pytest.param({}, {"mine"}, NOTHING, id="neither: the Pod's own"),
        pytest.param({"namespaces": []}, {"mine"}, NOTHING, id="no names"),
        pytest.param({"namespaces": ["a", "b"]}, {"a", "b"}, NOTHING, id="names: not its own"),
        pytest.param({"namespaceSelector": {}}, set(), EVERYTHING, id="an empty selector: all"),
        pytest.param(
            {"namespaces": ["a"], "namespaceSelector": WEB},
            {"a"},
            selector_of(LabelSelector(match_labels={"app": "web"})),
            id="both",
        ),
    ],
)
def test_which_namespaces_a_term_means(term: dict[str, Any], namespaces: set[str], selector: object) -> None:
    (found,) = pod_with("podAffinity", {"topologyKey": "zone", "labelSelector": WEB, **term}).affinity_terms.required

    assert found.topology_key == "zone"
    assert found.namespaces == namespaces
    assert found.namespace_selector == selector


@pytest.mark.parametrize(
    ("namespace", "labels", "namespace_labels", "expected"),
    [
        pytest.param("a", {"app": "web"}, {}, True, id="by name"),
        pytest.param("b", {"app": "web"}, {"team": "red"}, True, id="by label of the namespace"),
        pytest.param("b", {"app": "web"}, {}, False, id="another namespace"),
        pytest.param("a", {"app": "db"}, {}, False, id="other labels"),
    ],
)
def test_whom_a_term_means(
    namespace: str, labels: dict[str, str], namespace_labels: dict[str, str], expected: bool
) -> None:
    term = {"labelSelector": WEB, "namespaces": ["a"], "namespaceSelector": {"matchLabels": {"team": "red"}}}
    (found,) = pod_with("podAntiAffinity", term).affinity_terms.required_anti

    assert found.matches(namespace, labels, namespace_labels) is expected


def test_anti_affinity_has_negative_weights() -> None:
    terms = pod_with("podAntiAffinity", {"labelSelector": WEB}, {"labelSelector": WEB}, preferred=True).affinity_terms

    assert [one.weight for one in terms.preferred] == [-1, -2]


def test_a_list_with_a_term_that_cannot_be_read_is_empty_and_told() -> None:
    terms = pod_with("podAffinity", {"labelSelector": WEB}, {"labelSelector": WEB, "namespaceSelector": BROKEN})

    assert terms.affinity_terms.required == ()
    assert terms.affinity_terms.problem == 'requiredAffinityTerms: "Bogus" is not a valid label selector operator'


def test_a_pod_without_terms_has_none() -> None:
    assert make_pod().affinity_terms is make_pod(spec={"affinity": {"nodeAffinity": {}}}).affinity_terms
    assert make_pod().affinity_terms.problem == ""


@pytest.mark.parametrize(
    ("key", "operator", "values", "text"),
    [
        pytest.param("a", "In", ["b"], "", id="fine"),
        pytest.param("a.b/c", "DoesNotExist", None, "", id="fine, with a prefix"),
        pytest.param("a", "Gt", ["1"], '"Gt" is not a valid label selector operator', id="no such operator"),
        pytest.param(
            "a",
            "NotIn",
            [],
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
            id="no values",
        ),
        pytest.param(
            "a",
            "Exists",
            ["b"],
            'values: Invalid value: ["b"]: values set must be empty for exists and does not exist',
            id="values too many",
        ),
        pytest.param("a b", "Exists", [], f'key: Invalid value: "a b": name part {KEY_FORM}', id="a blank in the key"),
        pytest.param(
            "", "Exists", [], f'key: Invalid value: "": name part must be non-empty; name part {KEY_FORM}', id="no key"
        ),
        pytest.param(
            "n" * 64,
            "Exists",
            [],
            f'key: Invalid value: "{"n" * 64}": name part must be no more than 63 bytes',
            id="a long key",
        ),
        pytest.param("/a", "Exists", [], 'key: Invalid value: "/a": prefix part must be non-empty', id="no prefix"),
        pytest.param("A/a", "Exists", [], f'key: Invalid value: "A/a": prefix part {PREFIX_FORM}', id="a bad prefix"),
        pytest.param(
            "a/b/c",
            "Exists",
            [],
            f'key: Invalid value: "a/b/c": a valid label key {KEY_FORM} with an optional DNS subdomain prefix and'
            " '/' (e.g. 'example.com/MyName')",
            id="two slashes",
        ),
        pytest.param(
            "a",
            "In",
            ["ok", "-"],
            f'values[1][a]: Invalid value: "-": {VALUE_FORM}',
            id="a bad value",
        ),
        pytest.param(
            "a",
            "In",
            ["v" * 64, "-"],
            f'[values[0][a]: Invalid value: "{"v" * 64}": must be no more than 63 bytes,'
            f' values[1][a]: Invalid value: "-": {VALUE_FORM}]',
            id="two bad values",
        ),
    ],
)
def test_what_is_said_of_a_selector(key: str, operator: str, values: list[str] | None, text: str) -> None:
    selector = LabelSelector(match_expressions=[Requirement(key=key, operator=operator, values=values)])

    assert selector_fault(selector) == text
    if text:
        with pytest.raises(InvalidObjectError):
            selector_of(selector)
    else:
        assert selector_of(selector).terms


def test_labels_of_a_selector_are_told_before_its_expressions() -> None:
    selector = LabelSelector(match_labels={"a": "-"}, match_expressions=[Requirement(key="a", operator="Bogus")])

    assert selector_fault(selector) == f'values[0][a]: Invalid value: "-": {VALUE_FORM}'
