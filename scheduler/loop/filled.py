"""Nodes that a rule refuses for what placed Pods will add: no sample tells that this is over, the next one shows it."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.cluster.cache import Cache
from scheduler.framework.rule_reading import read_tripped
from scheduler.model.arrays import BoolArray
from scheduler.model.views import NodeView
from scheduler.signals.columns.store import SignalStore


class FilledNodes:
    """Compares what rules over one signal refuse before and after its next answer, in-flight Pods included."""

    def __init__(self, signals: SignalStore, cache: Cache) -> None:
        self._signals = signals
        self._cache = cache

    def look(self, signal: str, now_s: float) -> Mapping[str, BoolArray]:
        """Return by rule which nodes are refused now, bool (n_rows,); nothing where no Pod adds to the signal."""
        rules = self._signals.rules
        declared = rules.signals.get(signal)
        if declared is None or declared.inflight is None:
            return {}
        concerned = [rule for rule in rules.judged if rule.signal == signal and rule.filter is not None]
        if all(rule.filter is None or rule.filter.max is None for rule in concerned):
            return {}
        table = self._signals.freeze(NodeView(self._cache.state.nodes), now_s)
        snapshot = self._cache.snapshot(table, now_s)
        refused = {rule.name: read_tripped(rule, None, snapshot) for rule in concerned}
        return {name: mask for name, mask in refused.items() if mask is not None}


def freed(before: Mapping[str, BoolArray], after: Mapping[str, BoolArray]) -> frozenset[str]:
    """Return the rules that refuse a node no longer."""
    return frozenset(name for name, mask in before.items() if name not in after or bool((mask & ~after[name]).any()))
