"""Reads the settings: flags over environment over the configuration file over defaults.

Every setting has one row in OPTIONS (settings_options.py). Paths in the file are relative to the file, all others to
the working directory.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel
from pydantic import ValidationError as InvalidSettings
from pydantic.alias_generators import to_camel
from pydantic_settings import InitSettingsSource

from scheduler.errors import ConfigError
from scheduler.settings.document import Location, dotted, read_document
from scheduler.settings.kube import KubeDocument, read_kube_scheduler
from scheduler.settings.options import OPTIONS, Option, Take
from scheduler.settings.prometheus import SERVERS, anchor
from scheduler.settings.prometheus import conflicts as prometheus_conflicts
from scheduler.settings.scheduler import API_VERSION as KUBE_API_VERSION
from scheduler.settings.scheduler import KIND as KUBE_KIND
from scheduler.settings.settings import LeaderElectionSettings, Settings
from scheduler.settings.values import duration_text

API_VERSION: Final = "vane.dev/v1"
KIND: Final = "VaneConfiguration"

FlagValue = str | bool | Sequence[str]

# Retries are spread by up to this factor, as client-go does.
_JITTER_FACTOR: Final = 1.2
# A Service named vane or vane-x puts these into every container of its namespace.
_SERVICE_LINK: Final = re.compile(r"VANE_(.+_)?(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_.+)?)")

CONFIG_FLAG: Final = "config"
CONFIG_VARIABLE: Final = "VANE_CONFIG"


@dataclass(slots=True)
class _Source:
    """What one source says, by the file's names, and where it says so; `has_paths`: places end with the path."""

    values: dict[str, Any] = field(default_factory=dict)
    places: dict[Location, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    has_paths: bool = False

    def set(self, option: Option, value: object, place: str) -> None:
        group = self.values
        for name in option.path[:-1]:
            group = group.setdefault(name, {})
        group[option.path[-1]] = value
        self.places[option.path] = place


def load(flags: Mapping[str, FlagValue], environ: Mapping[str, str]) -> Settings:
    """Return the settings that flags (by name, without dashes), environment and configuration file make together.

    Raises
    ------
    ConfigError
        With every problem of all sources.
    """
    config = flags.get(CONFIG_FLAG) or environ.get(CONFIG_VARIABLE)
    sources = [_from_flags(flags), _from_environment(environ)]
    if config:
        sources += _from_file(Path(str(config)).expanduser())
    problems = [problem for source in sources for problem in source.problems]
    try:
        # The first source wins; pydantic-settings merges them field by field.
        ordered = tuple(InitSettingsSource(Settings, source.values) for source in sources)
        settings = Settings(_build_sources=(ordered, {}))  # type: ignore[call-arg]  # BaseSettings takes it, unseen by mypy
        problems += _conflicts(settings, sources)
    except InvalidSettings as error:
        problems += [_problem(found["loc"], found["type"], found["input"], sources) for found in error.errors()]
    if problems:
        problems = list(dict.fromkeys(problems))
        head = [] if len(problems) == 1 else [f"{len(problems)} problems in the settings:"]
        raise ConfigError("\n".join(head + problems))
    return settings


def description_of(option: Option) -> tuple[str, object]:
    """Return what `--help` says of a setting, and its default; durations as they are written."""
    model: Any = Settings
    for name in option.path[:-1]:
        model = _field(model, name).annotation
    info = _field(model, option.path[-1])
    return str(info.description), duration_text(info.default) if option.take is Take.DURATION else info.default


def _field(model: type[BaseModel], alias: str) -> Any:
    return next(info for info in model.model_fields.values() if info.alias == alias)


def _from_flags(flags: Mapping[str, FlagValue]) -> _Source:
    source = _Source()
    for option in OPTIONS:
        value = flags.get(option.flag)
        if value is not None:
            source.set(option, _parse(option, value) if isinstance(value, str) else value, f"--{option.flag}")
    return source


def _from_environment(environ: Mapping[str, str]) -> _Source:
    source = _Source()
    known = {option.variable: option for option in OPTIONS}
    for name in sorted(environ):
        option = known.get(name)
        if option is not None and environ[name]:  # empty is unset: manifests write `value: ""`
            text = environ[name]
            separator = "\n" if option.take is Take.PAIRS else os.pathsep
            parts = [part for part in text.split(separator) if part]
            source.set(option, parts if option.repeatable else _parse(option, text), name)
        elif option is None and name.startswith("VANE_") and name != CONFIG_VARIABLE:
            # Only what looks like a slip is refused: the prefix is not ours alone.
            near = difflib.get_close_matches(name, [*known, CONFIG_VARIABLE], 1, 0.8)
            if near and not _SERVICE_LINK.fullmatch(name):
                source.problems.append(f"{name}: no such variable. Write {near[0]}, or drop it")
    return source


def _parse(option: Option, text: str) -> object:
    """Return a flag's text as its type; text that isn't any is left to validation, which refuses it."""
    if option.take is Take.NUMBER and re.fullmatch(r"-?\d{1,18}", text):
        return int(text)
    if option.take is Take.SWITCH:
        return {"true": True, "false": False}.get(text.lower(), text)
    return text


def _from_file(path: Path) -> list[_Source]:
    """Return what the file says as a VaneConfiguration, then what it says as a KubeSchedulerConfiguration."""
    source = _Source()
    try:
        document = read_document(path, source.places, source.problems)
    except ConfigError as error:
        source.problems.append(str(error))
        return [source]
    if not isinstance(document, dict):
        source.problems.append(f"{path}: must be a mapping, got {document!r}. Write {_HEAD}")
        return [source]
    kind, version = document.get("kind"), document.get("apiVersion")
    if (version, kind) == (KUBE_API_VERSION, KUBE_KIND):
        source.places[()] = str(path)
        return _with_kube_scheduler(source, document, ())
    if (version, kind) != (API_VERSION, KIND):
        wanted = f"{KIND} of {API_VERSION} or {KUBE_KIND} of {KUBE_API_VERSION}"
        found = f"apiVersion {version!r}, kind {kind!r}"
        source.problems.append(f"{path}: must be {wanted}, got {found}. Write {_HEAD}")
        return [source]
    source.values = {name: value for name, value in document.items() if name not in ("apiVersion", "kind")}
    for location, place in source.places.items():
        # The models take Python's names too; the file has one spelling.
        name = str(location[-1])
        if "_" in name and not _is_free_name(location) and location[0] != "scheduler":
            source.problems.append(f"{place}: {dotted(location)}: no such field, got {name!r}. Write {to_camel(name)}")
    for option in OPTIONS:
        _anchor(source.values, option, path.parent)
    anchor(source.values, _anchored, path.parent)
    if "scheduler" not in source.values:
        return [source]
    return _with_kube_scheduler(source, source.values["scheduler"], ("scheduler",))


def _with_kube_scheduler(file: _Source, value: object, at: Location) -> list[_Source]:
    """Return the file, and a source of what its KubeSchedulerConfiguration says of Vane's own settings."""
    found = read_kube_scheduler(value, at, file.places, file.problems)
    file.values["scheduler"] = found.scheduler
    for path in found.places if at else ():
        if path in file.places:
            told = f"stands in the block {dotted(at)} too. Write it once"
            file.problems.append(f"{file.places[path]}: {dotted(path)}: {told}")
    return [file, _as_source(found)]


def _as_source(found: KubeDocument) -> _Source:
    """Return a source; the first profile's name is the schedulerName of who gave none."""
    names = [profile.scheduler_name for profile in found.scheduler.profiles if profile.scheduler_name]
    name = {"schedulerName": names[0]} if names else {}
    return _Source({**found.values, **name}, dict(found.places), has_paths=True)


# Where the user chooses the names of fields.
_FREE_NAMES: Final = (("prometheus", "headers"), ("clusters",))


def _is_free_name(location: Location) -> bool:
    """Whether the user chooses the last name of a location."""
    in_server = location[:2] == SERVERS and location[3:4] == ("headers",) and len(location) > 4
    return in_server or location[:-1] in _FREE_NAMES


_HEAD: Final = f"apiVersion: {API_VERSION} and kind: {KIND}"


def _anchor(document: dict[str, Any], option: Option, folder: Path) -> None:
    """Make the file's relative paths relative to the file."""
    group: Any = document
    for name in option.path[:-1]:
        group = group.get(name) if isinstance(group, dict) else None
    if not isinstance(group, dict) or not (value := group.get(option.path[-1])):
        return
    if option.take is Take.PATH:
        group[option.path[-1]] = _anchored(value, folder)
    elif option.take is Take.PATHS and isinstance(value, list):
        group[option.path[-1]] = [_anchored(v, folder) for v in value]
    elif option.take is Take.NAMED_PATHS and isinstance(value, dict):
        group[option.path[-1]] = {name: _anchored(v, folder) for name, v in value.items()}


def _anchored(value: object, folder: Path) -> object:
    return str(folder / Path(value).expanduser()) if value and isinstance(value, str) else value


def _conflicts(settings: Settings, sources: Sequence[_Source]) -> list[str]:
    """Return the problems between settings that are right one by one."""
    found = []
    serving = settings.serving
    if (serving.tls_cert_file is None) != (serving.tls_private_key_file is None):
        given, lacking = ("tlsCertFile", "--tls-private-key-file"), "private key"
        if serving.tls_cert_file is None:
            given, lacking = ("tlsPrivateKeyFile", "--tls-cert-file"), "certificate"
        place = _place(("serving", given[0]), sources)
        found.append(f"{place}: needs the {lacking} too. Write {given[1]}, or drop both for a self-signed certificate")
    found += prometheus_conflicts(settings.prometheus, lambda location: _place(location, sources))
    names = [profile.scheduler_name for profile in settings.scheduler.profiles if profile.scheduler_name]
    if names and settings.scheduler_name not in names:
        found.append(
            f"{_place(('schedulerName',), sources)}: no profile has this name, got {settings.scheduler_name!r}."
            f" Write the name of a profile ({', '.join(names)}), or drop it"
        )
    return found + _leader_election_conflicts(settings.leader_election, sources)


def _leader_election_conflicts(given: LeaderElectionSettings, sources: Sequence[_Source]) -> list[str]:
    """Source: client-go v0.37 tools/leaderelection NewLeaderElector (behaviour)."""
    found = []
    lease, renew = duration_text(given.lease_duration_s), duration_text(given.renew_deadline_s)
    if given.lease_duration_s <= given.renew_deadline_s:
        place = _place_of_any(("leaseDuration", "renewDeadline"), sources)
        found.append(
            f"{place}: the lease duration must be longer than the renew deadline, got {lease} and {renew}."
            " Write for example 15s and 10s"
        )
    if given.renew_deadline_s <= _JITTER_FACTOR * given.retry_period_s:
        place = _place_of_any(("renewDeadline", "retryPeriod"), sources)
        found.append(
            f"{place}: the renew deadline must be longer than {_JITTER_FACTOR} times the retry period,"
            f" got {renew} and {duration_text(given.retry_period_s)}. Write for example 10s and 2s"
        )
    return found if given.leader_elect else []


def _place_of_any(names: Sequence[str], sources: Sequence[_Source]) -> str:
    """Return the place of the first of these fields that anyone has set: the other is then a default."""
    set_ones = [name for name in names if any(("leaderElection", name) in source.places for source in sources)]
    return _place(("leaderElection", set_ones[0]), sources)


def _problem(loc: Location, kind: str, found: object, sources: Sequence[_Source]) -> str:
    place = _place(loc, sources)
    if kind == "extra_forbidden":
        names = [str(info.alias) for info in _model_at(loc[:-1]).model_fields.values()]
        near = difflib.get_close_matches(str(loc[-1]), names, 1)
        advice = f"Write {near[0]}" if near else f"Fields here: {', '.join(names)}"
        return f"{place}: no such field, got {loc[-1]!r}. {advice}"
    if kind == "missing":
        return f"{place}: `{loc[-1]}` is missing. Write it"
    if loc == (*SERVERS, *loc[2:3], "name"):
        return (
            f"{place}: must be a name (small letters, digits and -), got {_shown(found)}. Write for example long-term"
        )
    if loc == SERVERS:
        return f"{place}: must be a list of servers, got {_shown(found)}. Write each as `- name: ...` and its fields"
    # A server of the list has the fields of the one without a name.
    path = (SERVERS[0], *loc[3:]) if loc[:2] == SERVERS and len(loc) > 3 else loc
    option = next((option for option in OPTIONS if path[: len(option.path)] == option.path), None)
    if option is None:
        return f"{place}: must be a mapping of fields, got {_shown(found)}. Write its fields, or drop it"
    if option.take is not Take.PATHS:
        place = _place(loc[: len(loc) - len(path) + len(option.path)], sources)
    got = "something else" if option.secret else _shown(found)
    return f"{place}: must be {option.expects}, got {got}. Write for example {option.example}"


def _model_at(loc: Location) -> Any:
    """Return the model of what stands at a location of the file."""
    model: Any = Settings
    for name in loc:
        if isinstance(name, str):
            annotation = _field(model, name).annotation
            model = get_args(annotation)[0] if get_origin(annotation) is tuple else annotation
    return model


def _place(loc: Location, sources: Sequence[_Source]) -> str:
    """Return where the value in force was given: a flag, a variable, or file, line, column and field."""
    for source in sources:
        for length in range(len(loc), 0, -1):
            place = source.places.get(loc[:length])
            if place is not None:
                has_path = source.has_paths or place.startswith(("--", "VANE_"))
                return place if has_path else f"{place}: {dotted(loc)}"
    return dotted(loc)


def _shown(value: object) -> str:
    """Return a value for a message, without the password a URL may hold."""
    return re.sub(r"//[^/@\s]*@", "//...@", repr(value))[:200]
