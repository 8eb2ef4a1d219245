"""Makes one plugin: its arguments as its own type, the object, and what it declares checked once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from scheduler.app.intree_args import location_of, read_intree_args
from scheduler.app.plugin_sources import told
from scheduler.errors import ConfigError
from scheduler.framework.events import EventInterest
from scheduler.framework.index import Index
from scheduler.framework.intree_args import INTREE_ARGS, InTreeArgs
from scheduler.framework.plugin import BindPlugin, Plugin
from scheduler.settings.scheduler import PluginConfig
from scheduler.strict_yaml.report import did_you_mean

_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`")


def make_plugin(kind: type[Plugin], config: PluginConfig | None, place: str, clusters: frozenset[str]) -> Plugin:
    """Return a new plugin.

    Parameters
    ----------
    place
        Where the configuration enables it.
    clusters
        The names of other API servers, which a Bind plugin may name.

    Raises
    ------
    ConfigError
        With the place: its arguments are wrong, or what it is made of.
    ArgumentMistakes
        Several of its arguments are.
    """
    name = kind.__name__
    if kind.Args is None:
        if config is not None and config.args:
            raise ConfigError(f"{config.places.of(())}: {name} takes no arguments. Drop them")
        arguments: tuple[Any, ...] = ()
    else:
        arguments = (_converted(kind, kind.Args, config, place),)
    where = place if config is None else config.places.of(())
    try:
        plugin = kind(*arguments)
        _check_declared(plugin)
        named = frozenset(plugin.clusters()) if isinstance(plugin, BindPlugin) else frozenset()
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from error
    except Exception as error:  # a third party's code, and the user is to know which
        raise ConfigError(
            f"{where}: {name} cannot be created: it raised {told(error)}. Fix it or its arguments"
        ) from error
    unknown = sorted(named - clusters)
    if unknown:
        known = f" ({', '.join(sorted(clusters))})" if clusters else ""
        raise ConfigError(
            f"{where}: {name} names the cluster {unknown[0]!r}, and there is none of this name. Write one of"
            f" the setting clusters{known}, or add it there"
        )
    return plugin


def _converted(kind: type[Plugin], args: Any, config: PluginConfig | None, place: str) -> msgspec.Struct:
    name = kind.__name__
    if not isinstance(args, type) or not issubclass(args, msgspec.Struct):
        raise ConfigError(f"{place}: {name}.Args must be a class derived from PluginArgs, got {args!r}. Fix it")
    if not args.__struct_config__.forbid_unknown_fields:
        raise ConfigError(
            f"{place}: {name}.Args accepts unknown fields, so typing errors would go unnoticed. Derive it from"
            " scheduler.framework.args.PluginArgs"
        )
    if issubclass(args, InTreeArgs) and INTREE_ARGS.get(name) is args:
        return args() if config is None else read_intree_args(name, config)
    try:
        return msgspec.convert({} if config is None else config.args, args)
    except msgspec.ValidationError as error:
        known = [info.encode_name for info in msgspec.structs.fields(args)]
        if config is None:
            message = f"{name} needs arguments: {error}. Write them in pluginConfig"
            raise ConfigError(f"{place}: {message}; they are: {', '.join(known)}") from error
        raise ConfigError(f"{_mistake(error, config, known)}. Arguments of {name}: {', '.join(known)}") from error


def _mistake(error: msgspec.ValidationError, config: PluginConfig, known: Sequence[str]) -> str:
    """Return place and words of what msgspec has refused."""
    at, message = location_of(error)
    unknown = _UNKNOWN.fullmatch(message)
    if unknown is None:
        return f"{config.places.of(at)}: {message}"
    close = "" if at else did_you_mean(unknown[1], known)
    return f"{config.places.of_name((*at, unknown[1]))}: unknown field, got {unknown[1]!r}{close}"


def _check_declared(plugin: Plugin) -> None:
    kind = type(plugin).__name__
    if plugin.name != kind:
        raise ConfigError(f"{kind} has the name {plugin.name!r}. A plugin's name is that of its class: drop `name`")
    if not all(isinstance(index, type) and issubclass(index, Index) for index in plugin.indexes):
        raise ConfigError(f"{kind}.indexes must be classes derived from Index, got {plugin.indexes!r}. Fix it")
    events = plugin.events()
    if not all(isinstance(interest, EventInterest) for interest in events):
        raise ConfigError(f"{kind}.events() must return EventInterest objects, got {events!r}. Fix it")
