from __future__ import annotations

import pytest

from scheduler.promql.regex import matches_empty, regex_fault


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("a{1001}", "invalid repeat count `{1001}`"),
        ("(a{500}){3}", "invalid repeat count"),
        ("a{3,2}", "invalid repeat count"),
        ("a**", "repeated"),
        ("*a", "nothing for `*` to repeat"),
        ("a(?=b)", "`(?=b` is not known"),
        ("(a", "missing `)`"),
        ("a)", "unexpected `)`"),
        ("[a", "missing `]`"),
        ("[z-a]", "wrong way round"),
        (r"\8", "unknown escape"),
        (r"\pX", "unknown class"),
        ("[[:nope:]]", "unknown class"),
        ("\udcff+", "no valid UTF-8"),
        ("(" * 1001 + "a" + ")" * 1001, "nests too deeply"),
    ],
)
def test_a_fault_says_what_to_write(pattern: str, words: str) -> None:
    fault = regex_fault(pattern)
    assert fault is not None
    assert words in fault.problem
    assert fault.advice


@pytest.mark.parametrize(
    "pattern", ["a{1000}", "(a{500}){2}", "a{,3}", "(?i)a", "[]a]", r"\Q(*", "é|", "\udcff", r"\x{1F600}"]
)
def test_a_pattern_without_fault(pattern: str) -> None:
    assert regex_fault(pattern) is None


@pytest.mark.parametrize("pattern", ["", "a*", "a|", "(a?)(b*)", "^$", r"\B", "a{0}", "(?i)", "(|a)+", "(a|b*)*c?"])
def test_what_matches_the_empty_text(pattern: str) -> None:
    assert matches_empty(pattern)


@pytest.mark.parametrize("pattern", ["a", ".+", "a|b", r"\b", "(a|b*)c", "[^a]", "a{1,2}", "^a?b$", "(a"])
def test_what_does_not(pattern: str) -> None:
    assert not matches_empty(pattern)
