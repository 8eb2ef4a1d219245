"""Calls of plugins in `decide`: what they answer is checked, and what they raise is their fault.

A broken contract names plugin and value, and fails that Pod only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, TypeVarTuple

import numpy as np

from scheduler.errors import PluginError
from scheduler.framework.diagnosis import Diagnosis
from scheduler.framework.plugin import (
    MAX_NODE_SCORE,
    DryRun,
    FilterPlugin,
    Plugin,
    PostFilterPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    Tally,
)
from scheduler.framework.plugin_faults import REFUSALS, is_refusal, raised, wrong
from scheduler.framework.status import Code, PostFilterResult, PreFilterResult, Rejection, ScoreTerm, Status
from scheduler.model.arrays import FloatArray, IntArray, Rows
from scheduler.model.pods import PodInfo
from scheduler.model.rules import MAX_WEIGHT
from scheduler.model.snapshot import Snapshot

P = TypeVar("P", bound=Plugin)
A = TypeVarTuple("A")
R = TypeVar("R")

_NODE_CODES = (*REFUSALS, Code.ERROR)
_NUMBERS = (int, float, np.integer, np.floating)
_SCORE_TYPES = (np.dtype(np.int64), np.dtype(np.float64))


def plugin_call(point: str) -> Callable[[Callable[[P, *A], R]], Callable[[P, *A], R]]:
    """Make what a function raises a fault of the plugin that is its first argument: it fails this attempt only."""

    def guarded(function: Callable[[P, *A], R]) -> Callable[[P, *A], R]:
        @functools.wraps(function)
        def called(plugin: P, *args: *A) -> R:
            try:
                return function(plugin, *args)
            except PluginError:
                raise
            except Exception as error:
                raise raised(plugin, point, error) from error

        return called

    return guarded


@plugin_call("PreFilter")
def prefilter(plugin: PreFilterPlugin, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status:
    """Return a PreFilter plugin's answer as what it is."""
    found: Any = plugin.prefilter(pod, snapshot)
    if isinstance(found, PreFilterResult):
        if found.node_names is not None and not isinstance(found.node_names, frozenset | set):
            raise wrong(plugin, "PreFilter", "node names", found.node_names, "a frozenset or None")
        return found
    if isinstance(found, Status) and (found.code is Code.SKIP or is_refusal(found)):
        return found
    raise wrong(plugin, "PreFilter", "", found, "PreFilterResult, SKIP or a refusal")


@plugin_call("Filter")
def rejections(
    plugin: FilterPlugin, state: object, pod: PodInfo, snapshot: Snapshot, rows: Rows, shape: tuple[int, ...]
) -> list[Rejection]:
    """Return a Filter plugin's answer; masks are bool of `shape`."""
    found: Any = plugin.filter(state, pod, snapshot, rows)
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


@plugin_call("Filter")
def tally(
    plugin: FilterPlugin, state: object, pod: PodInfo, snapshot: Snapshot, pods: Sequence[PodInfo]
) -> Tally | None:
    """Return a Filter plugin's tally of some Pods."""
    return plugin.tally(state, pod, snapshot, pods)


@plugin_call("Filter")
def counted(plugin: FilterPlugin, state: object, pod: PodInfo, row: int, snapshot: Snapshot, sign: int) -> object:
    """Return PreFilter's state once `pod` has been placed on `row` (sign 1) or removed from it (-1)."""
    found: object = (plugin.add_pod if sign > 0 else plugin.remove_pod)(state, pod, row, snapshot)
    return found


@plugin_call("PostFilter")
def postfilter(
    plugin: PostFilterPlugin,
    state: object,
    pod: PodInfo,
    snapshot: Snapshot,
    diagnosis: Diagnosis,
    dry_run: DryRun,
) -> PostFilterResult:
    """Return a PostFilter plugin's answer as what it is."""
    found: Any = plugin.postfilter(state, pod, snapshot, diagnosis, dry_run)
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


@plugin_call("PreScore")
def prescore(plugin: PreScorePlugin, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> object | Status:
    """Return a PreScore plugin's answer."""
    return plugin.prescore(pod, snapshot, rows)


@plugin_call("Score")
def score_terms(plugin: ScorePlugin, state: object, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> list[ScoreTerm]:
    """Return a Score plugin's answer; what the terms hold is checked one by one."""
    found: Any = plugin.score(state, pod, snapshot, rows)
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


@plugin_call("NormalizeScore")
def normalized(plugin: ScorePlugin, term: ScoreTerm, n_feasible: int) -> IntArray | FloatArray:
    """Return a term's values after NormalizeScore, (n_feasible,), in 0..100."""
    scores(plugin, term.values, n_feasible)
    values = scores(plugin, plugin.normalize(term), n_feasible, "NormalizeScore")
    check_range(plugin, values)
    return values


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
