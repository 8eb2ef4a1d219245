"""Checks of what plugins answer in `decide`: a broken contract names plugin and value, and fails that Pod only."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from scheduler.errors import PluginError
from scheduler.framework.plugin import MAX_NODE_SCORE, Plugin
from scheduler.framework.status import Code, PostFilterResult, PreFilterResult, Rejection, ScoreTerm, Status
from scheduler.model.arrays import FloatArray, IntArray
from scheduler.model.pods import PodInfo
from scheduler.model.rules import MAX_WEIGHT

_REFUSALS = (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
_NODE_CODES = (*_REFUSALS, Code.ERROR)
_NUMBERS = (int, float, np.integer, np.floating)
_SCORE_TYPES = (np.dtype(np.int64), np.dtype(np.float64))
_LONGEST = 100


def raised(plugin: Plugin, point: str, error: Exception) -> PluginError:
    """Return the fault of a plugin that raised, in kube-scheduler's words."""
    text = str(error) or type(error).__name__
    if point == "Filter":
        return filter_fault(plugin.name, text)
    return PluginError(plugin.name, point, f'running {point} plugin "{plugin.name}": {text}')


def filter_fault(plugin: str, text: str) -> PluginError:
    """Return the fault that a Filter plugin ran into, in kube-scheduler's words."""
    return PluginError(plugin, "Filter", f'running "{plugin}" filter plugin: {text}')


def is_refusal(found: Any, codes: Collection[Code] = _REFUSALS) -> bool:
    """Return whether an answer is a refusal with its reasons as a tuple of texts, not as one text."""
    return (
        isinstance(found, Status)
        and found.code in codes
        and isinstance(found.reasons, tuple)
        and all(isinstance(reason, str) for reason in found.reasons)
    )


def prefilter_answer(plugin: Plugin, found: Any) -> PreFilterResult | Status:
    """Return a PreFilter plugin's answer as what it is."""
    if isinstance(found, PreFilterResult):
        if found.node_names is not None and not isinstance(found.node_names, frozenset | set):
            raise wrong(plugin, "PreFilter", "node names", found.node_names, "a frozenset or None")
        return found
    if isinstance(found, Status) and (found.code is Code.SKIP or is_refusal(found)):
        return found
    raise wrong(plugin, "PreFilter", "", found, "PreFilterResult, SKIP or a refusal")


def rejections(plugin: Plugin, found: Any, shape: tuple[int, ...]) -> list[Rejection]:
    """Return a Filter plugin's answer; masks are bool of `shape`."""
    if not isinstance(found, Iterable):
        raise wrong(plugin, "Filter", "", found, "a sequence of Rejection")
    answers = list(found)
    for one in answers:
        if not isinstance(one, Rejection):
            raise wrong(plugin, "Filter", "", one, "Rejection")
        mask: Any = one.mask
        if not isinstance(mask, np.ndarray):
            raise wrong(plugin, "Filter", "a mask", mask, f"a bool array of {shape}")
        if mask.shape != shape or mask.dtype != np.bool_:
            message = f'plugin "{plugin.name}" returns a mask of {mask.dtype} {mask.shape}, it should be bool {shape}'
            raise PluginError(plugin.name, "Filter", message)
        if one.code not in _NODE_CODES:
            expected = "UNSCHEDULABLE, UNSCHEDULABLE_AND_UNRESOLVABLE or ERROR"
            raise wrong(plugin, "Filter", "the code", one.code, expected)
        if not isinstance(one.reason, str):
            raise wrong(plugin, "Filter", "the reason", one.reason, "a text")
    return answers


