"""Every file in `bad/` says first what is wrong with it: `# want <line>:<column> <words of the message>`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scheduler.signals.format.rule_files import lint_rule_files

BAD = sorted((Path(__file__).parent / "bad").glob("*.yaml"))
WANT = re.compile(r"# want (\d+):(\d+) (.+)")
ADVICE = re.compile(r"[.;] [A-Z][a-z]+ .")


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in BAD])
def test_a_bad_file_is_refused_with_place_and_words(path: Path) -> None:
    data = path.read_bytes()
    wanted = [WANT.fullmatch(line) for line in data.decode().splitlines() if line.startswith("# want")]
    problems = lint_rule_files({path.name: data}).problems
    assert wanted
    assert len(problems) == len(wanted), problems
    for problem, want in zip(problems, wanted, strict=True):
        assert want is not None
        line, column, words = want.groups()
        assert (problem.line, problem.column) == (int(line), int(column)), problem
        assert words in problem.message


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in BAD])
def test_a_message_says_what_to_do_instead(path: Path) -> None:
    for problem in lint_rule_files({path.name: path.read_bytes()}).problems:
        assert ADVICE.search(problem.message), problem


def test_the_corpus_is_there() -> None:
    assert len(BAD) >= 30
