"""The settings of one run: flags over environment over the configuration file over defaults, immutable once read.

Every setting has one row in OPTIONS (settings_options.py). Paths in the file are relative to the file, all others to
the working directory.
"""

from __future__ import annotations

import difflib
import ipaddress
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictInt, StringConstraints
from pydantic import ValidationError as InvalidSettings
from pydantic.alias_generators import to_camel
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from scheduler.errors import ConfigError
from scheduler.settings_file import Location, dotted, read_document
from scheduler.settings_options import OPTIONS, Option, Take

API_VERSION: Final = "vane.dev/v1"
KIND: Final = "VaneConfiguration"

FlagValue = str | bool | Sequence[str]

# A Service named vane or vane-x puts these into every container of its namespace.
_SERVICE_LINK: Final = re.compile(r"VANE_(.+_)?(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_.+)?)")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE: Final = re.compile(r"([!-~\x80-\xff]([\t -~\x80-\xff]*[!-~\x80-\xff])?)?")


def _as_path(value: object) -> object:
    if value == "":
        raise ValueError(value)  # Path("") is the working directory
    return Path(value).expanduser() if isinstance(value, str) else value


def _as_http_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise ValueError(url)
    parts.port  # noqa: B018 - raises ValueError where the port is no number
    return url.rstrip("/")


def _as_address(text: str) -> str:
    return text if text == "localhost" else str(ipaddress.ip_address(text))


def _as_headers(value: object) -> object:
    """Take a mapping (file) or `name=value` texts (flag, environment)."""
    if isinstance(value, Mapping):
        pairs: list[tuple[Any, ...]] = list(value.items())
    elif isinstance(value, list | tuple):
        pairs = [item if isinstance(item, tuple) else tuple(str(item).split("=", 1)) for item in value]
    else:
        raise ValueError
    for pair in pairs:
        if len(pair) != 2 or not _HEADER_NAME.fullmatch(str(pair[0])) or not _HEADER_VALUE.fullmatch(str(pair[1])):
            raise ValueError
    return tuple(pairs)


AnyPath = Annotated[Path, BeforeValidator(_as_path)]
Text = Annotated[str, StringConstraints(pattern=r"^\S+$", max_length=253)]


class _Group(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, hide_input_in_errors=True
    )


class PrometheusSettings(_Group):
    """How Prometheus is asked."""

    url: Annotated[str, BeforeValidator(_as_http_url)] | None = Field(
        default=None,
        description="Base URL of the Prometheus API, without /api/v1; unset: signals that ask it stay missing",
    )
    token_file: AnyPath | None = Field(
        default=None,
        description="File with a bearer token, read again when it changes; a file, as flags show in process lists",
    )
    ca_file: AnyPath | None = Field(
        default=None, description="File with the certificate authorities (PEM) to trust; unset: those of the system"
    )
    headers: Annotated[tuple[tuple[str, str], ...], BeforeValidator(_as_headers)] = Field(
        default=(), description="HTTP header sent with every query, as X-Scope-OrgID=shop for a tenant", repr=False
    )


class ServingSettings(_Group):
    """The page with health and metrics."""

    secure_port: Annotated[StrictInt, Field(ge=0, le=65535)] = Field(
        default=10259, description="HTTPS port of health and metrics, kube-scheduler's; 0: don't serve"
    )
    bind_address: Annotated[str, BeforeValidator(_as_address)] = Field(
        default="127.0.0.1", description="IP address to listen on; loopback, as callers are not authenticated yet"
    )
    tls_cert_file: AnyPath | None = Field(
        default=None,
        description="Serving certificate with its chain (PEM), read again when it changes; unset: self-signed",
    )
    tls_private_key_file: AnyPath | None = Field(
        default=None, description="Private key (PEM) of the serving certificate"
    )
    unauthenticated_metrics: StrictBool = Field(
        default=False,
        description="Serve /metrics to anyone who can connect, which an address other than loopback needs",
    )

    @property
    def is_loopback(self) -> bool:
        return self.bind_address == "localhost" or ipaddress.ip_address(self.bind_address).is_loopback


class LoggingSettings(_Group):
    """What is written to standard error."""

    format: Literal["text", "json"] = Field(
        default="text", description="Form of a line: text for people, json for collectors"
    )
    verbosity: Annotated[StrictInt, Field(ge=0, le=10)] = Field(
        default=0, description="How much is logged, 0 to 10: from 4 debug messages, from 6 those of libraries too"
    )


class Settings(BaseSettings):
    """All settings of one run; picklable, so that the other processes get the same."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        case_sensitive=True,
        hide_input_in_errors=True,
    )

    scheduler_name: Text = Field(
        default="vane",
        description="Pods whose spec.schedulerName is this are ours; not default-scheduler, to live beside it",
    )
    kubeconfig: AnyPath | None = Field(
        default=None, description="kubeconfig file; unset: the Pod's service account, or else what kubectl would use"
    )
    rules: tuple[AnyPath, ...] = Field(
        default=(), description="Rule file, or folder of rule files; unset: no rules, placing as kube-scheduler does"
    )
    prometheus: PrometheusSettings = PrometheusSettings()
    serving: ServingSettings = ServingSettings()
    logging: LoggingSettings = LoggingSettings()

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], init_settings: PydanticBaseSettingsSource, *_: object, **__: object
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read nothing that was not handed in: `load` names its sources."""
        return (init_settings,)


CONFIG_FLAG: Final = "config"
CONFIG_VARIABLE: Final = "VANE_CONFIG"


