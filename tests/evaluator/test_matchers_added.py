"""With matchers added, an expression answers over the series of two clusters as it does over those of one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings

from scheduler.evaluator.store import SeriesStore
from scheduler.signals.format.promql import ParsedQuery, parse_query
from scheduler.signals.format.promql_matchers import Matchers, narrowed
from tests.evaluator.comparing import difference, evaluated
from tests.evaluator.expressions import ALL
from tests.evaluator.samples import N_STEPS, STEP_MS, T0_S, made_up_samples
from tests.evaluator.test_random_expressions import expressions

NAMED: Matchers = (("cluster", 'pr"od\\\n'), ("k8s.region", "é"))
AT_S = T0_S + N_STEPS * STEP_MS / 1000 - 100.0


def store_of(*clusters: Matchers) -> SeriesStore:
    """Return samples in which the clusters have series of the same names and labels, with values of their own."""
    store = SeriesStore()
    for labels, at_ms, value in sorted(made_up_samples(), key=lambda sample: sample[1]):
        for i, named in enumerate(clusters):
            store.append({**labels, **dict(named)}, at_ms / 1000, value if i == 0 else 3.0 * value + 1.0)
    return store


@pytest.fixture(scope="module")
def alone() -> SeriesStore:
    return store_of(NAMED)


@pytest.fixture(scope="module")
def shared() -> SeriesStore:
    return store_of(NAMED, (("cluster", "edge"), ("k8s.region", "é")), ())


def compare(expr: str, alone: SeriesStore, shared: SeriesStore) -> str:
    # Of one cluster alone, the selectors of an `absent` name no cluster yet, and their labels are the answer.
    if "absent" in expr or not isinstance(parse_query(expr), ParsedQuery):
        return ""
    return difference(evaluated(shared, narrowed(expr, NAMED), AT_S), evaluated(alone, expr, AT_S))


def test_expressions_of_every_kind(alone: SeriesStore, shared: SeriesStore) -> None:
    compared = [(expr, compare(expr, alone, shared)) for expr in ALL]
    assert len(compared) > 600
    assert [one for one in compared if one[1]] == []
    mixed = [expr for expr in ALL if difference(evaluated(shared, expr, AT_S), evaluated(alone, expr, AT_S))]
    assert len(mixed) > 500, "without matchers the clusters are mixed"


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(expr=expressions)
def test_expressions_made_by_chance(expr: str, alone: SeriesStore, shared: SeriesStore) -> None:
    assert not compare(expr, alone, shared)


def test_prometheus_takes_what_was_added_to(programs: Path, tmp_path: Path) -> None:
    parsed = [expr for expr in ALL if isinstance(parse_query(expr), ParsedQuery)]
    recorded = [{"record": f"x:{i}", "expr": narrowed(expr, NAMED)} for i, expr in enumerate(parsed)]
    assert len(recorded) > 600
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "x", "rules": recorded}]}))
    outcome = subprocess.run([programs / "promtool", "check", "rules", file], capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert f"{len(recorded)} rules found" in outcome.stdout
