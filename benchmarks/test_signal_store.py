"""The signal store alone, at 5,000 nodes: `make bench-micro`."""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from scheduler.model.rules import Rule, RuleFilter, Signal
from scheduler.model.views import NodeView
from tests.signals.columns.store_world import CPU, HOT, World, rules_of


@pytest.mark.benchmark(group="signals")
def test_freezing_20_signals_over_5000_nodes(benchmark: BenchmarkFixture) -> None:
    signals = tuple(Signal(f"s{i}", f"x{i}") for i in range(20))
    rules = tuple(Rule(f"r{i}", f"s{i}", filter=RuleFilter(max=0.8, max_clear=0.7)) for i in range(20))
    world = World(*(f"node-{i:05}" for i in range(5000)), rules=rules_of(*rules, signals=signals))
    for signal in signals:
        world.publish(dict.fromkeys(world.identity.names, 0.5), signal)
    view = NodeView(world.table)
    world.store.freeze(view, world.clock.now_s)
    benchmark(world.store.freeze, view, world.clock.now_s)


@pytest.mark.benchmark(group="signals")
def test_publishing_one_signal_over_5000_nodes(benchmark: BenchmarkFixture) -> None:
    world = World(*(f"node-{i:05}" for i in range(5000)), rules=rules_of(HOT))
    answer = world.answer(CPU, dict.fromkeys(world.identity.names, 0.5))
    view = NodeView(world.table)

    def publish_and_freeze() -> None:
        world.store.publish(answer)
        world.store.freeze(view, world.clock.now_s)

    benchmark(publish_and_freeze)
