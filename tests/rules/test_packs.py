"""The rule packs that ship in `rules/`."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.signals.check import check
from scheduler.signals.format.parsing import parse_rule_files

RULES = Path(__file__).parents[2] / "rules"
PACKS = sorted(RULES.glob("*.yaml"))


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in PACKS])
def test_a_pack_loads_without_a_warning(path: Path) -> None:
    report = check([path])
    assert not report.problems
    assert not report.warnings
    assert report.rules.rules


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in PACKS])
def test_a_pack_says_first_what_it_is_for(path: Path) -> None:
    comment = path.read_text().partition("apiVersion")[0]
    assert "Good for" in comment
    assert "Needs" in comment


def test_all_packs_load_together() -> None:
    assert PACKS
    parse_rule_files({path.name: path.read_bytes() for path in PACKS})


def test_node_utilisation_refuses_above_eighty_percent_and_prefers_idle_nodes() -> None:
    rules = parse_rule_files({"pack": (RULES / "node-utilisation.yaml").read_bytes()})
    assert [rule.name for rule in rules.rules] == ["node-cpu-use", "node-memory-use"]
    for rule in rules.rules:
        assert rule.filter is not None
        assert rule.score is not None
        assert (rule.filter.max, rule.filter.max_clear) == (0.8, 0.75)
        assert (rule.score.curve.xs, rule.score.curve.ys) == ((0.0, 1.0), (100.0, 0.0))
    assert rules.signals["node_cpu_use"].window_s == 120.0
