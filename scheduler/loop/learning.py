"""Learning what Pods add to signals: after each answer to a signal whose effect is learned."""

from __future__ import annotations

from scheduler.framework.inflight_column import is_learned
from scheduler.loop.cycle import World
from scheduler.model.views import NodeView
from scheduler.signals.answers import SignalAnswer


def learn(world: World, answer: SignalAnswer, now_s: float) -> None:
    """Compare the samples of a good answer with those before it."""
    signal = world.signals.rules.signals.get(answer.signal)
    if signal is None or not is_learned(signal) or answer.error or answer.is_suspect:
        return
    table = world.signals.freeze(NodeView(world.cache.state.nodes), now_s)
    world.signals.learned.observe(signal.name, world.cache.snapshot(table, now_s))