@dataclass(slots=True)
class _Source:
    """What one source says, by the file's names, and where it says so."""

    values: dict[str, Any] = field(default_factory=dict)
    places: dict[Location, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

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
        sources.append(_from_file(Path(str(config)).expanduser()))
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
    """Return what `--help` says of a setting, and its default."""
    model: Any = Settings
    for name in option.path[:-1]:
        model = _field(model, name).annotation
    info = _field(model, option.path[-1])
    return str(info.description), info.default


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
            separator = os.pathsep if option.take is Take.PATHS else "\n"
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


def _from_file(path: Path) -> _Source:
    source = _Source()
    try:
        document = read_document(path, source.places, source.problems)
    except ConfigError as error:
        source.problems.append(str(error))
        return source
    if not isinstance(document, dict):
        source.problems.append(f"{path}: must be a mapping, got {document!r}. Write {_HEAD}")
        return source
    kind, version = document.pop("kind", None), document.pop("apiVersion", None)
    if kind == "KubeSchedulerConfiguration":
        source.problems.append(f"{path}: kind KubeSchedulerConfiguration: not built yet. Write {_HEAD}")
        return source
    if (version, kind) != (API_VERSION, KIND):
        found = f"apiVersion {version!r}, kind {kind!r}"
        source.problems.append(f"{path}: must be {KIND} of {API_VERSION}, got {found}. Write {_HEAD}")
        return source
    if document.pop("scheduler", None) is not None:
        message = "scheduler (a KubeSchedulerConfiguration): not built yet. Drop the block"
        source.problems.append(f"{source.places[('scheduler',)]}: {message}")
    for location, place in source.places.items():
        # The models take Python's names too; the file has one spelling.
        name = str(location[-1])
        if "_" in name and location[:-1] != ("prometheus", "headers"):
            source.problems.append(f"{place}: {dotted(location)}: no such field, got {name!r}. Write {to_camel(name)}")
    source.values = document
    for option in OPTIONS:
        _anchor(document, option, path.parent)
    return source


_HEAD: Final = f"apiVersion: {API_VERSION} and kind: {KIND}"


def _anchor(document: dict[str, Any], option: Option, folder: Path) -> None:
    """Make the file's relative paths relative to the file."""
    group: Any = document
    for name in option.path[:-1]:
        group = group.get(name) if isinstance(group, dict) else None
    if not isinstance(group, dict) or not (value := group.get(option.path[-1])):
        return
    if option.take is Take.PATH and isinstance(value, str):
        group[option.path[-1]] = str(folder / Path(value).expanduser())
    elif option.take is Take.PATHS and isinstance(value, list):
        group[option.path[-1]] = [str(folder / Path(v).expanduser()) if v and isinstance(v, str) else v for v in value]


def _conflicts(settings: Settings, sources: Sequence[_Source]) -> list[str]:
    """Return the problems between settings that are right one by one."""
    found = []
    serving, prometheus = settings.serving, settings.prometheus
    if (serving.tls_cert_file is None) != (serving.tls_private_key_file is None):
        given, lacking = ("tlsCertFile", "--tls-private-key-file"), "private key"
        if serving.tls_cert_file is None:
            given, lacking = ("tlsPrivateKeyFile", "--tls-cert-file"), "certificate"
        place = _place(("serving", given[0]), sources)
        found.append(f"{place}: needs the {lacking} too. Write {given[1]}, or drop both for a self-signed certificate")
    if serving.secure_port and not serving.is_loopback and not serving.unauthenticated_metrics:
        found.append(
            f"{_place(('serving', 'bindAddress'), sources)}: {serving.bind_address} is not loopback, and authentication"
            " of /metrics is not built yet. Write a loopback address, or --unauthenticated-metrics to serve anyone"
        )
    if prometheus.token_file and any(name.lower() == "authorization" for name, _ in prometheus.headers):
        place = _place(("prometheus", "headers"), sources)
        found.append(f"{place}: Authorization is set by the token file too. Drop one of the two")
    return found


def _problem(loc: Location, kind: str, found: object, sources: Sequence[_Source]) -> str:
    place = _place(loc, sources)
    if kind == "extra_forbidden":
        model: Any = _field(Settings, str(loc[0])).annotation if len(loc) > 1 else Settings
        names = [str(info.alias) for info in model.model_fields.values()]
        near = difflib.get_close_matches(str(loc[-1]), names, 1)
        advice = f"Write {near[0]}" if near else f"Fields here: {', '.join(names)}"
        return f"{place}: no such field, got {loc[-1]!r}. {advice}"
    option = next((option for option in OPTIONS if loc[: len(option.path)] == option.path), None)
    if option is None:
        return f"{place}: must be a mapping of fields, got {_shown(found)}. Write its fields, or drop it"
    place = _place(loc if option.take is Take.PATHS else option.path, sources)
    got = "something else" if option.secret else _shown(found)
    return f"{place}: must be {option.expects}, got {got}. Write for example {option.example}"


def _place(loc: Location, sources: Sequence[_Source]) -> str:
    """Return where the value in force was given: a flag, a variable, or file, line, column and field."""
    for source in sources:
        for length in range(len(loc), 0, -1):
            place = source.places.get(loc[:length])
            if place is not None:
                return place if place.startswith(("--", "VANE_")) else f"{place}: {dotted(loc)}"
    return dotted(loc)


def _shown(value: object) -> str:
    """Return a value for a message, without the password a URL may hold."""
    return re.sub(r"//[^/@\s]*@", "//...@", repr(value))[:200]
