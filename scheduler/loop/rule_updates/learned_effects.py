"""Learning what Pods add to signals: after each answer to a signal whose effect is learned."""

from __future__ import annotations

from scheduler.cluster.cache import Cache
from scheduler.model.views import NodeView
from scheduler.rules.pending_column import is_learned
from scheduler.signals.answers import SignalAnswer
from scheduler.signals.columns.store import SignalStore


def learn(signals: SignalStore, cache: Cache, answer: SignalAnswer, now_s: float) -> None:
    """Compare the samples of a good answer with those before it."""
    signal = signals.rules.signals.get(answer.signal)
    if signal is None or not is_learned(signal) or answer.error or answer.is_suspect:
        return
    table = signals.freeze(NodeView(cache.state.nodes), now_s)
    signals.learned.observe(signal.name, cache.snapshot(table, now_s))
