"""A schema judges as the reader does, whatever is written into any field; where it can't, the fault is in a list here.

A field that is added to a reader must be added to its schema, and to a file of `documents`: tests fail until both are
done, and then write each wrong value into it.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from pkgutil import iter_modules
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import scheduler.rule_tests
import scheduler.settings
import scheduler.signals.format
from scheduler.app.schemas import SCHEMAS
from scheduler.strict_yaml.fields import Shape
from scheduler.strict_yaml.schema import TEXT, fields_of
from tests.readme import CHECKOUT
from tests.schema.documents import CONFIGURATIONS, KUBE_CONFIGURATIONS, RULE_TESTS, RULES
from tests.schema.editor import faults, load
from tests.schema.judges import changed, problems

BAD = sorted((CHECKOUT / "tests" / "signals" / "format" / "bad").glob("*.yaml"))

DOCUMENTS = {
    "Rules": RULES,
    "RuleTests": RULE_TESTS,
    "VaneConfiguration": CONFIGURATIONS,
    "KubeSchedulerConfiguration": KUBE_CONFIGURATIONS,
}

BEYOND_A_SCHEMA = {
    # What YAML allows and Vane does not.
    "an alias or anchor": r"an (alias|anchor), got",
    "a tag": r"a tag, got",
    "a key that stands twice": r"is given twice, first in line",
    "words that other readers of YAML take for something else": r"must be a text, got 'on' without quotes",
    "numbers with a leading zero": r"must be a number, got 010",
    "numbers that are none": r"must be a (finite )?number, got (\.inf|\.nan|1e400)",
    # What another part of the file, or another file, has to say.
    "names that are declared elsewhere": r"unknown signal|no such node|is on no node of this test",
    "names that are used twice": r"is defined twice",
    "suffixes of the signal's unit": r"does not convert to|a suffix needs a unit",
    "what in-flight amounts follow from": r"does not follow from",
    "rules that do not suit the kind of their signal": r"belongs to a signal `by:|and `(calls|workload)` is missing"
    r"|is one number for the cluster|a weight is one number|a weight needs a signal|is built in",
    "points that rank cards": r"must only rise or only fall",
    # What compares values, or measures texts.
    "limits against each other": r"must be (below|above) (max|min)",
    "ends of a scale": r"best and worst must differ|the lowest must be below the highest|x must rise"
    r"|from and to must be two",
    "bounds of durations": r"must be from 1s to 1d|above 0s and at most (1h|7d)|at least two intervals"
    r"|must be from 30s, two intervals|must be within 7d",
    "times in order": r"moments must rise|must be after it is placed|must not be before it is placed",
    "durations of the election": r"must be longer than",
    "amounts that no Pod can add or request": r"not an amount that a Pod can add|Write 0 or more",
    "an overcommit that needs no bound": r"applies only to an overcommit above 100 %",
    "files that need each other, one of them null": r"also needs",
    # Other languages.
    "PromQL": r"PromQL|leaves no label|one number for all nodes|got a range of samples|got a string",
    "promtool's notation": r"no series, got|no value, got|no values, got|a series without a name",
}
"""Faults that a schema can't express, by the words of the reader; `vane check` and the like find them."""

STRICTER = {
    "a query that is a bare true or null is most often a slip": r"\.(expr|lag|series|values) = (true|null)",
    "what is a mapping is not written as an empty list": r"\.(clusters|headers|matchers) = \[\]",
}
"""What a schema refuses on purpose although the reader takes it."""


class Judged(NamedTuple):
    """A file that differs in one value from a good one: what the reader says, what an editor underlines."""

    what: str
    said: Sequence[str]
    underlined: Sequence[str]


@cache
def judged(kind: str) -> Sequence[Judged]:
    with TemporaryDirectory() as folder:
        return [
            Judged(what, problems(kind, other, Path(folder)), faults(kind, other))
            for text in DOCUMENTS[kind]
            for what, other in changed(text)
        ]


@pytest.mark.parametrize("kind", SCHEMAS)
def test_the_documents_are_good(kind: str, tmp_path: Path) -> None:
    for text in DOCUMENTS[kind]:
        assert (problems(kind, text, tmp_path), faults(kind, text)) == ([], [])


