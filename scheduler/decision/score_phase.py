"""The score phase: PreScore, Score, NormalizeScore, weights, the choice.

Arithmetic is integer: a contribution is rint(1000 · weight · score) thousandths as int64, and the total is
their sum, so that parts add up exactly and a replay on another CPU is equal. Weights that terms bring are capped first
(`share_cap.py`). What a plugin answers is checked before it counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import is_not
from typing import Any, Final

import numpy as np

from scheduler.decision.decision import WeighedTerm
from scheduler.decision.share_cap import capped_weights
from scheduler.errors import PluginError
from scheduler.framework.observer import SUCCESS, Observer
from scheduler.framework.plugin import MAX_NODE_SCORE, Plugin, PreScorePlugin, ScorePlugin
from scheduler.framework.plugin_faults import plugin_call, wrong
from scheduler.framework.profile import Profile
from scheduler.framework.status import Code, ScoreTerm, Status
from scheduler.model.arrays import FloatArray, HashArray, IntArray, Rows
from scheduler.model.hashes import mix64
from scheduler.model.pods import PodInfo
from scheduler.model.rules import MAX_WEIGHT
from scheduler.model.snapshot import Snapshot

_MAX_WEIGHTS: Final = 8
"""Of one column, for each of which a column of contributions is kept."""

THOUSANDTHS = 1000
_NUMBERS = (int, float, np.integer, np.floating)
_SCORE_TYPES = (np.dtype(np.int64), np.dtype(np.float64))

PluginTerm = tuple[ScorePlugin, ScoreTerm]


def score_phase(
    pod: PodInfo,
    snapshot: Snapshot,
    profile: Profile,
    feasible: IntArray,
    states: Mapping[str, object],
    observer: Observer,
) -> tuple[tuple[WeighedTerm, ...], IntArray]:
    """Return every term over the feasible rows and their int64 sum in thousandths."""
    rows: Rows = slice(None) if len(feasible) == snapshot.nodes.n_rows else feasible
    scored, skipped = _run_prescore(pod, snapshot, profile, rows, observer)
    observer.lap("PreScore", SUCCESS)
    terms: list[WeighedTerm] = []
    bringing: list[PluginTerm] = []
    for plugin, weight in profile.score:
        if plugin.name in skipped:
            continue
        state = scored[plugin.name] if plugin.name in scored else states.get(plugin.name)
        found = score_terms(plugin, state, pod, snapshot, rows)
        if plugin.brings_weights:
            bringing += [(plugin, term) for term in found]
        else:
            terms += [weigh(plugin, term, term_weight(plugin, term, weight), snapshot, rows) for term in found]
        observer.ran("Score", plugin.name, SUCCESS)
    weights = capped(bringing, profile.fixed_weight)
    terms += [weigh(plugin, term, own, snapshot, rows) for (plugin, term), own in zip(bringing, weights, strict=True)]
    observer.lap("Score", SUCCESS)
    sums = snapshot.memo.get(("sums of terms", profile.scheduler_name), (), RunningSum)
    return tuple(terms), _sum(terms, len(feasible), rows, sums)


def _sum(terms: Sequence[WeighedTerm], n_feasible: int, rows: Rows, sums: RunningSum) -> IntArray:
    total: IntArray = np.zeros(n_feasible, dtype=np.int64)
    for term in terms:
        if not term.is_column:
            total += term.contribution_column
    columns = [term.contribution_column for term in terms if term.is_column]
    if columns:
        total += sums.of(columns)[rows]
    return total


def choose(total: IntArray, feasible: IntArray, name_hash: HashArray, seed: int) -> tuple[int, IntArray]:
    """Return the chosen row and all rows that share the highest total.

    Among equals the smallest mix64(node hash ^ seed) wins: independent of node order and replica.
    """
    best = feasible[total == total.max()]
    if len(best) == 1:
        return int(best[0]), best
    lots = mix64(name_hash[best] ^ np.uint64(seed))
    return int(best[np.argmin(lots)]), best


def _run_prescore(
    pod: PodInfo, snapshot: Snapshot, profile: Profile, rows: Rows, observer: Observer
) -> tuple[dict[str, object], set[str]]:
    states: dict[str, object] = {}
    skipped: set[str] = set()
    for plugin in profile.prescore:
        result = prescore(plugin, pod, snapshot, rows)
        observer.ran("PreScore", plugin.name, result.code.label if isinstance(result, Status) else SUCCESS)
        if not isinstance(result, Status):
            states[plugin.name] = result
        elif result.code is Code.SKIP:
            skipped.add(plugin.name)
        else:
            message = f'running PreScore plugin "{plugin.name}": {", ".join(result.reasons)}'
            raise PluginError(plugin.name, "PreScore", message)
    return states, skipped


def capped(bringing: Sequence[PluginTerm], fixed_weight: float) -> list[float]:
    """Return the weight of each term that brings one of its own, none above its share."""
    for plugin, term in bringing:
        if not term.is_column:
            raise PluginError(plugin.name, "Score", f'plugin "{plugin.name}" returns no column for {term.name!r}')
    written = [term_weight(plugin, term, None) for plugin, term in bringing]
    return capped_weights(fixed_weight, written, [term_share(plugin, term) for plugin, term in bringing])


def weigh(plugin: ScorePlugin, term: ScoreTerm, weight: float, snapshot: Snapshot, rows: Rows) -> WeighedTerm:
    """Return a term with the weight that it has in this decision."""
    written, n_rows = weight if term.weight is None else float(term.weight), snapshot.nodes.n_rows
    values: IntArray | FloatArray = term.values
    if not term.is_column:
        values = normalized(plugin, term, n_rows if isinstance(rows, slice) else len(rows))
        column, rows = _contribution(values, weight), slice(None)
    else:
        column = _known_contribution(plugin, term, weight, snapshot)
    return WeighedTerm(
        plugin.name, term.name, weight, term.values, values, column, rows, term.is_column, written, term.max_share
    )


def _known_contribution(plugin: ScorePlugin, term: ScoreTerm, weight: float, snapshot: Snapshot) -> IntArray:
    """Return the contribution of a column, with every weight that it has had; a column that is known has been checked.

    They go with the column: the cap on shares gives a rule other weights from Pod to Pod and from edit to edit.
    """
    n_rows = snapshot.nodes.n_rows
    by_weight: dict[tuple[float, int], IntArray] = snapshot.memo.get(
        ("contributions", plugin.name, term.name), (term.values,), dict
    )
    known = by_weight.get((weight, n_rows))
    if known is None:
        if len(by_weight) >= _MAX_WEIGHTS:
            by_weight.clear()
        known = by_weight[weight, n_rows] = _checked_contribution(plugin, term.values, weight, n_rows)
    return known


def _checked_contribution(plugin: ScorePlugin, found: object, weight: float, n_rows: int) -> IntArray:
    values = scores(plugin, found, n_rows)
    check_range(plugin, values)
    contribution = _contribution(values, weight)
    contribution.flags.writeable = False
    return contribution


def _contribution(values: IntArray | FloatArray, weight: float) -> IntArray:
    if values.dtype == np.int64 and weight.is_integer():
        # The same without a detour over floats: whole scores and weights have no fractions to round.
        return values.astype(np.int64, copy=False) * (THOUSANDTHS * int(weight))
    rounded: IntArray = np.rint(values * (THOUSANDTHS * weight)).astype(np.int64)
    return rounded


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


@plugin_call("NormalizeScore")
def normalized(plugin: ScorePlugin, term: ScoreTerm, n_feasible: int) -> IntArray | FloatArray:
    """Return a term's values after NormalizeScore, (n_feasible,), in 0..100."""
    scores(plugin, term.values, n_feasible)
    values = scores(plugin, plugin.normalize(term), n_feasible, "NormalizeScore")
    check_range(plugin, values)
    return values


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


class RunningSum:
    """Sums up int64 columns by what has changed since the last time.

    Whole numbers add up to the same in any order, so a sum does not depend on what was summed before. Columns are told
    apart by identity, and held; none may be written again.
    """

    def __init__(self) -> None:
        self._columns: Sequence[IntArray] = ()
        self._sum: IntArray = np.zeros(0, dtype=np.int64)

    def of(self, columns: Sequence[IntArray]) -> IntArray:
        """Return the sum of one column or more, int64 (n,), all of one length: to be read at once, and not written."""
        changed = self._changed(columns)
        if changed is None:
            self._sum = columns[0].copy()
            for column in columns[1:]:
                self._sum += column
        else:
            for i in changed:
                self._sum -= self._columns[i]
                self._sum += columns[i]
        self._columns = columns
        return self._sum

    def _changed(self, columns: Sequence[IntArray]) -> list[int] | None:
        """Return the places whose column is another one; None where to add up all is cheaper, or all that can be."""
        known = self._columns
        if len(known) != len(columns) or known[0].shape != columns[0].shape:
            return None
        changed = [i for i, is_new in enumerate(map(is_not, known, columns)) if is_new]
        # Of each that has changed two columns are read.
        return changed if 2 * len(changed) < len(columns) else None
