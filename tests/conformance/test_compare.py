"""The form in which texts are compared: what is chance, and what quotes Go, is taken out of them and nothing else."""

from __future__ import annotations

import pytest

from tests.conformance.cases import Case
from tests.conformance.compare import expected_fields, in_order

HEAD = "0/2 nodes are available: 2 Insufficient cpu. preemption: "


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(HEAD + "[b, a]", HEAD + "[a, b]", id="faults as they came"),
        pytest.param(HEAD + "b, a", HEAD + "b, a", id="no faults"),
        pytest.param(
            HEAD + "[converting volume(x) from inline to csi: kind(Dedicated) is odd, a]",
            HEAD + "[a, converting volume(x) from inline to csi]",
            id="what a library says of a disk",
        ),
    ],
)
def test_texts_are_told_in_one_form(text: str, expected: str) -> None:
    assert in_order(text) == expected


def test_different_faults_stay_different() -> None:
    assert in_order(HEAD + "[a, b]") != in_order(HEAD + "[a, c]") != in_order(HEAD + "[a, c, c]")


def test_faults_of_other_nodes_say_nothing_of_a_pod_that_has_taken_its_nominated_one() -> None:
    fault = {"plugin": "NodeVolumeLimits", "code": "Error", "reasons": ["broken"]}
    answer = {"result": "scheduled", "preenqueue": None, "filter": {"a": None, "b": fault}, "nominated": {"used": True}}

    assert expected_fields(Case("c", "f", {}, {}, answer)) == {
        "result": "scheduled", "preenqueue": None, "choice": "acceptable", "nominated": True
    }  # fmt: skip
