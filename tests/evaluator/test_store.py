from __future__ import annotations

import math
import threading
from pathlib import Path

import numpy as np
import pytest

from scheduler.evaluator.evaluate import evaluate
from scheduler.evaluator.store import STALE_NAN, SeriesStore, is_stale
from scheduler.evaluator.values import Scalar
from tests.support.openmetrics import load_openmetrics, parse_openmetrics
from tests.support.prometheus import PrometheusServer, import_samples

UP = {"__name__": "up", "node": "n1"}
TEXT = r"""# HELP temp_celsius Help with \n and {braces}.
# TYPE temp_celsius gauge
# UNIT temp_celsius celsius
temp_celsius{node="n1",path="C:\\x\"y\n}"} 20.5 1700000000.001
temp_celsius{node="n1",path="C:\\x\"y\n}"} -Inf 1700000015.0019
temp_celsius 1e3 1.7000000e9
# TYPE hits counter
hits_total{node="a",} 7 1700000000 # {trace="1"} 0.5
hits_total{node="a"} NaN 1700000015.5
empty{} +Inf 1700000000
# EOF
"""


def values(store: SeriesStore, expr: str, at_s: float) -> list[float]:
    result = evaluate(expr, store, at_s)
    assert not isinstance(result, Scalar)
    return [float(value) for value in result.values]


def test_samples_come_back_in_order() -> None:
    store = SeriesStore()
    for i in range(1000):
        store.append(UP, 1000 + i / 4, float(i))
    assert values(store, "count_over_time(up[250s])", 1249.75) == [1000]
    assert values(store, "up", 1100.1) == [400]
    assert len(store) == 1
    assert [series.last_ms for series in store.select("up", lambda _: True)] == [1_249_750]


def test_an_empty_label_is_none() -> None:
    store = SeriesStore()
    store.append(UP, 1.0, 1.0)
    store.append({**UP, "zone": ""}, 2.0, 2.0)
    assert values(store, 'up{zone=""}', 2.0) == [2.0]
    assert len(store) == 1


@pytest.mark.parametrize("at_s", [10.0, 9.5, 10.0004])
def test_a_sample_of_the_past_is_refused(at_s: float) -> None:
    store = SeriesStore()
    store.append(UP, 10.0, 1.0)
    with pytest.raises(ValueError, match=r'\{__name__="up", node="n1"\}: samples must come in the order of time'):
        store.append(UP, at_s, 2.0)
    assert values(store, "up", 11.0) == [1.0]


def test_a_series_needs_a_name() -> None:
    with pytest.raises(ValueError, match="a series needs a label __name__"):
        SeriesStore().append({"node": "n1"}, 1.0, 1.0)


def test_old_samples_and_silent_series_are_forgotten() -> None:
    store = SeriesStore(retention_s=100.0)
    store.append({"__name__": "gone"}, 0.0, 1.0)
    for i in range(5000):
        store.append(UP, float(i), float(i))
    assert len(store) == 1
    assert values(store, "gone", 60.0) == []
    n_kept = len(store.select("up", lambda _: True)[0].samples()[0])
    assert 100 <= n_kept <= 300
    assert values(store, "min_over_time(up[100s])", 4999.0) == [4900.0]
    store.append({"__name__": "gone"}, 5000.0, 2.0)
    assert values(store, "gone", 5000.0) == [2.0]


def test_a_stale_marker_ends_a_series_and_other_nan_does_not() -> None:
    store = SeriesStore()
    store.append(UP, 1.0, math.nan)
    assert all(map(math.isnan, values(store, "up", 2.0)))
    assert values(store, "count(up)", 2.0) == [1.0]
    store.append(UP, 3.0, STALE_NAN)
    assert values(store, "up", 4.0) == []
    assert values(store, "count_over_time(up[10s])", 4.0) == [1.0]
    assert is_stale(np.array([STALE_NAN, math.nan, 1.0])).tolist() == [True, False, False]


def test_reading_while_another_thread_writes() -> None:
    store = SeriesStore(retention_s=50.0)
    ended = threading.Event()
    faults: list[BaseException] = []

    def read() -> None:
        try:
            while not ended.is_set():
                for expr in ("sum(count_over_time(up[20s]))", '{node=~"n.*"}'):
                    for value in values(store, expr, newest_s[0]):
                        assert value >= 0
        except BaseException as error:  # noqa: BLE001 - the test tells it in its own thread
            faults.append(error)

    newest_s = [0.0]
    reader = threading.Thread(target=read)
    reader.start()
    for i in range(3000):
        store.append({"__name__": "up", "node": f"n{i % 7}", "run": str(i // 500)}, i / 10, float(i))
        newest_s[0] = i / 10
    ended.set()
    reader.join()
    assert faults == []


def test_openmetrics_as_a_real_prometheus_reads_it(programs: Path, tmp_path: Path) -> None:
    store = SeriesStore()
    assert load_openmetrics(store, TEXT) == 6
    server = PrometheusServer(programs, tmp_path)
    import_samples(programs, server.data, TEXT)
    server.start()
    try:
        theirs = _by_series(server, '{__name__=~".+"}[1m]', 1700000030)
    finally:
        server.stop()
    ours = {}
    for series in store.select(None, lambda _: True):
        times, numbers = series.samples()
        ours[frozenset(series.labels.items())] = [
            (int(at), str(value)) for at, value in zip(times, numbers.tolist(), strict=True)
        ]
    assert ours == theirs


def _by_series(server: PrometheusServer, expr: str, at_s: float) -> dict[frozenset[tuple[str, str]], object]:
    return {
        frozenset(series["metric"].items()): [(round(at * 1000), str(float(text))) for at, text in series["values"]]
        for series in server.query(expr, at_s)
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("up 1 1\n", "line 2: the text ends without # EOF"),
        ("up 1\n# EOF\n", "line 1: no timestamp"),
        ("up\n# EOF\n", "line 1: no sample"),
        ("\n\nup{a=1} 1 1\n# EOF\n", "line 3: no label in 'a=1'"),
        ("up one 1\n# EOF\n", "line 1: could not convert string to float: 'one'"),
        ("up 1 Inf\n# EOF\n", "line 1: cannot convert float infinity"),
        ("up 1 1\n# EOF\nup 1 2\n", "line 3: text after # EOF"),
        ("up 1 1\nup 2 1\n# EOF\n", "samples must come in the order of time"),
    ],
)
def test_what_is_no_openmetrics(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match="(?s)" + problem):
        load_openmetrics(SeriesStore(), text)


def test_labels_may_stand_in_any_order() -> None:
    found = list(parse_openmetrics('a{x = "1", y="2"} 1 1\n# EOF\n'))
    assert found == [({"__name__": "a", "x": "1", "y": "2"}, 1000, 1.0)]
