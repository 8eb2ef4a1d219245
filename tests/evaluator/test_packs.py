"""Every query of every pack has the same answer as from a real Prometheus, on the samples recorded for the pack."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.app.check.rule_files import check
from scheduler.evaluator.store import SeriesStore
from scheduler.model.rules import Signal
from scheduler.signals.asking.lag_query import lag_query
from scheduler.signals.files import read_rule_files
from scheduler.signals.format.promql import reaches
from tests.evaluator.comparing import asked, difference, evaluated
from tests.evaluator.conftest import Twins
from tests.support.openmetrics import load_openmetrics
from tests.support.prometheus import PrometheusServer, import_samples

ROOT = Path(__file__).parents[2]
PACKS = sorted((ROOT / "rules").glob("*.yaml"))
DATA = ROOT / "tests" / "packs" / "data"
BEFORE_END_S = (0.0, 7.5, 61.0, -45.0, -290.0)


def signals_of(pack: Path) -> dict[str, Signal]:
    return dict(check(read_rule_files([pack])).rules.signals)


def lags_of(signal: Signal) -> str:
    """Return the query for the lags of a signal whose series are named by `instance`; a short limit shows series."""
    return lag_query(reaches(signal.expr), ("instance",), 5.0, signal.interval_s)


@pytest.fixture(scope="module")
def packs_twins(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    """The samples of all packs together: none has a series of another, or loading them would fail."""
    texts = [path.read_text() for path in sorted(DATA.glob("*.om"))]
    text = "".join(one.removesuffix("# EOF\n") for one in texts) + "# EOF\n"
    store = SeriesStore()
    n_samples = load_openmetrics(store, text)
    assert n_samples == sum(not line.startswith("#") for line in text.splitlines())
    server = PrometheusServer(programs, tmp_path_factory.mktemp("packs"))
    import_samples(programs, server.data, text)
    server.start()
    yield Twins(store, server.url)
    server.stop()


@pytest.mark.parametrize(
    "rules", sorted((ROOT / "scheduler" / "sim" / "rules").glob("*.yaml")), ids=lambda path: path.stem
)
def test_the_demo_asks_for_nothing_outside_the_subset(rules: Path) -> None:
    assert signals_of(rules)
    for signal in signals_of(rules).values():
        for query in (signal.expr, lags_of(signal)):
            assert not query or evaluated(SeriesStore(), query, 1000.0).kind in ("vector", "scalar"), query


def test_there_are_packs() -> None:
    assert PACKS
    assert all(signals_of(pack) for pack in PACKS)


@pytest.mark.parametrize("pack", PACKS, ids=lambda pack: pack.stem)
def test_every_query(packs_twins: Twins, pack: Path) -> None:
    end_s = max(series.last_ms or 0 for series in packs_twins.store.select(None, lambda _: True)) / 1000
    for name, signal in signals_of(pack).items():
        queries = [query for query in (signal.expr, lags_of(signal)) if query]
        for query in queries:
            for before_s in BEFORE_END_S:
                at_s = end_s - before_s
                for lookback_s in (300.0, signal.max_age_s):
                    theirs = asked(packs_twins.url, query, at_s, lookback_s)
                    differs = difference(evaluated(packs_twins.store, query, at_s, lookback_s), theirs)
                    assert not differs, f"{name}: {query} {before_s} s before the end: {differs}"
                    if before_s == 0.0:
                        assert theirs.values, f"{name}: no sample of {pack.stem}.om answers {query}"
