"""Reads the settings: flags over environment over the configuration file over defaults.

Every setting has one row in OPTIONS (options.py). Paths in the file are relative to the file, all others to the
working directory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from pydantic import ValidationError as InvalidSettings
from pydantic_settings import InitSettingsSource

from scheduler.errors import ConfigError
from scheduler.settings.file import field_names, from_file
from scheduler.settings.options import OPTIONS, Option, OptionType
from scheduler.settings.prometheus import SERVERS
from scheduler.settings.prometheus import conflicts as prometheus_conflicts
from scheduler.settings.settings import LeaderElectionSettings, Settings
from scheduler.settings.sources import CONFIG_FLAG, CONFIG_VARIABLE, FlagValue, Source, from_environment, from_flags
from scheduler.settings.values import duration_text
from scheduler.strict_yaml.document import Location, dotted
from scheduler.strict_yaml.report import unknown_field

# Retries are spread by up to this factor, as client-go does.
_JITTER_FACTOR: Final = 1.2


def load(flags: Mapping[str, FlagValue], environ: Mapping[str, str]) -> Settings:
    """Return the settings that flags (by name, without dashes), environment and configuration file make together.

    Raises
    ------
    ConfigError
        With every problem of all sources.
    """
    config = flags.get(CONFIG_FLAG) or environ.get(CONFIG_VARIABLE)
    sources = [from_flags(flags), from_environment(environ)]
    if config:
        sources += from_file(Path(str(config)).expanduser())
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
    return str(info.description), duration_text(info.default) if option.type is OptionType.DURATION else info.default


def _field(model: type[BaseModel], alias: str) -> Any:
    return next(info for info in model.model_fields.values() if info.alias == alias)


def _conflicts(settings: Settings, sources: Sequence[Source]) -> list[str]:
    """Return the problems between settings that are right one by one."""
    found = []
    serving = settings.serving
    if (serving.tls_cert_file is None) != (serving.tls_private_key_file is None):
        given, lacking = ("tlsCertFile", "--tls-private-key-file"), "private key"
        if serving.tls_cert_file is None:
            given, lacking = ("tlsPrivateKeyFile", "--tls-cert-file"), "certificate"
        place = _place(("serving", given[0]), sources)
        found.append(f"{place}: also needs the {lacking}. Write {given[1]}, or drop both for a self-signed certificate")
    found += prometheus_conflicts(settings.prometheus, lambda location: _place(location, sources))
    names = [profile.scheduler_name for profile in settings.scheduler.profiles if profile.scheduler_name]
    if names and settings.scheduler_name not in names:
        found.append(
            f"{_place(('schedulerName',), sources)}: no profile has this name, got {settings.scheduler_name!r}."
            f" Write the name of a profile ({', '.join(names)}), or drop it"
        )
    return found + _leader_election_conflicts(settings.leader_election, sources)


def _leader_election_conflicts(given: LeaderElectionSettings, sources: Sequence[Source]) -> list[str]:
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


def _place_of_any(names: Sequence[str], sources: Sequence[Source]) -> str:
    """Return the place of the first of these fields that anyone has set: the other is then a default."""
    set_ones = [name for name in names if any(source.gives(("leaderElection", name)) for source in sources)]
    return _place(("leaderElection", set_ones[0]), sources)


def _problem(loc: Location, kind: str, found: object, sources: Sequence[Source]) -> str:
    place = _place(loc, sources)
    if kind == "extra_forbidden":
        return f"{_place_of_name(loc, sources)}: {unknown_field(str(loc[-1]), field_names(loc[:-1]))}"
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
        return f"{place}: must be a mapping, got {_shown(found)}. Write fields: {', '.join(field_names(loc))}"
    if option.type is not OptionType.PATHS:
        place = _place(loc[: len(loc) - len(path) + len(option.path)], sources)
    got = "something else" if option.secret else _shown(found)
    return f"{place}: must be {option.expects}, got {got}. Write for example {option.example}"


def _place(loc: Location, sources: Sequence[Source]) -> str:
    """Return where the value in force was given: a flag, a variable, or file, line, column and field."""
    return next((place for source in sources if (place := source.place_of(loc))), dotted(loc))


def _place_of_name(loc: Location, sources: Sequence[Source]) -> str:
    """Return the place of a field that does not belong where it stands; only a file can have one."""
    return next(source.places.of_name(loc) for source in sources if loc in source.places.names)


def _shown(value: object) -> str:
    """Return a value for a message, without the password a URL may hold."""
    if value is None or isinstance(value, bool):
        return "nothing" if value is None else str(value).lower()
    return re.sub(r"//[^/@\s]*@", "//...@", repr(value))[:200]
