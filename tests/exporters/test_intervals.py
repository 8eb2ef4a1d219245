"""Our packs where real exporters are scraped every 15, 30 and 60 s: coverage, and the spacing that Vane measures.

`make scrapes` runs them, `make test` does not: time cannot be sped up for a real Prometheus, so they take over a
minute. The ranges of our packs and the measuring of the spacing look back up to ten minutes. What Prometheus would have
scraped before the tests began is written afterwards: the series as the exporters exposed them, at the pace at which
each target was scraped.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from scheduler.signals.format.promql import selectors
from tests.exporters import chart
from tests.exporters.asking import ask
from tests.exporters.expected import KUBELETS, PACKS, UNMAPPED
from tests.exporters.programs import Exporters, needs_kubelets
from tests.packs.world import RULES, load
from tests.support.exporter import labelled
from tests.support.prometheus import PrometheusServer, import_samples
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(os.environ.get("SCRAPES") != "full", reason="takes over a minute: `make scrapes`")

INTERVALS_S = (15, 30, 60)
BEFORE_S = 900
HOUSEKEEPING_S = 20.0
"""How old a sample may be that the kubelet exposes: it measures every 10 s, put off by chance by up to as much.

It exposes them with their time, so two scrapes may find the same one, and the spacing is longer than that of scrapes.
"""
SLOPE = 0.05
"""By how much counters are made to have grown in a second."""


@pytest.fixture(scope="module")
def housekeeping() -> str:
    return "10s"


@pytest.fixture(scope="module")
def servers(
    exporters: Exporters, programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[int, PrometheusServer]]:
    """A Prometheus by its scrape interval; all have scraped every target at least once."""
    configs = exporters.scrape_configs()
    n_targets = chart.n_targets(configs)
    servers = {
        every_s: PrometheusServer(
            programs, tmp_path_factory.mktemp(f"every-{every_s}s"), configs, scrape_interval=f"{every_s}s"
        )
        for every_s in INTERVALS_S
    }
    for server in servers.values():
        server.start()
    for every_s, server in servers.items():
        wait_until(functools.partial(has_scraped, server, n_targets), every_s + 15.0, f"a scrape in {every_s} s")
    for every_s, server in servers.items():
        history = earlier(server, every_s)
        server.stop()
        import_samples(programs, server.data, history)
        server.start()
    yield servers
    for server in servers.values():
        server.stop()


def has_scraped(server: PrometheusServer, n_targets: int) -> bool:
    return count(server, "up == 1") == n_targets


def count(server: PrometheusServer, expr: str) -> float:
    found = server.query(f"count({expr})")
    return float(found[0]["value"][1]) if found else 0.0


def earlier(server: PrometheusServer, every_s: int) -> dict[str, list[tuple[float, float]]]:
    """Return samples of every series that a pack reads, for the time before its first real one, by series."""
    history: dict[str, list[tuple[float, float]]] = {}
    read = {
        one
        for pack in PACKS
        for signal in load(RULES / f"{pack}.yaml").asked.values()
        for one in selectors(signal.expr)
    }
    for selector in read:
        for series in server.query(f"{selector}[5m]"):
            labels = dict(series["metric"])
            name = labels.pop("__name__")
            first_s, first = float(series["values"][0][0]), float(series["values"][0][1])
            slope = SLOPE if name.endswith("_total") else 0.0
            ages_s = range(every_s, BEFORE_S + 1, every_s)
            history[labelled(name, labels)] = [(first_s - age_s, first - slope * age_s) for age_s in ages_s]
    return history


@pytest.mark.parametrize("every_s", INTERVALS_S)
@pytest.mark.parametrize("name", PACKS)
def test_every_node_is_covered_and_the_spacing_is_the_scrapes(
    servers: Mapping[int, PrometheusServer], exporters: Exporters, name: str, every_s: int
) -> None:
    if name in KUBELETS:
        needs_kubelets(exporters)
    for signal, asked in ask(servers[every_s], load(RULES / f"{name}.yaml")).items():
        if signal not in PACKS[name]:
            continue
        answer = asked.answer
        assert set(asked.values) == PACKS[name][signal], signal
        assert answer.drops.total == answer.drops.unmapped == UNMAPPED.get(signal, 0), signal
        late_s = HOUSEKEEPING_S / 2 if name in KUBELETS else 0.0
        assert 0.9 * every_s <= answer.spacing_s <= 1.1 * every_s + late_s, signal
        assert answer.max_age_s == pytest.approx(4 * max(15.0, answer.spacing_s)), signal
        assert answer.lag_s <= every_s + (HOUSEKEEPING_S if name in KUBELETS else 0.0) + 1.0, signal


@pytest.mark.parametrize("every_s", INTERVALS_S)
def test_what_was_written_for_before_goes_on_with_what_is_scraped(
    servers: Mapping[int, PrometheusServer], every_s: int
) -> None:
    server = servers[every_s]
    for name in ("node_memory_MemTotal_bytes", "probe_success", "kube_node_status_allocatable"):
        assert count(server, f"count_over_time({name}[{BEFORE_S}s])") == count(server, name)
        assert count(server, f"count_over_time({name}[{2 * every_s + 5}s]) > 0") == count(server, name)
