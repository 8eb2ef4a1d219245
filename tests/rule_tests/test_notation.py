from __future__ import annotations

import math
import struct
import subprocess
from pathlib import Path

import pytest
import yaml

from scheduler.evaluator.evaluate import evaluate
from scheduler.evaluator.store import STALE_BITS
from scheduler.evaluator.values import Vector
from scheduler.rule_tests.model import InputSeries
from scheduler.rule_tests.notation import NotationError, parse_series, parse_values
from scheduler.rule_tests.servers import filled

NOTATIONS = [
    "1",
    "0+10x5 _ stale",
    "1x3",
    "5-0.1x7",
    "_x3 2 _ 3",
    "-1-1x2",
    "1e3+1e-1x4",
    ".5 1",
    "+Inf -Inf 2",
    "0+0.1x9",
]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0+10x2", [0, 10, 20]),
        ("3-1x2 7", [3, 2, 1, 7]),
        ("1x2", [1, 1, 1]),
        ("_ 1 _x2 2", [None, 1, None, None, 2]),
        ("1e2", [100]),
        ("0+0.1x3", [0.0, 0.1, 0.2, 0.1 + 0.1 + 0.1]),
    ],
)
def test_values(text: str, values: list[float | None]) -> None:
    assert parse_values(text) == values


def test_stale_is_the_marker_and_nan_is_none() -> None:
    stale, nan = parse_values("stale NaN")
    assert stale is not None
    assert nan is not None
    assert struct.unpack("<Q", struct.pack("<d", stale))[0] == STALE_BITS
    assert math.isnan(nan)
    assert struct.unpack("<Q", struct.pack("<d", nan))[0] != STALE_BITS


@pytest.mark.parametrize(
    ("text", "offset", "words"),
    [
        ("", 0, "no values"),
        ("1 two 3", 2, "no value, got 'two'"),
        ("1 0+10", 2, "how many steps, got '0+10'. Write `0+10x5`"),
        ("stalex3", 0, "'stale' stands alone"),
        ("1 _+1x3", 2, "'_' stands alone"),
        ("1x999999999", 0, "more than 100000 values"),
        ("{{schema:0}}", 0, "no value"),
    ],
)
def test_mistakes_in_values_know_their_place(text: str, offset: int, words: str) -> None:
    with pytest.raises(NotationError) as raised:
        parse_values(text)
    assert raised.value.offset == offset
    assert words in str(raised.value)


def test_series() -> None:
    assert parse_series('up{node="a", job="b c"}') == {"__name__": "up", "node": "a", "job": "b c"}
    assert parse_series("up") == {"__name__": "up"}
    assert parse_series('{__name__="a:b", x="1"}') == {"__name__": "a:b", "x": "1"}


@pytest.mark.parametrize(
    "text",
    ["", "up{", 'up{a=~"b"}', 'up{a!="b"}', "up[5m]", "up offset 5m", "sum(up)", '{a="b"}', 'up{a="1" or b="2"}'],
)
def test_what_is_no_series(text: str) -> None:
    with pytest.raises(NotationError):
        parse_series(text)


def test_promtool_reads_the_same_out_of_the_notation(programs: Path, tmp_path: Path) -> None:
    """What the evaluator sees at each interval, promtool's own test runner expects to see and does."""
    tests = []
    for i, text in enumerate(NOTATIONS):
        name = f"series_{i}"
        values = parse_values(text)
        samples = tuple((60.0 * at, value) for at, value in enumerate(values) if value is not None)
        store = filled([InputSeries({"__name__": name}, samples)])
        for at in range(len(values) + 1):
            found = evaluate(name, store, 60.0 * at)
            assert isinstance(found, Vector)
            expected = [{"labels": name, "value": float(value)} for value in found.values]
            tests.append({"expr": name, "eval_time": f"{at}m", "exp_samples": expected})
    series = [{"series": f"series_{i}", "values": text} for i, text in enumerate(NOTATIONS)]
    file = tmp_path / "test.yml"
    file.write_text(yaml.safe_dump({"tests": [{"interval": "1m", "input_series": series, "promql_expr_test": tests}]}))
    outcome = subprocess.run([programs / "promtool", "test", "rules", file], capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert len(tests) > 40