def postfilter_answer(plugin: Plugin, found: Any) -> PostFilterResult:
    """Return a PostFilter plugin's answer as what it is."""
    if not isinstance(found, PostFilterResult):
        raise wrong(plugin, "PostFilter", "", found, "PostFilterResult")
    refusal, node = found.refusal, found.nominated_node_name
    if refusal is not None and not is_refusal(refusal, _NODE_CODES):
        raise wrong(plugin, "PostFilter", "the refusal", refusal, "a refusal or None")
    if node is not None and not isinstance(node, str):
        raise wrong(plugin, "PostFilter", "the nominated node", node, "a name or None")
    if not isinstance(found.message, str):
        raise wrong(plugin, "PostFilter", "the message", found.message, "a text")
    if not isinstance(found.victims, tuple) or not all(isinstance(victim, PodInfo) for victim in found.victims):
        raise wrong(plugin, "PostFilter", "the victims", found.victims, "a tuple of PodInfo")
    return found


def score_terms(plugin: Plugin, found: Any) -> list[ScoreTerm]:
    """Return a Score plugin's answer; what the terms hold is checked one by one."""
    if not isinstance(found, Iterable):
        raise wrong(plugin, "Score", "", found, "a sequence of ScoreTerm")
    terms = list(found)
    for term in terms:
        if not isinstance(term, ScoreTerm):
            raise wrong(plugin, "Score", "", term, "ScoreTerm")
        if not isinstance(term.name, str):
            raise wrong(plugin, "Score", "the name of a term", term.name, "a text")
    return terms


def term_weight(plugin: Plugin, term: ScoreTerm, profile_weight: int | None) -> float:
    """Return a term's weight, finite and 0..100; without a weight of the profile it must bring one."""
    given: Any = term.weight
    weight = profile_weight if given is None else given
    # Written so that NaN fails: no comparison with it is True.
    if not isinstance(weight, _NUMBERS) or not 0 <= weight <= MAX_WEIGHT:
        raise PluginError(plugin.name, "Score", f'plugin "{plugin.name}" returns weight {weight!r} for {term.name!r}')
    return float(weight)


def term_share(plugin: Plugin, term: ScoreTerm) -> float | None:
    """Return the cap of a term's weight, above 0 and at most 1, or None."""
    share: Any = term.max_share
    if share is not None and not (isinstance(share, (int, float)) and 0 < share <= 1):
        raise PluginError(plugin.name, "Score", f'plugin "{plugin.name}" returns share {share!r} for {term.name!r}')
    return None if share is None else float(share)


def scores(plugin: Plugin, found: Any, n: int, point: str = "Score") -> IntArray | FloatArray:
    """Return scores as int64 or float64 (n,)."""
    if not isinstance(found, np.ndarray):
        raise wrong(plugin, point, "scores", found, f"an array of ({n},)")
    if found.shape != (n,):
        message = f'plugin "{plugin.name}" returns scores of shape {found.shape}, it should be ({n},)'
        raise PluginError(plugin.name, point, message)
    if found.dtype not in _SCORE_TYPES:
        message = f'plugin "{plugin.name}" returns scores of type {found.dtype}, it should be int64 or float64'
        raise PluginError(plugin.name, point, message)
    return found


def check_range(plugin: Plugin, values: IntArray | FloatArray) -> None:
    """Refuse normalised scores beyond 0..100, and NaN."""
    lowest, highest = values.min(), values.max()
    # Written so that NaN fails: no comparison with it is True.
    if not (lowest >= 0 and highest <= MAX_NODE_SCORE):
        wrong = highest if lowest >= 0 else lowest
        message = (
            f'plugin "{plugin.name}" returns an invalid score {wrong}, '
            f"it should in the range of [0, {MAX_NODE_SCORE}] after normalizing"
        )
        raise PluginError(plugin.name, "Score", message)


def wrong(plugin: Plugin, point: str, what: str, found: object, expected: str) -> PluginError:
    """Return the fault of a plugin that answered `found`; `what` names the part of its answer, "" is the whole."""
    shown = repr(found)
    shown = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."
    subject = f"{what} " if what else ""
    message = f'plugin "{plugin.name}" returns {subject}{shown} from {point}, it should be {expected}'
    return PluginError(plugin.name, point, message)
