"""The JSON schemas of all files that users write, by their kind."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final

from scheduler.rule_tests.reader import KIND as RULE_TESTS
from scheduler.rule_tests.schema import rule_tests_schema
from scheduler.settings.file import KIND as CONFIGURATION
from scheduler.settings.scheduler import KIND as KUBE_CONFIGURATION
from scheduler.settings.schema import configuration_schema, kube_configuration_schema
from scheduler.signals.format.rule_files import KIND as RULES
from scheduler.signals.format.schema import rules_schema
from scheduler.strict_yaml.schema import Schema

SCHEMAS: Final[Mapping[str, Callable[[], Schema]]] = {
    RULES: rules_schema,
    RULE_TESTS: rule_tests_schema,
    CONFIGURATION: configuration_schema,
    KUBE_CONFIGURATION: kube_configuration_schema,
}


def schema_text(kind: str) -> str:
    """Return the schema of one kind of file, as a file."""
    return json.dumps(SCHEMAS[kind](), indent=1, ensure_ascii=False) + "\n"


def file_name(kind: str) -> str:
    """Return the name under which the schema of a kind is kept."""
    return f"{kind}.json"
