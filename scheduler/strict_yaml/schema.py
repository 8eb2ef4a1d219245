"""JSON schemas (draft-07) of what is read field by field: for editors, which know no rule file. Pure.

What a field may hold is said once, by the reader: its Shape has the names, its enums the words, its patterns what a
text may look like. A table beside the readers of a format (`signals/format/schema.py`, `rule_tests/schema.py`,
`settings/kube_schema.py`) only says which of the kinds below each field is, and what it means.

To add a field: write it into its Shape and read it; then write its line into the table. Without the line no schema
of that format is made, by `vane schema` and by the tests; tests/schema/test_readers.py then writes wrong values into
the field, and fails where schema and reader judge them differently. `vane schema --write rules/schemas` makes the
files for editors anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from scheduler.strict_yaml.fields import Shape
from scheduler.strict_yaml.values import DIGITS, DURATION

Schema = dict[str, Any]

DIALECT: Final = "http://json-schema.org/draft-07/schema#"
"""The one that yaml-language-server knows best."""

_SHOWN: Final = ("description", "markdownDescription")
TRUTH: Final[Schema] = {"type": "boolean"}
NUMBER: Final[Schema] = {"type": "number"}
TEXT: Final[Schema] = {"type": "string", "minLength": 1}
ANY_TEXT: Final[Schema] = {"type": "string"}


def whole(pattern: re.Pattern[str] | str) -> str:
    """Return a pattern for the whole of a text, as JavaScript reads it."""
    source = pattern if isinstance(pattern, str) else pattern.pattern
    return f"^(?:{source})$"


def matching(pattern: re.Pattern[str] | str, longest: int | None = None) -> Schema:
    """Return the schema of texts that match a reader's pattern."""
    limit = {} if longest is None else {"maxLength": longest}
    return {"type": "string", "pattern": whole(pattern), **limit}


TIME: Final[Schema] = {"type": "string", "pattern": f"^(?=.)(?:{DURATION.pattern})$"}
"""What `read_duration` takes."""


def words(known: Iterable[str]) -> Schema:
    return {"enum": [str(word) for word in known]}


def words_or(known: Iterable[str], other: Schema) -> Schema:
    """Return the schema of words that an editor offers, and of what else may stand in their place."""
    return {"anyOf": [words(known), other]}


def amount(suffixes: Iterable[str], number: Mapping[str, Any] = NUMBER) -> Schema:
    """Return the schema of a number, or of one with a suffix behind it, as `50ms`."""
    known = "|".join(map(re.escape, sorted(set(suffixes), key=lambda suffix: (-len(suffix), suffix))))
    return {"anyOf": [dict(number), {"type": "string", "pattern": f"^(?:{DIGITS}) ?(?:{known})$"}]}


def percentage(number: Mapping[str, Any]) -> Schema:
    """Return the schema of a number above 0, or of a percentage above 0."""
    return {"anyOf": [dict(number), {"type": "string", "pattern": f"^(?!-)(?=[^eE]*[1-9])(?:{DIGITS}) ?%$"}]}


def number_within(lowest: float, highest: float) -> Schema:
    return {"type": "number", "minimum": lowest, "maximum": highest}


def number_above(lowest: float, highest: float) -> Schema:
    return {"type": "number", "exclusiveMinimum": lowest, "maximum": highest}


def list_of(item: Schema) -> Schema:
    """Return the schema of a list that is not empty."""
    return {"type": "array", "items": item, "minItems": 1}


def pair_of(first: Schema, second: Schema) -> Schema:
    return {"type": "array", "items": [first, second], "minItems": 2, "maxItems": 2}


def mapping_of(value: Schema, names: Schema | None = None) -> Schema:
    """Return the schema of a mapping whose names the user chooses; it is not empty."""
    known = {} if names is None else {"propertyNames": names}
    return {"type": "object", **known, "additionalProperties": value, "minProperties": 1}


def told(schema: Mapping[str, Any], meaning: str) -> Schema:
    """Return the schema of a field with what an editor says of it; backticks need Markdown."""
    shown = {"markdownDescription": meaning} if "`" in meaning else {}
    return {"description": meaning, **shown, **schema}


def fields_of(shape: Shape, values: Mapping[str, Schema], *more: Schema) -> Schema:
    """Return the schema of a mapping of this shape.

    Parameters
    ----------
    values
        What each field may hold.
    more
        What else must be true of the mapping as a whole: schemas that all have to hold.

    Raises
    ------
    LookupError
        A field of the shape is not described, or one that it does not have is.
    """
    lacking = [name for name in shape.fields if name not in values]
    unknown = [name for name in values if name not in shape.fields]
    if lacking or unknown:
        told_of = f"no schema for {', '.join(lacking)}" if lacking else f"a schema for {', '.join(unknown)}"
        raise LookupError(f"{told_of}; the reader has the fields {', '.join(shape.fields)}")
    known = {name: _or_null(values[name]) if shape.is_go else values[name] for name in shape.fields}
    required = {"required": list(shape.required)} if shape.required else {}
    not_empty = {} if shape.is_go or required else {"minProperties": 1}
    conditions = {"allOf": list(more)} if more else {}
    return {
        "type": "object", **not_empty, "properties": known, "additionalProperties": False, **required, **conditions
    }  # fmt: skip


def document_of(schema: Schema, title: str, description: str) -> Schema:
    """Return the schema of a whole file."""
    return {"$schema": DIALECT, "title": title, "description": description, **schema}


def one_of(names: Sequence[str]) -> Schema:
    """Return what holds where at least one of the fields is there."""
    return {"anyOf": [{"required": [name]} for name in names]}


def not_both(*names: str) -> Schema:
    """Return what holds where the fields do not stand all together."""
    return {"not": {"required": list(names)}}


def has(*names: str) -> Schema:
    return {"required": list(names)}


def without(names: Iterable[str]) -> Schema:
    """Return what holds where none of the fields is there."""
    return {"properties": {name: False for name in names}}


def when(condition: Schema, then: Schema, otherwise: Schema | None = None) -> Schema:
    return {"if": condition, "then": then} | ({} if otherwise is None else {"else": otherwise})


def says(name: str, word: str) -> Schema:
    """Return what holds where a field is there and says the word."""
    return {"properties": {name: {"const": str(word)}}, "required": [name]}


def _or_null(schema: Schema) -> Schema:
    """Return the schema with null for what is not there, as Go reads it."""
    if isinstance(schema.get("type"), str):
        return {**schema, "type": [schema["type"], "null"]}
    inner = {name: value for name, value in schema.items() if name not in _SHOWN}
    meaning = {name: value for name, value in schema.items() if name in _SHOWN}
    return {**meaning, "anyOf": [inner, {"type": "null"}]}
