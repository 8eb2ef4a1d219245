"""What holds for every pack in `rules/`, and for the recording that belongs to it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from scheduler.app.check.rule_files import check
from scheduler.model.rules import RuleSet
from scheduler.signals.files import read_rule_files
from scheduler.signals.format.promql import selectors
from tests.packs.record import DATA, RECORDINGS, recordings_of
from tests.packs.recording import END_S
from tests.packs.world import PACKS, RULES, RecordedCluster, load
from tests.support.prometheus import PrometheusServer

EACH_RECORDED_PACK = pytest.mark.parametrize(
    "path", [pytest.param(path, id=path.stem) for path in PACKS if recordings_of(path.stem)]
)
EACH_PACK = pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in PACKS])
MAX_BYTES = 300_000


@EACH_PACK
def test_a_pack_loads_without_a_warning(path: Path) -> None:
    report = check(read_rule_files([path]))
    assert not report.problems
    assert not report.warnings
    assert report.rules.rules


@EACH_PACK
def test_a_pack_says_first_what_it_is_for(path: Path) -> None:
    comment = path.read_text().partition("apiVersion")[0]
    for word in ("Good for", "Needs", "Refuses", "Prefers"):
        assert word in comment, word


def test_all_packs_load_together_with_a_warning_for_each_two_that_measure_the_same() -> None:
    report = check(read_rule_files([RULES]))
    assert not report.problems
    doubled = [problem.message.split("'")[1::2] for problem in report.warnings]
    assert doubled == [
        ["gpu-utilisation", "gpu-card-utilisation"],
        ["gpu-memory-free", "gpu-card-memory-free"],
        ["node-cpu-use", "kubelet-cpu-use"],
    ]
    assert len(report.files) == len(PACKS) > 1


def test_no_rule_outweighs_all_others() -> None:
    """With every exporter there, no rule of a fixed weight has more than a fifth of what all of them weigh."""
    weights = [rule.weight for rule in load(RULES).rules if rule.score and isinstance(rule.weight, float)]
    assert max(weights) <= 0.2 * sum(weights)


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recording_is_what_the_script_makes(name: str) -> None:
    text = (DATA / f"{name}.om").read_text()
    assert text == RECORDINGS[name]().text()
    assert len(text) <= MAX_BYTES


def test_every_recording_has_a_pack() -> None:
    read = {path.stem: recordings_of(path.stem) for path in PACKS}
    assert {name for names in read.values() for name in names} == RECORDINGS.keys()
    assert {path.stem for path in DATA.glob("*.om")} == RECORDINGS.keys() <= read.keys()
    assert {pack for pack, names in read.items() if names} == {path.stem for path in PACKS if load(path).asked}


@EACH_RECORDED_PACK
def test_a_pack_asks_for_nothing_but_what_its_recording_holds(path: Path) -> None:
    texts = [(DATA / f"{name}.om").read_text() for name in recordings_of(path.stem)]
    recorded = {line.partition("{")[0] for text in texts for line in text.splitlines()}
    asked = {name_of(one) for signal in load(path).asked.values() for one in selectors(signal.expr)}
    assert asked <= recorded


def name_of(selector: str) -> str:
    return selector.partition("{")[0]


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    return load(RULES)


def test_promtool_takes_every_expression(rules: RuleSet, programs: Path, tmp_path: Path) -> None:
    recorded = [{"record": f"vane:{name}", "expr": signal.expr} for name, signal in rules.asked.items()]
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "packs", "rules": recorded}]}))
    outcome = subprocess.run([programs / "promtool", "check", "rules", file], capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stderr
    assert f"{len(recorded)} rules found" in outcome.stdout


def test_every_signal_has_values_and_prometheus_has_nothing_to_warn_of(
    rules: RuleSet, every_exporter: PrometheusServer
) -> None:
    cluster = RecordedCluster(every_exporter, rules)
    for name, answer in cluster.answers.items():
        assert answer.n_mapped, name
        assert not answer.warnings, name
        assert not answer.is_suspect, name


def test_every_selector_can_be_asked_for_its_time(rules: RuleSet, every_exporter: PrometheusServer) -> None:
    cluster = RecordedCluster(every_exporter, rules, END_S + 7.0)
    assert {answer.lag_s for answer in cluster.answers.values()} == {7.0}


def test_what_maps_to_no_node_is_dropped_and_counted(rules: RuleSet, every_exporter: PrometheusServer) -> None:
    drops = {name: answer.drops for name, answer in RecordedCluster(every_exporter, rules).answers.items()}
    assert {name: one.total for name, one in drops.items() if one.total} == {
        "node_probe_success": 1,
        "gpu_temperature": 1,
    }
    assert drops["node_probe_success"].unmapped == 1, "the probe of a shop, not of a node"
    assert drops["gpu_temperature"].range == 1, "a card that does not answer"


def test_node_utilisation_stays_within_its_range_at_any_time(rules: RuleSet, every_exporter: PrometheusServer) -> None:
    for name in ("node_cpu_use", "node_memory_use"):
        signal = rules.signals[name]
        assert signal.range is not None
        for series in every_exporter.query_range(signal.expr, END_S - 240.0, END_S, 7.0):
            for _, value in series["values"]:
                assert signal.range[0] <= float(value) <= signal.range[1]


def test_a_node_that_has_just_joined_does_not_look_hot(rules: RuleSet, every_exporter: PrometheusServer) -> None:
    """Half a minute after its first sample, three quarters of the window are still empty."""
    expr = rules.signals["node_cpu_use"].expr
    joined = every_exporter.values(expr, time=END_S - 270.0)
    assert len(joined) == 5
    assert joined == pytest.approx(every_exporter.values(expr, time=END_S), abs=1e-9)


def test_node_utilisation_refuses_above_eighty_percent_until_below_seventy_five(rules: RuleSet) -> None:
    for rule in rules.rules:
        if rule.name in ("node-cpu-use", "node-memory-use"):
            assert rule.filter is not None
            assert (rule.filter.max, rule.filter.max_clear) == (0.8, 0.75)
    assert rules.signals["node_cpu_use"].window_s == 180.0
