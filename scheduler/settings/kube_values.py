"""Values of a KubeSchedulerConfiguration, typed as kube-scheduler's YAML types them: 4 for `4.0`, true for `yes`."""

from __future__ import annotations

from typing import Any, Final

from scheduler.strict_yaml.document import Document, read_plain
from scheduler.strict_yaml.fields import Fields
from scheduler.strict_yaml.nodes import YamlNode, is_broken
from scheduler.strict_yaml.report import Scope, got

INT32: Final = 2**31 - 1
INT64: Final = 2**63 - 1
MAX_NAME: Final = 253


def read_data(node: YamlNode, scope: Scope) -> Document:
    """Return a node as plain data."""
    document = read_plain(node, scope)
    return Document(_whole_numbers(document.value), document.places)


def read_name(fields: Fields, name: str, example: str) -> str:
    """Return a text that must be there; "" where it is wrong."""
    node, scope = fields.get(name), fields.scope.inner(name)
    value = "" if node is None else read_data(node, scope).value
    if isinstance(value, str) and value and len(value) <= MAX_NAME and not any(map(str.isspace, value)):
        return value
    if node is None or not is_broken(node):
        found = "got nothing" if node is None else got(node)
        what = f"must be 1 to {MAX_NAME} characters without spaces, {found}. Write for example {example}"
        scope.problem(node or fields.node, what)
    return ""


def check_text(fields: Fields, name: str) -> None:
    """Report what is no text, where anything is given."""
    node, scope = fields.get(name), fields.scope.inner(name)
    if node is None or is_broken(node):
        return
    if not isinstance(read_data(node, scope).value, str):
        scope.problem(node, f"must be text, {got(node)}. Write another, or drop it")


def read_whole(fields: Fields, name: str, least: int, greatest: int) -> int | None:
    """Return a whole number within bounds; None where it is wrong or not there."""
    node, scope = fields.get(name), fields.scope.inner(name)
    if node is None or is_broken(node):
        return None
    value = read_data(node, scope).value
    if type(value) is int and least <= value <= greatest:
        return value
    upper = f"to {greatest}" if greatest < INT64 else "on"
    scope.problem(node, f"must be a whole number from {least} {upper}, {got(node)}. Write another, or drop it")
    return None


def read_number(fields: Fields, name: str) -> float:
    """Return a number; 0, which is unset, where it is wrong or not there."""
    node, scope = fields.get(name), fields.scope.inner(name)
    if node is None or is_broken(node):
        return 0
    value = read_data(node, scope).value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    scope.problem(node, f"must be a number, {got(node)}. Write another, or drop it")
    return 0


def read_switch(fields: Fields, name: str) -> bool:
    """Return whether it is switched on; what is wrong or not there is off."""
    node, scope = fields.get(name), fields.scope.inner(name)
    if node is None or is_broken(node):
        return False
    value = read_data(node, scope).value
    if isinstance(value, bool):
        return value
    scope.problem(node, f"must be true or false, {got(node)}. Write one of them, or drop it")
    return False


def _whole_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _whole_numbers(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
