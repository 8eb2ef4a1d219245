"""FilledNodes: nodes that a rule refuses for pending load, the load that placed Pods will add to a signal."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.cluster.cache import Cache
from scheduler.model.arrays import BoolArray
from scheduler.model.rules import Rule
from scheduler.model.views import NodeView
from scheduler.rules.compiled import compiled_rules
from scheduler.signals.columns.store import SignalStore


class FilledNodes:
    """Remembers which nodes rules over signals with pending load have refused since the last answer.

    Each Pod that is placed, or goes, changes that between two answers, and each such change would bring back every Pod
    that waits. So it is compared once per answer: which nodes were refused at any time since the last answer, and no
    longer are.
    """

    def __init__(self, signals: SignalStore, cache: Cache) -> None:
        self._signals = signals
        self._cache = cache
        self._layout = -1
        self._refused: dict[str, BoolArray] = {}

    def look(self, now_s: float, signal: str = "") -> None:
        """Note what is refused now, by rules over one signal or all; call it now and then."""
        for name, mask in self._masks(self._concerned(signal), now_s).items():
            self._note(name, mask)

    def freed_by_answer(self, signal: str, now_s: float) -> frozenset[str]:
        """Return the rules over a signal, just published, that have freed a node; their memory begins anew."""
        concerned = self._concerned(signal)
        now = self._masks(concerned, now_s)
        freed = set()
        for rule in concerned:
            before, after = self._refused.pop(rule.name, None), now.get(rule.name)
            if before is not None and (after is None or bool((before & ~after).any())):
                freed.add(rule.name)
            self._note(rule.name, after)
        return frozenset(freed)

    def _concerned(self, signal: str) -> list[Rule]:
        rules = self._signals.rules
        counting = {name for name, one in rules.signals.items() if one.inflight is not None and signal in ("", name)}
        return [rule for rule in rules.rules if rule.signal in counting and rule.filter and rule.filter.max is not None]

    def _masks(self, rules: list[Rule], now_s: float) -> Mapping[str, BoolArray]:
        """Return by rule which nodes are refused, bool (n_rows,); rules without an answer in force are left out."""
        if not rules:
            return {}
        nodes = NodeView(self._cache.state.nodes)
        if nodes.layout != self._layout:
            self._layout = nodes.layout
            self._refused.clear()  # rows mean other nodes now; a new node brings Pods back by itself
        snapshot = self._cache.snapshot(self._signals.freeze(nodes, now_s), now_s)
        compiled = compiled_rules(snapshot).by_name
        found = {rule.name: compiled[rule.name].reading.tripped(None, snapshot) for rule in rules}
        return {name: mask for name, mask in found.items() if mask is not None}

    def _note(self, rule: str, mask: BoolArray | None) -> None:
        if mask is not None:
            known = self._refused.get(rule)
            self._refused[rule] = mask.copy() if known is None else known | mask
