from __future__ import annotations

import json
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from scheduler.framework.profile import Enabled, Profile
from scheduler.plugins import default_chain
from tests.conformance.cases import DATA, Case, load
from tests.conformance.compare import compare
from tests.conformance.generate.__main__ import set_aside_chance
from tests.conformance.generate.coverage import FACTS, counted, facts_of
from tests.conformance.generate.families import FAMILIES, case_named, cases, turns
from tests.conformance.generate.oracle import OracleError, answered, without_chance
from tests.conformance.report import Report, report_on

ONE_OF_EACH = len(turns())
"""So many cases hold each family at least once."""


def test_a_seed_makes_the_same_cases_however_many_are_asked_for() -> None:
    few, many = list(cases(7, 40)), list(cases(7, 120))

    assert many[:40] == few
    assert len({case["name"] for case in many}) == 120


def test_another_seed_makes_other_cases() -> None:
    here, there = cases(7, 40), cases(8, 40)

    assert all(one["objects"] != other["objects"] for one, other in zip(here, there, strict=True))


def test_a_case_is_made_again_by_its_name() -> None:
    made = list(cases(7, 40))

    assert [case_named(case["name"]) for case in made] == made


@pytest.mark.parametrize("name", ["7-nobody-00001", "7-taints-x", "taints"])
def test_a_name_that_no_case_has_is_told(name: str) -> None:
    with pytest.raises(ValueError, match=r"nobody|'x'|not enough values"):
        case_named(name)


def test_every_family_has_its_turn() -> None:
    families = Counter(case["family"] for case in cases(1, ONE_OF_EACH))

    assert set(families) == set(FAMILIES)


def test_objects_stand_as_an_api_server_lists_them_and_names_are_taken_once() -> None:
    for case in cases(3, 200):
        for items in case["objects"].values():
            names = [(one["metadata"].get("namespace", ""), one["metadata"]["name"]) for one in items]
            assert names == sorted(set(names))


def expect(**fields: Any) -> dict[str, Any]:
    answer = {"result": "unschedulable", "node_order": ["a", "b"], "feasible": []} | fields
    return {"objects": {"nodes": [{}]}, "pod": {"spec": {}, "status": {}}, "expect": answer}


def refused(plugin: str, *reasons: str) -> dict[str, Any]:
    return expect(filter={"a": None, "b": {"plugin": plugin, "code": "Unschedulable", "reasons": list(reasons)}})


def outcome(**fields: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "message": "", "nominated_node": "", "clears_nomination": False, "victims": [], "acceptable_nodes": [],
        "candidates": {}, "non_candidates": {}, "deleted": [], "cleared_nominations": None,
    }  # fmt: skip
    return expect(postfilter=plain | fields)


VICTIMS = {"victims": ["x/p", "x/q"], "pdb_violations": 1}


@pytest.mark.parametrize(
    ("case", "fact"),
    [
        pytest.param(
            refused("NodeResourcesFit", "Insufficient cpu"), "reason NodeResourcesFit: Insufficient cpu", id="a reason"
        ),
        pytest.param(
            refused("NodeResourcesFit", "Insufficient a.b/c"),
            "reason NodeResourcesFit: Insufficient …",
            id="of scalars",
        ),
        pytest.param(
            expect(prefilter={"plugin": "P", "code": "Error", "reasons": ['claim "x" is gone']}),
            "reason before nodes P: claim … is gone",
            id="a reason of PreFilter, without the name",
        ),
        pytest.param(expect(scores={"P": {"a": 1, "b": 2}}), "score P differs", id="scores that differ"),
        pytest.param(expect(scores={"P": {"a": 100}}), "score P is 100 somewhere", id="the best score"),
        pytest.param(expect(score_skipped=["P"]), "score P is left out", id="a plugin left out"),
        pytest.param(expect(raw={"P": {"a": -1}}), "raw score P below 0", id="a negative score"),
        pytest.param(
            expect(scores={"NodeResourcesBalancedAllocation": {"a": 76}}),
            "score NodeResourcesBalancedAllocation is above 75",
            id="a node that becomes more even",
        ),
        pytest.param(
            outcome(nominated_node="a", candidates={"a": VICTIMS}, acceptable_nodes=["a", "b"]),
            "preemption breaks a budget",
            id="a broken budget",
        ),
        pytest.param(
            outcome(nominated_node="a", candidates={"a": VICTIMS}, acceptable_nodes=["a", "b"]),
            "preemption ties",
            id="a tie",
        ),
        pytest.param(
            outcome(nominated_node="a", candidates={"a": VICTIMS}, victims=["x/p"], deleted=[]),
            "preemption finds victims that are terminating",
            id="a victim that needs no deleting",
        ),
        pytest.param(
            outcome(non_candidates={"a": {"plugin": "", "reasons": ["No preemption victims found for incoming pod"]}}),
            "preemption finds no victims on a node",
            id="nobody to evict",
        ),
        pytest.param(
            expect(nominated={"node": "gone", "used": False}), "nomination to a node that is gone", id="a nomination"
        ),
    ],
)
def test_what_an_answer_reaches(case: dict[str, Any], fact: str) -> None:
    assert fact in facts_of(case)
    assert fact not in facts_of(expect())


def test_facts_that_nothing_reaches_are_counted_too() -> None:
    assert set(counted([])) == set(FACTS)
    assert set(counted([]).values()) == {0}


def test_a_tie_is_no_difference_between_two_answers() -> None:
    tie = outcome(nominated_node="a", acceptable_nodes=["a", "b"])["expect"] | {"failure_message": "on a"}
    other = outcome(nominated_node="b", acceptable_nodes=["a", "b"])["expect"] | {"failure_message": "on b"}
    alone = outcome(nominated_node="b", acceptable_nodes=["b"])["expect"]

    assert without_chance(tie) == without_chance(other)
    assert without_chance(alone) != without_chance(other)


