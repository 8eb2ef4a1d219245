"""`decide` is a function: the same inputs give the same answer, in any order of nodes, in any process."""

from __future__ import annotations

import os
import subprocess
import sys
from random import Random

import pytest

from scheduler.model.rules import ByKind, Mode
from scheduler.signals.format.rule_files import parse_rule_files
from tests.contracts.purity import RULES, Scene, decisions, digest

SEEDS = range(60)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_inputs_have_the_same_answer_in_any_order_and_on_a_copy(seed: int) -> None:
    scene = Scene.of(seed)
    snapshot = scene.snapshot()
    first = decisions(scene, snapshot)

    assert decisions(scene, snapshot) == first, "asked twice"
    assert decisions(scene, snapshot.detach()) == first, "on a copy for another thread"
    assert decisions(scene) == first, "built again"
    assert decisions(scene.shuffled(Random(seed))) == first, "nodes and series in another order"


def test_another_process_decides_alike_whatever_its_hashes_of_texts() -> None:
    expected = "".join(f"{seed} {digest(seed)}\n" for seed in range(20))

    for hashing in ("1", "4711"):
        done = subprocess.run(
            [sys.executable, "-m", "tests.contracts.purity", "--number", "20", "--seed", "0"],
            env={**os.environ, "PYTHONHASHSEED": hashing},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == expected


def test_the_scenes_say_something() -> None:
    """Of many decisions each kind has some, and each kind of rule has said something different of two nodes."""
    found = [one for seed in SEEDS for one in decisions(Scene.of(seed))]
    refusing = {refusal["rule"] for one in found if "record" in one for refusal in one["record"]["refusals"]}
    telling = {
        name.removeprefix("SignalScore ")
        for one in found
        for name, (_, by_node) in one.get("terms", {}).items()
        if len(set(by_node.values())) > 1
    }

    assert sum(bool(one.get("record", {}).get("node")) for one in found) > 30
    assert sum(bool(one.get("victims")) for one in found) > 0
    assert refusing >= {"use", "smooth", "burning", "cards", "few", "own-zone", "tenant red"}
    assert telling >= {"use", "smooth", "zone", "cards", "mine", "trip", "mates", "full", "few", "taught"}
    assert any(one.get("record", {}).get("shadows") for one in found)
    uses = [use for one in found for use in one.get("record", {}).get("rules", ())]
    assert {bool(use["inflight"]) for use in uses if use["signal"] in ("use", "taught")} == {True, False}


def test_rules_of_every_kind_are_among_them() -> None:
    rules = parse_rule_files({"rules.yaml": RULES.encode()})

    assert {signal.by for signal in rules.signals.values()} == set(ByKind)
    assert {rule.mode for rule in rules.rules} == set(Mode)
    assert any(rule.canary for rule in rules.rules)
    assert any(rule.label_match for rule in rules.rules)
    assert any(signal.inflight for signal in rules.signals.values())
    assert rules.tenants
