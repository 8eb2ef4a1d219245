from __future__ import annotations

import pytest

from scheduler.errors import Problem, RuleFilesError
from scheduler.signals.format.rule_files import parse_rule_files
from scheduler.strict_yaml.composer import MAX_BYTES

GOOD = b"apiVersion: vane.dev/v1\nkind: Rules\nsignals: {use: {expr: max by (node) (use)}}\n"


def problems(data: bytes) -> tuple[Problem, ...]:
    with pytest.raises(RuleFilesError) as caught:
        parse_rule_files({"a.yaml": data})
    return caught.value.problems


@pytest.mark.parametrize(
    ("data", "line", "column", "words"),
    [
        pytest.param(b"kind: R\xfcles", 1, 8, "not UTF-8, got byte 0xfc", id="latin-1"),
        pytest.param(b"a: 1\n\xc3\xa9\xff", 2, 2, "not UTF-8", id="column counts characters"),
        pytest.param("kind: Rules\n".encode("utf-16"), 1, 1, "not UTF-8", id="utf-16"),
        pytest.param(b"a: 1\nb: \x00", 2, 4, "U+0000", id="nul"),
        pytest.param("a: x\u2028y".encode(), 1, 5, "U+2028", id="line separator"),
        pytest.param(b"# nothing\n", 1, 1, "the file is empty", id="only a comment"),
        pytest.param(b"---\n", 2, 1, "got nothing", id="an empty document"),
        pytest.param(b"? [a]\n: 1\n", 1, 3, "a key that is not text", id="a list as key"),
        pytest.param(b"%YAML 3.0\n---\na: 1\n", 1, 1, "incompatible", id="another version"),
        pytest.param(b"a: !!python/object:os.system x\n", 1, 4, "a tag", id="python tag"),
        pytest.param(b"a: &here 1\n", 1, 4, "an anchor, got '&here'", id="anchor"),
        pytest.param(b"a: *nowhere\n", 1, 4, "an alias, got '*nowhere'", id="undefined alias"),
        pytest.param(b"<<: {a: b}\n", 1, 1, "unknown field, got '<<'", id="merge key"),
        pytest.param(b"a: {b: c[5m]}\n", 1, 9, "brackets, braces or commas in quotes", id="promql in braces"),
        pytest.param(b"[" * 100_000, 1, 21, "nested more than 20 deep", id="deep"),
        pytest.param(b"#" * (MAX_BYTES + 1), 1, 1, "a file may have 1 MiB, got more", id="too big"),
    ],
)
def test_what_is_no_plain_yaml_is_refused(data: bytes, line: int, column: int, words: str) -> None:
    there = [problem.message for problem in problems(data) if (problem.line, problem.column) == (line, column)]
    assert any(words in message for message in there), problems(data)


def test_a_file_of_a_mebibyte_is_read() -> None:
    assert parse_rule_files({"a.yaml": GOOD + b"#" * (MAX_BYTES - len(GOOD))}).signals


def test_a_byte_order_mark_and_crlf_are_harmless() -> None:
    rules = parse_rule_files({"a.yaml": b"\xef\xbb\xbf" + GOOD.replace(b"\n", b"\r\n")})
    assert rules.signals["use"].where == "a.yaml:3:11"
