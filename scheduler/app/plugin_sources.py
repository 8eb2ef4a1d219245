"""Where plugins come from: Vane's own, installed ones (entry points) and import paths."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint
from typing import Any, Final

from scheduler.errors import ConfigError
from scheduler.framework.plugin import Plugin
from scheduler.plugins import DEFAULT_CHAIN, OPTIONAL
from scheduler.strict_yaml.report import did_you_mean

GROUP: Final = "vane.plugins"
"""The entry point group in which an installed package offers its plugins."""

OURS: Final[Mapping[str, type[Plugin]]] = {
    **{link.name: link.factory for link in DEFAULT_CHAIN},
    **{plugin.__name__: plugin for plugin in OPTIONAL},
}

NOT_BUILT: Final = (
    frozenset(
        {
            "DefaultPreemption",
            "DeferredPodScheduling",
            "DynamicResources",
            "GangScheduling",
            "InterPodAffinity",
            "NodeDeclaredFeatures",
            "NodeVolumeLimits",
            "PodGroupPodsCount",
            "PodTopologySpread",
            "TopologyPlacementGenerator",
            "VolumeBinding",
            "VolumeRestrictions",
            "VolumeZone",
        }
    )
    - OURS.keys()
)
"""Plugins of kube-scheduler 1.37 that Vane has not."""


class PluginSources:
    """Finds the class that a name in configuration stands for; a name of ours wins over an installed one."""

    def __init__(self, installed: Iterable[EntryPoint]) -> None:
        self._installed: dict[str, list[EntryPoint]] = {}
        for entry in installed:
            if entry.value not in [other.value for other in self._installed.setdefault(entry.name, [])]:
                self._installed[entry.name].append(entry)

    def short(self, name: str) -> str:
        """Return the class name that a name stands for, without importing anything."""
        path = name
        if name not in OURS and name in self._installed:
            path = _path(self._installed[name][0])
        return path.partition(":")[2] or path

    def is_known(self, name: str) -> bool:
        """Return whether the name stands for something, though it may not be built or may fail to be imported."""
        return name in OURS or name in NOT_BUILT or name in self._installed

    def find(self, name: str) -> type[Plugin]:
        """Return the class.

        Raises
        ------
        ConfigError
            It cannot be imported, or is no complete plugin; the message has no place.
        """
        if name in OURS:
            return OURS[name]
        if name in self._installed:
            entries = self._installed[name]
            if len(entries) > 1:
                found = " and ".join(sorted(entry.value for entry in entries))
                raise ConfigError(f"{name!r} is offered by several installed packages, got {found}. Write one of these")
            return _checked(name, _imported(_path(entries[0])))
        if ":" in name:
            return _checked(name, _imported(name))
        if name in NOT_BUILT:
            raise ConfigError(f"{name} of kube-scheduler: not built yet. Drop it")
        close = did_you_mean(name, [*OURS, *self._installed])
        raise ConfigError(
            f"no such plugin, got {name!r}{close}. Write a name of Vane's, one that an installed package offers in the"
            f" entry point group {GROUP}, or an import path as package.module:Class"
        )


def _path(entry: EntryPoint) -> str:
    """Return `package.module:Class` without the extras that packaging once allowed behind it."""
    return entry.value.partition("[")[0].strip()


def _imported(path: str) -> Any:
    """Return what `package.module:Class` names."""
    module_name, _, attribute = path.partition(":")
    if not module_name or not attribute.isidentifier():
        raise ConfigError(f"must be an import path, got {path!r}. Write package.module:Class")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module_name}.".startswith(f"{error.name}."):
            advice = "Install its package, or add its folder to PYTHONPATH"
            raise ConfigError(f"cannot be imported: no module named {error.name!r}. {advice}") from error
        raise ConfigError(f"cannot be imported: {module_name} lacks a module: {error}. Install it") from error
    except (Exception, SystemExit) as error:  # a third party's code, and the user is to know which
        raise ConfigError(f"cannot be imported: {module_name} raised {told(error)}. Fix it") from error
    if not hasattr(module, attribute):
        close = did_you_mean(attribute, vars(module))
        raise ConfigError(f"cannot be imported: module {module_name} has no {attribute!r}{close}. Write its class")
    return getattr(module, attribute)


def _checked(name: str, found: Any) -> type[Plugin]:
    if not isinstance(found, type) or not issubclass(found, Plugin):
        kind = "the class" if isinstance(found, type) else "an object of class"
        what = found.__name__ if isinstance(found, type) else type(found).__name__
        raise ConfigError(
            f"{name!r} is not a plugin, got {kind} {what}. Write a class derived from scheduler.framework.plugin"
        )
    missing = sorted(getattr(found, "__abstractmethods__", ()))
    if missing:
        raise ConfigError(f"{found.__name__} lacks {', '.join(missing)}. Write the methods of its extension points")
    return found


def told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
