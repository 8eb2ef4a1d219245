"""The same as `test_verdicts`, with Prometheus' own parser asked now."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from scheduler.promql.functions import FUNCTIONS
from tests.promql.corpus import load
from tests.promql.generator import expressions
from tests.promql.judging import by_prometheus, differences

N_FRESH = 3_000
"""`python -m tests.promql --generate 20000` asks about more."""


def test_the_corpus_is_what_prometheus_says(promql_parser: Path) -> None:
    known = [pair for judged in load().values() for pair in judged]
    assert by_prometheus(promql_parser, [expr for expr, _ in known]) == [verdict for _, verdict in known]


def test_fresh_expressions_are_read_alike(promql_parser: Path) -> None:
    exprs = list(expressions(20_261_124, N_FRESH))
    verdicts = by_prometheus(promql_parser, exprs)
    assert differences(exprs, verdicts) == []
    assert 0.3 * N_FRESH < sum(verdict.is_valid for verdict in verdicts) < 0.7 * N_FRESH


def test_the_functions_are_those_of_prometheus(promql_parser: Path) -> None:
    done = subprocess.run([promql_parser, "functions"], capture_output=True, text=True, check=True)
    theirs = {
        name: (one["ArgTypes"], one["ReturnType"], one["Variadic"], one["Experimental"])
        for name, one in json.loads(done.stdout).items()
    }
    ours = {
        name: ([str(kind) for kind in one.arguments], str(one.returns), one.variadic, one.is_experimental)
        for name, one in FUNCTIONS.items()
    }
    assert ours == theirs
