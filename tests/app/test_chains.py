"""Merging with the default chain, against what kube-scheduler 1.37.1 made of the same random profiles.

Its default plugins and which points they have stand in the first line of the data: what is compared is the merging.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from scheduler.app.chains import Line, PointPlugins, chains, merge

FIRST, *CASES = [json.loads(line) for line in gzip.open(Path(__file__).parent / "data" / "profiles.jsonl.gz", "rt")]
DEFAULTS = [Line(item["name"], item.get("weight", 1)) for item in FIRST["defaults"]]


def wanted(plugins: dict[str, Any], point: str) -> PointPlugins:
    given = plugins.get(point, {})
    lines = [Line(item["name"], item.get("weight", 1)) for item in given.get("enabled", ())]
    return PointPlugins(lines, frozenset(item["name"] for item in given.get("disabled", ())))


@pytest.mark.parametrize("case", CASES, ids=lambda case: ",".join(case["plugins"]))
def test_chains_are_those_of_kube_scheduler(case: dict[str, Any]) -> None:
    found = chains(
        DEFAULTS,
        wanted(case["plugins"], "multiPoint"),
        {point: wanted(case["plugins"], point) for point in case["points"]},
        lambda name, point: name in FIRST["implements"][point],
    )

    names = {point: [row[0] for row in rows] for point, rows in case["points"].items()}
    assert {point: [line.name for line in lines] for point, lines in found.items()} == names
    assert {line.name: line.weight for line in found["score"]} == dict(case["points"]["score"])


def test_the_cases_reach_every_rule() -> None:
    def says(case: dict[str, Any], point: str, key: str) -> set[str]:
        return {item["name"] for item in case["plugins"].get(point, {}).get(key, ())}

    assert len(CASES) > 200
    assert any("*" in says(case, "multiPoint", "disabled") for case in CASES)
    assert any("*" in says(case, "score", "disabled") for case in CASES)
    assert any(says(case, "filter", "enabled") & says(case, "filter", "disabled") for case in CASES)
    assert any(says(case, "score", "enabled") & says(case, "multiPoint", "enabled") for case in CASES)
    assert any(says(case, "multiPoint", "enabled") & {line.name for line in DEFAULTS} for case in CASES)


def test_a_default_that_is_enabled_again_keeps_its_place_and_loses_its_weight() -> None:
    defaults = [Line("A", 3), Line("B")]
    assert merge(defaults, PointPlugins([Line("C"), Line("A")])) == [Line("A", 1), Line("B"), Line("C")]
