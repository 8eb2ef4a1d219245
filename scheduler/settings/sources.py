"""Sources of settings: what flags and environment variables say, by the names that the configuration file has."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler.settings.options import OPTIONS, Option, OptionType
from scheduler.strict_yaml.document import Location, Places
from scheduler.strict_yaml.report import closest

FlagValue = str | bool | Sequence[str]

CONFIG_FLAG: Final = "config"
CONFIG_VARIABLE: Final = "VANE_CONFIG"

# A Service named vane or vane-x puts these into every container of its namespace.
_SERVICE_LINK: Final = re.compile(r"VANE_(.+_)?(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_.+)?)")

# Only what looks like a slip is refused: the prefix is not ours alone.
_SLIP: Final = 0.8


@dataclass(slots=True)
class Source:
    """What one source says, and where it says so: in `given` a flag, a variable or a place, else in `places`."""

    values: dict[str, Any] = field(default_factory=dict)
    given: dict[Location, str] = field(default_factory=dict)
    places: Places = field(default_factory=Places)
    problems: list[str] = field(default_factory=list)

    def set(self, path: tuple[str, ...], value: object, place: str) -> None:
        group = self.values
        for name in path[:-1]:
            group = group.setdefault(name, {})
        group[path[-1]] = value
        self.given[path] = place

    def gives(self, location: Location) -> bool:
        return location in self.given or location in self.places.values

    def place_of(self, location: Location) -> str:
        """Return where a setting, or what it stands in, is given; empty where it is not."""
        for length in range(len(location), 0, -1):
            if (at := location[:length]) in self.given:
                return self.given[at]
            if at in self.places.values:
                return self.places.of(location)
        return ""


def from_flags(flags: Mapping[str, FlagValue]) -> Source:
    """Return what flags say, by their names without dashes."""
    source = Source()
    for option in OPTIONS:
        value = flags.get(option.flag)
        if value is not None:
            source.set(option.path, _parse(option, value) if isinstance(value, str) else value, f"--{option.flag}")
    return source


def from_environment(environ: Mapping[str, str]) -> Source:
    """Return what variables say; one that is not known and looks like a slip is a problem."""
    source = Source()
    known = {option.variable: option for option in OPTIONS}
    for name in sorted(environ):
        option = known.get(name)
        if option is not None and environ[name]:  # empty is unset: manifests write `value: ""`
            text = environ[name]
            is_free_text = option.type in (OptionType.PAIRS, OptionType.MATCHERS)
            separator = "\n" if is_free_text else os.pathsep
            parts = [part for part in text.split(separator) if part]
            source.set(option.path, parts if option.repeatable else _parse(option, text), name)
        elif option is None and name.startswith("VANE_") and name != CONFIG_VARIABLE:
            near = closest(name, [*known, CONFIG_VARIABLE], _SLIP)
            if near and not _SERVICE_LINK.fullmatch(name):
                source.problems.append(f"{name}: no such variable. Write {near}, or drop it")
    return source


def _parse(option: Option, text: str) -> object:
    """Return a flag's text as its type; text that isn't any is left to validation, which refuses it."""
    if option.type is OptionType.NUMBER and re.fullmatch(r"-?\d{1,18}", text):
        return int(text)
    if option.type is OptionType.SWITCH:
        return {"true": True, "false": False}.get(text.lower(), text)
    return text
