"""A file as an editor sees it: YAML 1.2 read into plain data, then judged by a schema."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import jsonschema
import yaml

from scheduler.app.schemas import SCHEMAS


class _Loader(yaml.SafeLoader):
    """The core schema of YAML 1.2, which yaml-language-server reads: `on` is text there, `1e3` a number."""


_Loader.yaml_implicit_resolvers = {}


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf)|\.(nan|NaN)", "-+.0123456789"),
):
    _first_chars = ["" if char == "\0" else char for char in _first]
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), _first_chars)


def _number(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> float:
    text = str(loader.construct_scalar(node)).lower()
    return float(text.replace(".inf", "inf").replace(".nan", "nan"))


def _whole(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    text = str(loader.construct_scalar(node))
    return int(text, 0) if text[:2] in ("0o", "0x") else int(text)


_Loader.add_constructor("tag:yaml.org,2002:float", _number)
_Loader.add_constructor("tag:yaml.org,2002:int", _whole)


def load(text: str) -> Any:
    """Return the plain data of a file; yaml.YAMLError where it is no YAML."""
    return yaml.load(text, Loader=_Loader)


@cache
def validator(kind: str) -> jsonschema.Draft7Validator:
    schema = SCHEMAS[kind]()
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def faults(kind: str, text: str) -> list[str]:
    """Return what an editor would underline, as `path: message`."""
    try:
        data = load(text)
    except yaml.YAMLError as error:
        return [f"no YAML: {error}"]
    return [f"{error.json_path}: {error.message}" for error in validator(kind).iter_errors(data)]
