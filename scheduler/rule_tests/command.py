"""`vane rules test`: reads test files, runs their tests, and says what failed as `promtool test rules` does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, TextIO

from scheduler.errors import ConfigError, Problem
from scheduler.model.rules import RuleSet
from scheduler.rule_tests.model import RuleTestFile
from scheduler.rule_tests.reader import check_rules, read_test_file
from scheduler.rule_tests.runner import run_test
from scheduler.rule_tests.servers import RuleTestServer
from scheduler.signals.files import read_rule_files
from scheduler.signals.format.rule_files import lint_rule_files
from scheduler.strict_yaml.composer import MAX_BYTES

OK: Final = 0
FAILED: Final = 1


def run_test_files(paths: Sequence[Path], server: RuleTestServer, out: TextIO) -> int:
    """Run the tests of all files and return the exit code: 0 where every expectation holds, else 1."""
    n_tests = n_expectations = n_failed = 0
    is_readable = True
    for path in paths:
        file, rules, problems = load(path, server)
        if problems or file is None:
            print(f"{path}: FAILED", *problems, sep="\n  ", file=out)
            is_readable = False
            continue
        outcomes = [run_test(rules, test, server) for test in file.tests]
        n_tests += len(outcomes)
        n_expectations += sum(outcome.n_expectations for outcome in outcomes)
        failures = [failure for outcome in outcomes for failure in outcome.failures]
        n_failed += len(failures)
        print(f"{path}: {'FAILED' if failures else 'SUCCESS'}", file=out)
        for failure in failures:
            print("", *failure.lines(), sep="\n  ", file=out)
    if is_readable or n_tests:
        counts = (_count(n_tests, "test"), _count(n_expectations, "expectation"), f"{n_failed} failed")
        print(", ".join(counts), file=out)
    return OK if is_readable and not n_failed else FAILED


def load(path: Path, server: RuleTestServer) -> tuple[RuleTestFile | None, RuleSet, list[Problem | ConfigError]]:
    """Return the tests of a file, the rules that they are about, and everything that hinders running them."""
    problems: list[Problem | ConfigError] = []
    rules = RuleSet()
    try:
        data = _content(path)
    except ConfigError as error:
        return None, rules, [error]
    file, found = read_test_file(str(path), data)
    problems += found
    if file is None or not file.rule_files:
        return None, rules, problems
    try:
        linted = lint_rule_files(read_rule_files(path.parent / one for one in file.rule_files))
    except ConfigError as error:
        return file, rules, [*problems, error]
    problems += linted.problems
    if not linted.problems:
        problems += server.unsupported(linted.rules)
        problems += check_rules(file.tests, linted.rules)
    return file, linted.rules, problems


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read, got {error.strerror!r}. Write the path of a test file") from error


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
