"""The mutants still fit the code; whether the tests find them is for `make mutants` to say."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest

from tests.mutants.__main__ import ROOT, problems
from tests.mutants.catalog import MUTANTS
from tests.mutants.mutant import Mutant


def test_each_changes_one_place_that_is_there() -> None:
    assert problems(MUTANTS) == []
    assert len({one.bug for one in MUTANTS}) == len(MUTANTS) >= 40


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.bug)
def test_each_leaves_python_that_does_something_else(mutant: Mutant) -> None:
    text = (ROOT / "scheduler" / mutant.path).read_text()
    assert ast.dump(ast.parse(text.replace(mutant.old, mutant.new))) != ast.dump(ast.parse(text))


def test_what_fits_no_more_is_told() -> None:
    one = MUTANTS[0]
    gone = problems(
        [replace(one, path="model/gone.py"), replace(one, old="no such text"), replace(one, tests=("gone",))]
    )
    assert [text.removeprefix(f"{one.bug}: ") for text in gone] == [
        "there is no scheduler/model/gone.py",
        f"scheduler/{one.path} has its old text 0 times: 'no such text'",
        "there is no tests/gone",
    ]
