"""The rules that are deployed: the ConfigMap that Vane's Pods mount."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

import msgspec

from scheduler.errors import ConfigError
from scheduler.kube.transport import ApiError, Transport

SUFFIXES: Final = (".yaml", ".yml")
_NOT_FOUND: Final = 404


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] = {}


def read_config_map(transport: Transport, namespace: str, name: str) -> Mapping[str, bytes]:
    """Return the rule files of a ConfigMap, by the name that messages show.

    Raises
    ------
    ConfigError
        There is no such ConfigMap, it may not be read, or has no rule file in it.
    TransportError
        The API server does not answer.
    """
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/configmaps/{quote(name, safe='')}"
    write = "Write -n NAMESPACE, --config-map NAME, or the paths of rule files"
    try:
        found = msgspec.json.decode(transport.get(path), type=_ConfigMap)
    except ApiError as error:
        why = "there is none" if error.status == _NOT_FOUND else error.message
        raise ConfigError(f"ConfigMap {namespace}/{name}: {why}. {write}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"ConfigMap {namespace}/{name} is not readable: {error}. {write}") from error
    files = {f"{name}/{key}": text.encode() for key, text in sorted(found.data.items()) if key.endswith(SUFFIXES)}
    if not files:
        raise ConfigError(f"ConfigMap {namespace}/{name}: no key ends in .yaml. {write}")
    return files
