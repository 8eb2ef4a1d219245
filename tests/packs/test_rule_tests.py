"""The tests that stand beside the packs, as a user runs them: on the embedded evaluator and on a real Prometheus."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from scheduler.rule_tests.command import load, run_test_files
from scheduler.rule_tests.real_server import RealServer, find_prometheus
from scheduler.rule_tests.servers import EmbeddedServer
from tests.packs.world import PACKS, RULES

FILES = sorted((RULES / "tests").glob("*.yaml"))
EACH_FILE = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


@EACH_FILE
def test_on_the_embedded_evaluator(path: Path) -> None:
    out = io.StringIO()
    assert run_test_files([path], EmbeddedServer(), out) == 0, out.getvalue()
    assert " 0 failed" in out.getvalue()


@EACH_FILE
def test_on_a_real_prometheus(path: Path, programs: Path) -> None:
    out = io.StringIO()
    assert run_test_files([path], RealServer(find_prometheus(programs, {})), out) == 0, out.getvalue()
    assert " 0 failed" in out.getvalue()


@pytest.mark.parametrize("pack", PACKS, ids=lambda path: path.stem)
def test_every_rule_of_a_pack_has_its_expectations(pack: Path) -> None:
    file, rules, problems = load(RULES / "tests" / pack.name, EmbeddedServer())
    assert file is not None
    assert not problems
    expected = {one.rule for test in file.tests for moment in test.moments for one in moment.expected}
    assert expected == {rule.name for rule in rules.rules}
