"""What the readers say of a file, by its kind; and every file that differs from another in one value."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from scheduler.errors import ConfigError
from scheduler.rule_tests.reader import read_test_file
from scheduler.settings.load import load
from scheduler.signals.format.rule_files import lint_rule_files

WRONG = (
    "0", "1", "-1", "0.5", "80%", "500m", "15s", "30d", '""', '"5"', "web", '"Bad Key"', "Web_1", "true", "null",
    "[]", "[a]", "[1, 2]", "{}", "{a: b}",
)  # fmt: skip
"""What is written in place of each value; nothing that YAML 1.1 and 1.2 read differently."""


def problems(kind: str, text: str, folder: Path) -> list[str]:
    """Return what is wrong with a file by the program that reads it."""
    match kind:
        case "Rules":
            return [str(problem) for problem in lint_rule_files({"rules.yaml": text.encode()}).problems]
        case "RuleTests":
            return [str(problem) for problem in read_test_file("tests.yaml", text.encode())[1]]
        case _:
            path = folder / "vane.yaml"
            path.write_text(text)
            try:
                load({"config": str(path)}, {})
            except ConfigError as error:
                return str(error).splitlines()
            return []


def changed(text: str) -> Iterator[tuple[str, str]]:
    """Yield what has been changed, and the file: each value replaced by each wrong one, each name by another."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    for path, node, is_name in _nodes(root, ""):
        for other in ("bogus_field",) if is_name else WRONG:
            start, end = node.start_mark.index, node.end_mark.index
            yield f"{path} = {other}", f"{text[:start]}{other}{text[end:]}"


def _nodes(node: yaml.Node, path: str) -> Iterator[tuple[str, yaml.Node, bool]]:
    """Yield path, node, and whether it is a name; what is written over several lines is left whole."""
    if path and node.start_mark.line == node.end_mark.line:
        yield path, node, False
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield f"{path}.{key.value}", key, True
            yield from _nodes(value, f"{path}.{key.value}")
    elif isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            yield from _nodes(item, f"{path}[{number}]")
