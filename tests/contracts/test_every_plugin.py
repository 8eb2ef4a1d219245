"""What every filter and score plugin, examples too, has to hold, over random small clusters and Pods."""

from __future__ import annotations

import warnings
from random import Random
from typing import Any

import numpy as np
import pytest

from scheduler.framework.plugin import FilterPlugin, ScorePlugin
from scheduler.plugins import DEFAULT_CHAIN
from tests.builders import make_node, make_pod, snapshot_of
from tests.contracts.asking import FILTERS, PLUGINS, SCORES, by_name, run_filter, run_score, verdicts
from tests.worlds import World, each_seed, random_world

every_plugin = pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.name)
every_filter = pytest.mark.parametrize("plugin", FILTERS, ids=lambda plugin: plugin.name)
every_score = pytest.mark.parametrize("plugin", SCORES, ids=lambda plugin: plugin.name)
random_worlds = each_seed(100)


def some_rows(random: Random, n: int) -> list[int]:
    return sorted(random.sample(range(n), random.randint(0, n)))


@every_filter
@random_worlds
def test_a_mask_is_bool_and_as_long_as_the_rows(plugin: FilterPlugin, random: Random) -> None:
    world = random_world(random)
    snapshot = world.snapshot()

    for rejection in run_filter(plugin, world.pod, snapshot):
        assert rejection.mask.dtype == np.bool_
        assert rejection.mask.shape == (snapshot.nodes.n_rows,)
        assert rejection.reason


@every_filter
@random_worlds
def test_a_filter_says_of_any_subset_what_it_says_of_all(plugin: FilterPlugin, random: Random) -> None:
    world = random_world(random, min_nodes=1)
    snapshot = world.snapshot()
    n = snapshot.nodes.n_rows
    chosen = some_rows(random, n)

    whole = verdicts(run_filter(plugin, world.pod, snapshot), n)
    part = verdicts(run_filter(plugin, world.pod, snapshot, np.array(chosen, dtype=np.int64)), len(chosen))

    assert part == [whole[row] for row in chosen]


@every_score
@random_worlds
def test_a_raw_score_does_not_depend_on_who_else_is_looked_at(plugin: ScorePlugin, random: Random) -> None:
    world = random_world(random, min_nodes=1)
    snapshot = world.snapshot()
    chosen = some_rows(random, snapshot.nodes.n_rows)

    whole = by_name(run_score(plugin, world.pod, snapshot))
    part = by_name(run_score(plugin, world.pod, snapshot, np.array(chosen, dtype=np.int64)))

    assert part == {name: ([values[row] for row in chosen], weight) for name, (values, weight) in whole.items()}


@every_filter
@random_worlds
def test_the_order_of_nodes_does_not_change_a_verdict(plugin: FilterPlugin, random: Random) -> None:
    world = random_world(random, min_nodes=1)
    order = random.sample(range(len(world.nodes)), len(world.nodes))
    before, after = world.snapshot(), world.permuted(order).snapshot()

    whole = verdicts(run_filter(plugin, world.pod, before), before.nodes.n_rows)
    moved = verdicts(run_filter(plugin, world.pod, after), after.nodes.n_rows)

    assert moved[: len(order)] == [whole[i] for i in order]


@every_score
@random_worlds
def test_the_order_of_nodes_does_not_change_a_score(plugin: ScorePlugin, random: Random) -> None:
    world = random_world(random, min_nodes=1)
    order = random.sample(range(len(world.nodes)), len(world.nodes))
    before, after = world.snapshot(), world.permuted(order).snapshot()

    whole = by_name(run_score(plugin, world.pod, before))
    moved = by_name(run_score(plugin, world.pod, after))

    assert {name: (values[: len(order)], weight) for name, (values, weight) in moved.items()} == {
        name: ([values[i] for i in order], weight) for name, (values, weight) in whole.items()
    }


@every_score
@random_worlds
def test_raw_scores_are_finite_and_normalised_ones_lie_in_0_to_100(plugin: ScorePlugin, random: Random) -> None:
    world = random_world(random, min_nodes=1)
    snapshot = world.snapshot()

    for term in run_score(plugin, world.pod, snapshot):
        values = plugin.normalize(term)
        assert np.isfinite(term.values).all()
        assert term.values.shape == values.shape == (snapshot.nodes.n_rows,)
        assert (values >= 0).all()
        assert (values <= 100).all()
        assert term.weight is None or 0 <= term.weight <= 100


@every_plugin
@random_worlds
def test_the_same_question_twice_has_the_same_answer_and_changes_nothing(plugin: Any, random: Random) -> None:
    world = random_world(random)
    snapshot = world.snapshot()
    nodes = snapshot.nodes
    columns = (nodes.alive, nodes.allocatable, nodes.requested, nodes.nonzero_requested, nodes.n_pods)
    before = [column.copy() for column in columns]
    samples = [column.values.copy() for column in snapshot.signals.columns.values()]

    if isinstance(plugin, FilterPlugin):
        first, second = (verdicts(run_filter(plugin, world.pod, snapshot), nodes.n_rows) for _ in range(2))
        assert first == second
    if isinstance(plugin, ScorePlugin) and nodes.n_rows:
        once, again = (by_name(run_score(plugin, world.pod, snapshot)) for _ in range(2))
        assert once == again

    assert all(np.array_equal(a, b) for a, b in zip(before, columns, strict=True))
    now = [column.values for column in snapshot.signals.columns.values()]
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(samples, now, strict=True))


@pytest.mark.parametrize("n", [0, 1], ids=["no node", "one node"])
@every_plugin
def test_the_smallest_clusters_work(plugin: Any, n: int) -> None:
    snapshot = snapshot_of([make_node(f"n{i}") for i in range(n)])
    pod = make_pod(cpu="1", memory="1Gi", ports=[{"hostPort": 80}], spec={"nodeSelector": {"a": "b"}})

    if isinstance(plugin, FilterPlugin):
        assert all(len(one.mask) == n for one in run_filter(plugin, pod, snapshot))
    if isinstance(plugin, ScorePlugin):
        assert all(len(term.values) == n for term in run_score(plugin, pod, snapshot))


@every_plugin
def test_signals_without_any_sample_raise_no_warning(plugin: Any) -> None:
    nodes = tuple(make_node(f"n{i}") for i in range(4))
    nothing = (float("nan"),) * 4
    world = World(nodes, (), make_pod(cpu="1"), (nothing, nothing, nothing), 0.0)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if isinstance(plugin, FilterPlugin):
            run_filter(plugin, world.pod, world.snapshot())
        if isinstance(plugin, ScorePlugin):
            terms = run_score(plugin, world.pod, world.snapshot())
            assert all(np.isfinite(term.values).all() for term in terms)


def test_the_chain_names_each_plugin_by_its_class() -> None:
    assert [link.name for link in DEFAULT_CHAIN] == [link.factory().name for link in DEFAULT_CHAIN]


def test_signals_come_last_among_filters_and_scores() -> None:
    assert FILTERS[-1].name == "SignalFilter"
    assert SCORES[-1].name == "SignalScore"
