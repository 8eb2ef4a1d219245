from __future__ import annotations

from textwrap import indent

import pytest

from scheduler.app.check.rule_files import check
from tests.cli.command import RULES

CLEAN = RULES.replace("node_load1", "max by (instance) (node_load1)")
BAD = CLEAN.replace("signal: cpu, score", "signal: cpuu, score")
DEPLOYMENT = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: vane}\n"


def config_map(**data: str) -> str:
    blocks = "".join(f"  {key.replace('_', '.')}: |\n{indent(text.rstrip(), '    ')}\n" for key, text in data.items())
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: vane-rules}}\ndata:\n{blocks}"


def as_item(manifest: str) -> str:
    return "- " + indent(manifest, "  ").lstrip()


def found(text: str) -> list[tuple[str, int, int]]:
    report = check({"given.yaml": text.encode()})
    assert not report.warnings
    return [(one.file, one.line, one.column) for one in report.problems]


def place_of(word: str, text: str) -> tuple[str, int, int]:
    before = text[: text.index(word)]
    return "given.yaml", before.count("\n") + 1, len(before) - before.rfind("\n")


@pytest.mark.parametrize(
    "text",
    [
        BAD,
        f"---\n{BAD}",
        f"# rules\n---\n{DEPLOYMENT}---\n{BAD}---\n",
        config_map(a_yaml=BAD),
        f"{DEPLOYMENT}---\n{config_map(README_md='kind: x', vane_yaml='kind: VaneConfiguration', a_yml=BAD)}",
        f"apiVersion: v1\nkind: List\nitems:\n{as_item(config_map(x='y'))}{as_item(config_map(a_yaml=BAD))}",
    ],
    ids=["a file", "a document", "one of three", "a ConfigMap", "beside others", "in a list"],
)
def test_a_mistake_is_named_where_it_stands(text: str) -> None:
    assert found(text) == [place_of("cpuu", text)]
    assert not found(text.replace("cpuu", "cpu"))


def test_signals_of_one_document_are_known_in_all() -> None:
    signals, _, rules = CLEAN.partition("rules:")
    head = "apiVersion: vane.dev/v1\nkind: Rules\n"
    assert not found(f"{signals}---\n{head}rules:{rules}")
    assert not found(config_map(a_yaml=signals, b_yaml=f"{head}rules:{rules}"))


def test_a_quoted_rule_file_has_its_mistakes_at_its_start_or_better() -> None:
    text = f"apiVersion: v1\nkind: ConfigMap\ndata:\n  a.yaml: {BAD!r}\n".replace("'apiVersion", '"apiVersion')
    text = text[:-2] + '"\n'
    ((file, line, _),) = found(text)
    assert (file, line) == ("given.yaml", 4)


@pytest.mark.parametrize(
    "text",
    [config_map(README_md="x"), f"{DEPLOYMENT}---\n{DEPLOYMENT}", "apiVersion: v1\nkind: List\nitems: []\n"],
    ids=["a ConfigMap", "two documents", "a list"],
)
def test_what_has_no_rules_is_a_mistake(text: str) -> None:
    (problem,) = check({"given.yaml": text.encode()}).problems
    assert "no rule file is in it. Write" in problem.message


@pytest.mark.parametrize("kind", ["Rulez", "rules"])
def test_a_misspelt_kind_is_not_passed_over(kind: str) -> None:
    text = f"{DEPLOYMENT}---\n{CLEAN}".replace("kind: Rules", f"kind: {kind}")
    assert found(text) == [place_of(kind, text)]


@pytest.mark.parametrize("data", [b"\xff---\n", b"---\n---\n", b"", b"a" * (1 << 21), b"--- [\n--- ]\n"])
def test_nothing_given_raises(data: bytes) -> None:
    assert check({"given.yaml": data}).problems


def test_equal_names_in_two_config_maps_are_both_checked() -> None:
    text = f"{config_map(a_yaml=CLEAN)}---\n{config_map(a_yaml=BAD)}"
    assert place_of("cpuu", text) in found(text)


@pytest.mark.parametrize(
    ("broken", "is_ours"),
    [("apiVersion: vane.dev/v1\nkind: Rules\nrules: [\n", True), ("a: [\n", True), ("kind: Deployment\na: [\n", False)],
)
def test_a_document_that_is_no_yaml_is_told_if_it_may_be_ours(broken: str, is_ours: bool) -> None:
    assert bool(found(f"{CLEAN}---\n{broken}")) is is_ours


def test_a_key_that_stands_twice_in_a_config_map_is_told() -> None:
    text = config_map(a_yaml=CLEAN) + "  a.yaml: x\n"
    assert found(text) == [("given.yaml", text.count("\n"), 3)]


def test_an_escape_that_is_no_character_is_told() -> None:
    assert found('apiVersion: v1\nkind: ConfigMap\ndata: {a.yaml: "\\ud800"}\n')