def test_the_order_of_faults_is_no_difference_between_two_answers() -> None:
    def told(faults: str) -> dict[str, Any]:
        answer = outcome(message=f"preemption: [{faults}]")["expect"]
        return without_chance(answer | {"failure_message": f"0/2. preemption: [{faults}]", "event_message": faults})

    assert told("a, b") == told("b, a") != told("b, c")


def test_the_oracle_answers_as_the_shared_one(oracle: Path) -> None:
    """Three cases of each file, whoever made the file."""
    known = [case for path in sorted(DATA.glob("*.jsonl.gz")) for case in islice(load([path]), 3)]
    asked = [
        {"name": case.name, "family": case.family, "objects": case.objects, "pod": case.pod_fields} for case in known
    ]

    for case, found in zip(known, answered(oracle, asked), strict=True):
        assert without_chance(found["expect"]) == without_chance(case.expect), case.name


def test_vane_answers_fresh_cases_as_kube_scheduler(oracle: Path) -> None:
    made = list(cases(20_261_121, 2 * ONE_OF_EACH))
    report = report_on(Case.of(case) for case in answered(oracle, made))
    set_aside_chance(report, oracle, made)

    assert report.differences == []
    assert sum(counts["cases"] for counts in report.compared.values()) > ONE_OF_EACH


def test_a_wrong_weight_shows_on_fresh_cases(oracle: Path) -> None:
    wrong = [Enabled(one.plugin, one.weight + (one.plugin.name == "ImageLocality")) for one in default_chain()]
    profile = Profile.build("vane", wrong)
    found = [Case.of(case) for case in answered(oracle, cases(1, 10, ["imagelocality"]))]

    assert any(compare(case, profile)[1] for case in found)


def test_a_profile_of_the_case_is_used_by_both(oracle: Path) -> None:
    (case,) = cases(1, 1, ["imagelocality"])
    weighed = {"multiPoint": {"enabled": [{"name": "ImageLocality", "weight": 17}]}}
    (answer,) = answered(oracle, [case | {"profile": {"schedulerName": "default-scheduler", "plugins": weighed}}])
    report = report_on([Case.of(answer)])

    assert answer["expect"]["weights"]["ImageLocality"] == 17
    assert report.differences == []


def test_what_kube_scheduler_crashes_on_is_a_gap_and_vane_goes_on(oracle: Path) -> None:
    answers = [Case.of(case) for case in answered(oracle, cases(1, 40, ["volumescrash"]))]
    crashed = [case for case in answers if case.expect["result"] == "crash"]
    report = report_on(answers)

    assert crashed
    for case in crashed:
        assert (
            case.gap
            == "kube-scheduler 1.37.1 crashes: runtime error: invalid memory address or nil pointer dereference"
        )
        assert case.name in report.gaps or case.needs()


def test_profiles_that_make_dynamic_resources_speak_otherwise_are_gaps() -> None:
    ended = {"code": "UnschedulableAndUnresolvable"}
    spoke, silent = outcome(message="not found"), outcome(message="preemption: no")

    def gap(answer: dict[str, Any], **sets: Any) -> str:
        profile = {"plugins": sets}
        return Case("c", "f", {}, {}, answer["expect"] | {"prefilter": ended}, profile).gap

    assert gap(spoke) == gap(silent) == ""
    assert "where DefaultPreemption is disabled" in gap(spoke, postFilter={"disabled": [{"name": "DefaultPreemption"}]})
    assert "where it is disabled" in gap(silent, multiPoint={"disabled": [{"name": "*"}]})
    assert gap(spoke, multiPoint={"disabled": [{"name": "*"}], "enabled": [{"name": "DefaultPreemption"}]}) != ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"pod": {"spec": {"nodNam": "x"}}}, 'pod: json: unknown field "nodNam"', id="a misspelt field"),
        pytest.param({"profile": {"percentageOfNodesToScore": 101}}, "profile: profiles[0]", id="a wrong profile"),
        pytest.param({"objects": {"pods": [{"metadata": {"name": "x"}}]}}, "pod 0 has no name or no UID", id="no UID"),
    ],
)
def test_what_is_no_case_is_told_by_name(oracle: Path, change: dict[str, Any], message: str) -> None:
    (case,) = cases(1, 1)

    with pytest.raises(OracleError, match=f'^oracle: case "{case["name"]}": ') as caught:
        list(answered(oracle, [case | change]))
    assert message in str(caught.value)


def test_a_case_that_kube_scheduler_answers_in_two_ways_is_set_aside(tmp_path: Path) -> None:
    """The stand-in answers every asking otherwise: with a number that grows."""
    stand_in = tmp_path / "oracle"
    answer = '{\\"name\\": \\"1-taints-00000\\", \\"expect\\": {\\"n\\": $n}}'
    stand_in.write_text(f'#!/bin/sh\nn=0\nwhile read -r line; do n=$((n+1)); echo "{answer}"; done\n')
    stand_in.chmod(0o755)
    (case,) = cases(1, 1, ["taints"])
    wrong = {"result": "scheduled", "preenqueue": None, "feasible": ["nowhere"]}
    report = Report()
    report.add(Case.of(case | {"expect": wrong}))
    assert {one.case for one in report.differences} == {case["name"]}

    set_aside_chance(report, stand_in, [json.loads(json.dumps(case))])

    assert report.differences == []
    assert list(report.gaps) == [case["name"]]
    assert [line for line in report.lines() if line.startswith("all")] == ["all: 0/0 cases equal, 0 need more, 1 gaps"]
