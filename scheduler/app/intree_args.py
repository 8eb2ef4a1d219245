"""Reads the arguments of kube-scheduler's own plugins: strict as kube-scheduler, every mistake at once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import inspect

from scheduler.errors import ConfigError
from scheduler.framework.intree_args import INTREE_ARGS, InTreeArgs
from scheduler.settings.scheduler import API_VERSION, PluginConfig
from scheduler.strict_yaml.document import Location
from scheduler.strict_yaml.report import unknown_field

_AT: Final = re.compile(r" - at `\$(.*)`$")
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+)\]")


class ArgumentMistakes(ConfigError):
    """All mistakes of one plugin's arguments; each says where it is."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def read_intree_args(name: str, config: PluginConfig) -> InTreeArgs:
    """Return the arguments of one of INTREE_ARGS, with kube-scheduler's defaults for what is unset.

    null counts as unset, as in Go. What is found wrong is taken out, and the rest read on.

    Raises
    ------
    ArgumentMistakes
        kube-scheduler would refuse them.
    """
    kind, given = INTREE_ARGS[name], dict(config.args)
    problems = list(_type_problems(name, given, config))
    known = _known(given, inspect.type_info(kind), (), config, problems)
    args: InTreeArgs = _converted(known, kind, config, problems)
    if not problems:
        args = args.completed()
        problems += [f"{config.places.of(way)}: {message}" for way, message in args.mistakes()]
    if problems:
        raise ArgumentMistakes(problems)
    return args


def location_of(error: msgspec.ValidationError) -> tuple[Location, str]:
    """Return the way that msgspec's message ends with, as in ` - at `$.pods.items[0]``, and the message without it."""
    text = str(error)
    path = _AT.search(text)
    steps = _STEP.findall(path[1]) if path else ()
    return tuple(field if field else int(number) for field, number in steps), _AT.sub("", text)


def _type_problems(name: str, given: dict[str, Any], config: PluginConfig) -> Iterator[str]:
    """Take out what says of which type the arguments are; unset is right."""
    for field, expected in (("apiVersion", API_VERSION), ("kind", f"{name}Args")):
        stated = given.pop(field, None)
        if stated not in (None, "", expected):
            yield f"{config.places.of((field,))}: must be {expected}, got {stated!r}. Write it, or drop the line"


def _known(value: Any, kind: inspect.Type, at: Location, config: PluginConfig, problems: list[str]) -> Any:
    """Return the value without null fields and without what has no field, which is a problem each."""
    if isinstance(kind, inspect.UnionType):
        inner = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
        return _known(value, inner[0], at, config, problems)
    if isinstance(kind, inspect.ListType | inspect.VarTupleType) and isinstance(value, list):
        items = [{} if item is None and isinstance(kind.item_type, inspect.StructType) else item for item in value]
        return [_known(item, kind.item_type, (*at, i), config, problems) for i, item in enumerate(items)]
    if not isinstance(kind, inspect.StructType) or not isinstance(value, dict):
        return value
    fields = {field.encode_name: field.type for field in kind.fields}
    for name in value.keys() - fields.keys():
        problems.append(f"{config.places.of_name((*at, name))}: {unknown_field(name, fields)}")
    return {
        name: _known(value[name], fields[name], (*at, name), config, problems)
        for name in value
        if name in fields and value[name] is not None
    }


def _converted(value: Mapping[str, Any], kind: type[InTreeArgs], config: PluginConfig, problems: list[str]) -> Any:
    while True:
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            at, told = location_of(error)
            problems.append(f"{config.places.of(at)}: {told}. Write another value")
            _take_out(value, at)


def _take_out(value: Any, at: Location) -> None:
    """Drop the innermost field on the way: every field may be unset."""
    last = max(i for i, step in enumerate(at) if isinstance(step, str))
    for step in at[:last]:
        value = value[step]
    del value[at[last]]
