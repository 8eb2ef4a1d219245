"""The kinds of values a setting may have: how text becomes each of them, and what is refused."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints, WithJsonSchema
from pydantic.alias_generators import to_camel

from scheduler.strict_yaml.schema import mapping_of, matching, whole

# It names the metric, which the expressions themselves say.
_METRIC: Final = "__name__"
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE: Final = re.compile(r"([!-~\x80-\xff]([\t -~\x80-\xff]*[!-~\x80-\xff])?)?")
DNS_LABEL: Final = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
DNS_NAME: Final = rf"{DNS_LABEL}(\.{DNS_LABEL})*"
_MAX_NAME: Final = 253
_PATH: Final = {"type": "string", "minLength": 1}
GO_DURATION: Final = re.compile(r"[-+]?([0-9]{1,9}(\.[0-9]{0,9})?(ns|us|µs|μs|ms|s|m|h))+")
_DURATION_PART: Final = re.compile(r"([0-9.]+)([^0-9.]+)")
_UNITS_S: Final = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "μs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}


class Group(BaseModel):
    """Settings that stand together in the file, by names as Kubernetes writes them."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, hide_input_in_errors=True
    )


def _as_path(value: object) -> object:
    if value == "":
        raise ValueError(value)  # Path("") is the working directory
    return Path(value).expanduser() if isinstance(value, str) else value


def _as_http_url(url: object) -> str:
    if not isinstance(url, str):
        raise ValueError(url)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise ValueError(url)
    parts.port  # noqa: B018 - raises ValueError where the port is no number
    return url.rstrip("/")


def _as_address(text: object) -> str:
    if not isinstance(text, str):
        raise ValueError(text)  # Python takes whole numbers for addresses, too
    return text if text == "localhost" else str(ipaddress.ip_address(text))


def _as_headers(value: object) -> object:
    """Take a mapping (file) or `name=value` texts (flag, environment)."""
    pairs = _pairs_of(value)
    for pair in pairs:
        if not _HEADER_NAME.fullmatch(str(pair[0])) or not _HEADER_VALUE.fullmatch(str(pair[1])):
            raise ValueError
    return pairs


def _as_seconds(value: object) -> float:
    """Take a duration as Go writes it (`15s`, `1m30s`, `500ms`); a bare number has no unit and is refused."""
    if not isinstance(value, str) or not GO_DURATION.fullmatch(value):
        raise ValueError(value)
    parts = _DURATION_PART.findall(value.lstrip("+-"))
    seconds = float(sum(Fraction(number.rstrip(".")) * _UNITS_S[unit] for number, unit in parts))
    return -seconds if value.startswith("-") else seconds


def _as_named_paths(value: object) -> object:
    """Take a mapping (file) or `NAME=FILE` texts (flag, environment); a name stands once."""
    pairs = _pairs_of(value)
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError
    return pairs


def _as_matchers(value: object) -> object:
    """Take a mapping (file) or `label=value` texts (flag, environment); a label stands once."""
    pairs = _pairs_of(value)
    for name, wanted in pairs:
        if not (isinstance(name, str) and isinstance(wanted, str) and name and wanted and name != _METRIC):
            raise ValueError
        f"{name}{wanted}".encode()  # a UnicodeEncodeError is a ValueError
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError
    return pairs


def _pairs_of(value: object) -> tuple[tuple[Any, ...], ...]:
    """Return the items of a mapping, or what `NAME=VALUE` texts say: pairs."""
    if isinstance(value, Mapping):
        return tuple(value.items())
    if not isinstance(value, list | tuple):
        raise ValueError(value)
    pairs: list[tuple[Any, ...]] = [
        item if isinstance(item, tuple) else tuple(str(item).split("=", 1)) for item in value
    ]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError(value)
    return tuple(pairs)


def together(*pairs: tuple[str, str]) -> dict[str, Any]:
    """Return what a schema says of fields of which none means anything without the other."""
    return {"dependencies": {name: [other] for pair in pairs for name, other in (pair, pair[::-1])}}


def duration_text(seconds: float) -> str:
    """Return seconds as they are written in settings: `15s`, `0.5s`."""
    return f"{seconds:g}s"


AnyPath = Annotated[Path, BeforeValidator(_as_path), WithJsonSchema(_PATH)]
HttpUrl = Annotated[str, BeforeValidator(_as_http_url), WithJsonSchema(matching(r"https?://[^@?#]+"))]
Address = Annotated[
    str,
    BeforeValidator(_as_address),
    WithJsonSchema(matching(r"localhost|[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9a-fA-F:.]*:.*")),
]
Headers = Annotated[
    tuple[tuple[str, str], ...],
    BeforeValidator(_as_headers),
    WithJsonSchema(mapping_of(matching(_HEADER_VALUE), {"pattern": whole(_HEADER_NAME)}) | {"minProperties": 0}),
]
Matchers = Annotated[
    tuple[tuple[str, str], ...],
    BeforeValidator(_as_matchers),
    WithJsonSchema(mapping_of({"type": "string", "minLength": 1}) | {"minProperties": 0}),
]
# RFC 7617: a colon would end the user's name.
UserName = Annotated[str, StringConstraints(pattern=r"^[^:\x00-\x1f\x7f]+$", max_length=253)]
Text = Annotated[str, StringConstraints(pattern=r"^\S+$", max_length=253)]
DnsLabel = Annotated[str, StringConstraints(pattern=rf"^{DNS_LABEL}$")]
DnsName = Annotated[str, StringConstraints(pattern=f"^{DNS_NAME}$", max_length=_MAX_NAME)]
Seconds = Annotated[float, BeforeValidator(_as_seconds), WithJsonSchema(matching(GO_DURATION))]
NamedPaths = Annotated[
    tuple[tuple[DnsName, AnyPath], ...],
    BeforeValidator(_as_named_paths),
    WithJsonSchema(mapping_of(_PATH, matching(DNS_NAME, _MAX_NAME)) | {"minProperties": 0}),
]
