"""The configuration file: a VaneConfiguration, or a KubeSchedulerConfiguration as it is.

Relative paths in it are relative to the file.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final, get_args, get_origin

from scheduler.settings.kube_scheduler import read_kube_scheduler
from scheduler.settings.options import OPTIONS, Option, OptionType
from scheduler.settings.prometheus import SERVERS, anchor
from scheduler.settings.scheduler import API_VERSION as KUBE_API_VERSION
from scheduler.settings.scheduler import KIND as KUBE_KIND
from scheduler.settings.scheduler import SchedulerSettings
from scheduler.settings.settings import Settings
from scheduler.settings.sources import Source
from scheduler.strict_yaml.composer import MAX_BYTES, compose
from scheduler.strict_yaml.document import Location, read_plain
from scheduler.strict_yaml.nodes import YamlMapping
from scheduler.strict_yaml.report import Report, Scope, got, unknown_field

API_VERSION: Final = "vane.dev/v1"
KIND: Final = "VaneConfiguration"

_SCHEDULER: Final = "scheduler"
_HEAD: Final = f"apiVersion: {API_VERSION} and kind: {KIND}"
_FREE_IN_SERVERS: Final = ("headers", "matchers")
_FREE_NAMES: Final = (*(("prometheus", name) for name in _FREE_IN_SERVERS), ("clusters",))
"""Where the user chooses the names of fields."""


def from_file(path: Path) -> list[Source]:
    """Return what the file says as a VaneConfiguration, then what it says as a KubeSchedulerConfiguration."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        problem = f"{path}: cannot be read, got {error.strerror!r}. Allow reading it, or fix --config"
        return [Source(problems=[problem])]
    report = Report(str(path))
    sources = _read(data, report, path.parent)
    sources[0].problems += map(str, report.problems)
    return sources


def _read(data: bytes, report: Report, folder: Path) -> list[Source]:
    root, scope = compose(data, report, KIND), Scope(report, is_path=True)
    if root is None:
        return [Source()]
    if not isinstance(root, YamlMapping):
        scope.problem(root, f"must be a mapping, {got(root)}. Write {_HEAD}")
        return [Source()]
    entries = {key.value: value for key, value in root.entries}
    kind, version = (
        read_plain(entries[name], scope).value if name in entries else None for name in ("kind", "apiVersion")
    )
    if (version, kind) == (KUBE_API_VERSION, KUBE_KIND):
        scheduler, others = read_kube_scheduler(root, scope)
        return [Source({_SCHEDULER: scheduler}), _named(others, scheduler)]
    if (version, kind) != (API_VERSION, KIND):
        wanted = f"{KIND} of {API_VERSION} or {KUBE_KIND} of {KUBE_API_VERSION}"
        scope.problem(root, f"must be {wanted}, got apiVersion {version!r}, kind {kind!r}. Write {_HEAD}")
        return [Source()]
    own = [(key, value) for key, value in root.entries if key.value not in ("apiVersion", "kind", _SCHEDULER)]
    document = read_plain(replace(root, entries=tuple(own)), scope)
    source = Source(document.value, places=document.places)
    _check_spelling(source)
    for option in OPTIONS:
        _anchor(source.values, option, folder)
    anchor(source.values, _anchored, folder)
    if _SCHEDULER not in entries:
        return [source]
    scheduler, others = read_kube_scheduler(entries[_SCHEDULER], scope.inner(_SCHEDULER))
    source.values[_SCHEDULER] = scheduler
    for location in others.given:
        if location in document.places.values:
            told = f"is also set in the block {_SCHEDULER}. Write it once"
            source.problems.append(f"{document.places.of(location)}: {told}")
    return [source, _named(others, scheduler)]


def field_names(location: Location) -> list[str]:
    """Return the names of the fields of the group at a location of the file; none where there is no group."""
    model: Any = Settings
    for name in location:
        if isinstance(name, str):
            annotation = next((info.annotation for info in _fields(model) if info.alias == name), None)
            model = get_args(annotation)[0] if get_origin(annotation) is tuple else annotation
    return [str(info.alias) for info in _fields(model)]


def _fields(model: Any) -> list[Any]:
    return list(getattr(model, "model_fields", {}).values())


def _named(others: Source, scheduler: SchedulerSettings) -> Source:
    """Add the first profile's name: it is the schedulerName of who gave none."""
    names = [profile.scheduler_name for profile in scheduler.profiles if profile.scheduler_name]
    others.values |= {"schedulerName": names[0]} if names else {}
    return others


def _check_spelling(source: Source) -> None:
    """Report Python's names of fields: the models take them too, and the file has one spelling."""
    for location in source.places.names:
        name = str(location[-1])
        known = field_names(location[:-1])
        if "_" in name and known and not _is_free_name(location):
            source.problems.append(f"{source.places.of_name(location)}: {unknown_field(name, known)}")


def _is_free_name(location: Location) -> bool:
    """Whether the user chooses the last name of a location."""
    in_server = location[:2] == SERVERS and len(location) > 4 and location[3] in _FREE_IN_SERVERS
    return in_server or location[:-1] in _FREE_NAMES


def _anchor(document: dict[str, Any], option: Option, folder: Path) -> None:
    """Make the file's relative paths relative to the file."""
    group: Any = document
    for name in option.path[:-1]:
        group = group.get(name) if isinstance(group, dict) else None
    if not isinstance(group, dict) or not (value := group.get(option.path[-1])):
        return
    if option.type is OptionType.PATH:
        group[option.path[-1]] = _anchored(value, folder)
    elif option.type is OptionType.PATHS and isinstance(value, list):
        group[option.path[-1]] = [_anchored(v, folder) for v in value]
    elif option.type is OptionType.NAMED_PATHS and isinstance(value, dict):
        group[option.path[-1]] = {name: _anchored(v, folder) for name, v in value.items()}


def _anchored(value: object, folder: Path) -> object:
    return str(folder / Path(value).expanduser()) if value and isinstance(value, str) else value