@pytest.mark.parametrize("kind", SCHEMAS)
def test_schema_and_reader_agree_on_every_value_in_every_field(kind: str) -> None:
    judgements = judged(kind)
    assert len(judgements) > 500
    assert [one for one in judgements if one.underlined and not one.said and not _is_stricter(one.what)] == []
    assert [one for one in judgements if one.said and not one.underlined and not all(map(_is_beyond, one.said))] == []


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in BAD])
def test_a_bad_file_is_refused_unless_its_fault_is_beyond_a_schema(path: Path, tmp_path: Path) -> None:
    text = path.read_text()
    if not faults("Rules", text):
        assert [problem for problem in problems("Rules", text, tmp_path) if not _is_beyond(problem)] == []


def test_what_is_said_to_be_beyond_a_schema_or_stricter_is_so() -> None:
    passed = [one for kind in SCHEMAS for one in judged(kind) if one.said and not one.underlined]
    texts = [path.read_text() for path in BAD]
    said = [problem for one in passed for problem in one.said]
    said += [problem for text in texts if not faults("Rules", text) for problem in problems("Rules", text, Path())]
    assert [why for why, words in BEYOND_A_SCHEMA.items() if not any(re.search(words, one) for one in said)] == []
    strict = [one.what for kind in SCHEMAS for one in judged(kind) if one.underlined and not one.said]
    assert [why for why, words in STRICTER.items() if not any(re.search(words, what) for what in strict)] == []


@pytest.mark.parametrize("kind", SCHEMAS)
def test_every_field_of_a_schema_stands_in_a_good_file(kind: str) -> None:
    written = {name for text in DOCUMENTS[kind] for name in _names(load(text))}
    known = set(_fields(SCHEMAS[kind]()))
    if kind == "VaneConfiguration":
        known -= set(_fields(SCHEMAS["KubeSchedulerConfiguration"]())) - written  # of its block, tested by itself
    if "Configuration" in kind:
        known = {
            name
            for name in known
            if not re.fullmatch(r"(pre|post|multi|placement|pod)[A-Z]\w*|queueSort|filter|reserve|permit|bind", name)
        }
    assert known - written == set()


def _names(data: Any) -> Iterator[str]:
    if isinstance(data, dict):
        yield from data
    for value in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from _names(value)


def _fields(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        fields = schema.get("properties", {})
        yield from (name for name, field in fields.items() if field is not False)
    for value in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _fields(value)


@pytest.mark.parametrize(
    ("package", "kinds"),
    [
        (scheduler.signals.format, ["Rules"]),
        (scheduler.rule_tests, ["RuleTests"]),
        (scheduler.settings, ["VaneConfiguration", "KubeSchedulerConfiguration"]),
    ],
)
def test_every_shape_of_a_reader_is_in_a_schema(package: ModuleType, kinds: Sequence[str]) -> None:
    described = {fields for kind in kinds for fields in _mappings(SCHEMAS[kind]())}
    modules = [importlib.import_module(f"{package.__name__}.{found.name}") for found in iter_modules(package.__path__)]
    shapes = [
        (f"{module.__name__}.{name}", frozenset(map(str, shape.fields)))
        for module in modules
        for name, shape in vars(module).items()
        if isinstance(shape, Shape)
    ]
    assert len(shapes) > 5
    assert [name for name, fields in shapes if fields not in described] == []


def _mappings(schema: Any) -> Iterator[frozenset[str]]:
    """Yield the fields of each mapping of which all fields are known."""
    if isinstance(schema, dict) and schema.get("additionalProperties") is False:
        yield frozenset(schema["properties"])
    for value in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _mappings(value)


def test_a_field_without_a_schema_is_refused_by_name() -> None:
    shape = Shape(fields=("name", "added"))
    with pytest.raises(LookupError, match="no schema for added; the reader has the fields name, added"):
        fields_of(shape, {"name": TEXT})
    with pytest.raises(LookupError, match="a schema for dropped"):
        fields_of(shape, {"name": TEXT, "added": TEXT, "dropped": TEXT})


def _is_stricter(what: str) -> bool:
    return any(re.search(words, what) for words in STRICTER.values())


def _is_beyond(problem: str) -> bool:
    return any(re.search(words, problem) for words in BEYOND_A_SCHEMA.values())
