"""Makes one plugin: its arguments as its own type, the object, and what it declares checked once."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from scheduler.app.plugin_sources import told
from scheduler.errors import ConfigError
from scheduler.framework.events import EventInterest
from scheduler.framework.index import Index
from scheduler.framework.plugin import BindPlugin, Plugin
from scheduler.settings_file import Location
from scheduler.settings_scheduler import PluginConfig

KUBE_ARGS_NOT_BUILT: Final = frozenset({"NodeAffinity", "NodeResourcesBalancedAllocation", "NodeResourcesFit"})
"""Plugins of ours that take arguments in kube-scheduler."""

_AT: Final = re.compile(r" - at `\$(.*)`$")
_UNKNOWN: Final = re.compile(r"unknown field `(.*)`$")
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+)\]")


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
    """
    name = kind.__name__
    if kind.Args is None:
        if config is not None and config.args:
            raise ConfigError(f"{config.places[()]}: {_needless(name)}")
        arguments: tuple[Any, ...] = ()
    else:
        arguments = (_converted(kind, kind.Args, config, place),)
    where = place if config is None else config.places[()]
    try:
        plugin = kind(*arguments)
        _check_declared(plugin)
        named = frozenset(plugin.clusters()) if isinstance(plugin, BindPlugin) else frozenset()
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from error
    except Exception as error:  # a third party's code, and the user is to know which
        raise ConfigError(
            f"{where}: {name} cannot be made: it raised {told(error)}. Mend it or its arguments"
        ) from error
    unknown = sorted(named - clusters)
    if unknown:
        known = f" ({', '.join(sorted(clusters))})" if clusters else ""
        raise ConfigError(
            f"{where}: {name} names the cluster {unknown[0]!r}, and there is none of this name. Write one of"
            f" the setting clusters{known}, or add it there"
        )
    return plugin


def _needless(name: str) -> str:
    if name in KUBE_ARGS_NOT_BUILT:
        return f"{name}Args of kube-scheduler: not built yet. Drop them"
    return f"{name} takes no arguments. Drop them"


def _converted(kind: type[Plugin], args: Any, config: PluginConfig | None, place: str) -> msgspec.Struct:
    name = kind.__name__
    if not isinstance(args, type) or not issubclass(args, msgspec.Struct):
        raise ConfigError(f"{place}: {name}.Args must be a class made from PluginArgs, got {args!r}. Mend it")
    if not args.__struct_config__.forbid_unknown_fields:
        raise ConfigError(
            f"{place}: {name}.Args lets unknown fields pass, so that slips would go unseen. Make it from"
            " scheduler.framework.args.PluginArgs"
        )
    try:
        return msgspec.convert({} if config is None else config.args, args)
    except msgspec.ValidationError as error:
        text, known = str(error), [info.encode_name for info in msgspec.structs.fields(args)]
        if config is None:
            message = f"{name} needs arguments: {text}. Write them in pluginConfig"
            raise ConfigError(f"{place}: {message}; they are: {', '.join(known)}") from error
        at = _location(text)
        while at not in config.places:
            at = at[:-1]
        told_ = _AT.sub("", text)
        raise ConfigError(f"{config.places[at]}: {told_}. Arguments of {name}: {', '.join(known)}") from error


def _location(text: str) -> Location:
    """Return the way below `args` that msgspec's message ends with: ` - at `$.pods.items[0]``."""
    path, unknown = _AT.search(text), _UNKNOWN.search(_AT.sub("", text))
    steps: list[str | int] = []
    for field, number in _STEP.findall(path[1]) if path else ():
        steps.append(field if field else int(number))
    return (*steps, unknown[1]) if unknown else tuple(steps)


def _check_declared(plugin: Plugin) -> None:
    kind = type(plugin).__name__
    if plugin.name != kind:
        raise ConfigError(f"{kind} has the name {plugin.name!r}. A plugin's name is that of its class: drop `name`")
    if not all(isinstance(index, type) and issubclass(index, Index) for index in plugin.indexes):
        raise ConfigError(f"{kind}.indexes must be classes made from Index, got {plugin.indexes!r}. Mend it")
    events = plugin.events()
    if not all(isinstance(interest, EventInterest) for interest in events):
        raise ConfigError(f"{kind}.events() must return EventInterest objects, got {events!r}. Mend it")
