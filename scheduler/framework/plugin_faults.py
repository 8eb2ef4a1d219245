"""The faults of plugins in kube-scheduler's words: one names plugin, point and value, and fails that Pod only."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Any, TypeVar, TypeVarTuple

from scheduler.errors import PluginError, UnsupportedPodError
from scheduler.framework.plugin import Plugin
from scheduler.framework.status import Code, Status

P = TypeVar("P", bound=Plugin)
A = TypeVarTuple("A")
R = TypeVar("R")

REFUSALS = (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
NODE_CODES = (*REFUSALS, Code.ERROR)
"""What may be said of one node."""
_LONGEST = 100


def plugin_call(point: str) -> Callable[[Callable[[P, *A], R]], Callable[[P, *A], R]]:
    """Make what a function raises a fault of the plugin that is its first argument: it fails this attempt only.

    Whatever the plugin, UnsupportedPodError is no fault of it.
    """

    def guarded(function: Callable[[P, *A], R]) -> Callable[[P, *A], R]:
        @functools.wraps(function)
        def called(plugin: P, *args: *A) -> R:
            try:
                return function(plugin, *args)
            except (PluginError, UnsupportedPodError):
                raise
            except Exception as error:
                raise raised(plugin, point, error) from error

        return called

    return guarded


def raised(plugin: Plugin, point: str, error: Exception) -> PluginError:
    """Return the fault of a plugin that raised, in kube-scheduler's words."""
    text = str(error) or type(error).__name__
    running = f'"{plugin.name}" filter plugin' if point == "Filter" else f'{point} plugin "{plugin.name}"'
    return PluginError(plugin.name, point, f"running {running}: {text}")


def is_refusal(found: Any, codes: Collection[Code] = REFUSALS) -> bool:
    """Return whether an answer is a refusal with its reasons as a tuple of texts, not as one text."""
    return (
        isinstance(found, Status)
        and found.code in codes
        and isinstance(found.reasons, tuple)
        and all(isinstance(reason, str) for reason in found.reasons)
    )


def wrong(plugin: Plugin, point: str, what: str, found: object, expected: str) -> PluginError:
    """Return the fault of a plugin that answered `found`; `what` names the part of its answer, "" is the whole."""
    shown = repr(found)
    shown = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."
    subject = f"{what} " if what else ""
    message = f'plugin "{plugin.name}" returns {subject}{shown} from {point}, it should be {expected}'
    return PluginError(plugin.name, point, message)
