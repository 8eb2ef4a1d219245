from __future__ import annotations

import email.utils
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scheduler.errors import ConfigError
from scheduler.signals.asking.client import ClientSettings, PrometheusClient, check_prometheus_url
from scheduler.signals.asking.ingest import parse_number
from scheduler.signals.asking.session import parse_answer
from tests.signals.asking.scripted import always, scripted, vector

DATE = email.utils.formatdate(1000.0, usegmt=True)


@pytest.mark.parametrize(
    ("url", "checked"),
    [
        ("http://prometheus:9090", "http://prometheus:9090"),
        ("https://host/prefix//", "https://host/prefix"),
        (" http://[fd00::1]:9090/ ", "http://[fd00::1]:9090"),
    ],
)
def test_good_addresses_lose_their_last_slash(url: str, checked: str) -> None:
    assert check_prometheus_url(url) == checked


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("prometheus:9090", "scheme"),
        ("", "scheme"),
        ("ftp://prometheus", "got 'ftp'"),
        ("http://", "no host"),
        ("http://host:99999", "ort"),
        ("http://host:0", "port 0"),
        ("http://[::1", "IPv6"),
        ("http://user:secret@host", "no user and password"),
        ("http://host/?a=b", "no query"),
        ("http://host/api/v1", "before /api"),
    ],
)
def test_bad_addresses_are_refused_with_what_to_write(url: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        check_prometheus_url(url)
    assert "Write an address as" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_values_and_warnings_come_through() -> None:
    body = vector([({"node": "a"}, "NaN"), ({}, "1e400")], warnings=["partial"], infos=["a gauge"])
    with scripted(always(body)) as server:
        result = PrometheusClient(ClientSettings(server.url)).query("up")
    assert [(one.metric, one.value) for one in result.series] == [
        ({"node": "a"}, (1000.0, "NaN")),
        ({}, (1000.0, "1e400")),
    ]
    assert (result.warnings, result.is_scalar) == (("partial",), False)


def test_a_scalar_is_one_series_without_labels() -> None:
    with scripted(always('{"status":"success","data":{"resultType":"scalar","result":[1000,"2.5"]}}')) as server:
        result = PrometheusClient(ClientSettings(server.url)).query("scalar(up)")
    assert result.is_scalar
    assert [(one.metric, one.value) for one in result.series] == [({}, (1000.0, "2.5"))]


def test_a_native_histogram_has_no_value() -> None:
    histogram = '{"metric":{},"histogram":[1000,{"count":"1","sum":"2","buckets":[]}]}'
    body = f'{{"status":"success","data":{{"resultType":"vector","result":[{histogram}]}}}}'
    with scripted(always(body)) as server:
        assert PrometheusClient(ClientSettings(server.url)).query("up").series[0].value is None


@pytest.mark.parametrize(
    ("sample_time", "date", "age_s"),
    [
        pytest.param(1000.9, DATE, 0.0, id="evaluated now, the date rounded down"),
        pytest.param(999.5, DATE, 0.0, id="within the rounding of the date"),
        pytest.param(970.0, DATE, 30.0, id="from a cache, half a minute old"),
        pytest.param(5000.0, DATE, 0.0, id="the server's date is behind its samples"),
        pytest.param(970.0, "", 0.0, id="no date"),
        pytest.param(970.0, "yesterday", 0.0, id="a date that is none"),
    ],
)
def test_the_time_of_evaluation_needs_no_wall_clock_of_ours(sample_time: float, date: str, age_s: float) -> None:
    times: list[float] = []

    def clock() -> float:
        times.append(50.0 + 0.1 * len(times))
        return times[-1]

    with scripted(always(vector([({}, "1")], at=sample_time), headers={"Date": date})) as server:
        result = PrometheusClient(ClientSettings(server.url), clock).query("up")
    if age_s:
        assert result.evaluated_at_s == pytest.approx(times[-1] - age_s)
    else:
        assert result.evaluated_at_s in times[:-1], "when it was sent"


def read(text: str) -> float | str | None:
    series = parse_answer(vector([({"node": "a"}, text)]).encode()).series
    return series[0].value[1] if series[0].value else None


@given(st.one_of(st.floats(allow_nan=False).map(repr), st.floats(allow_nan=False).map(str), st.text(max_size=8)))
@example("NaN")
@example("+Inf")
@example("-Inf")
@example("1e+06")
@example("-0")
@example("1_0")
@example(" 1")
@example("\u0661")
def test_a_value_read_with_its_answer_is_the_one_read_later(text: str) -> None:
    found = read(text)
    assert found is not None
    early, late = parse_number(found), parse_number(text)
    assert (early is None) == (late is None)
    assert early is None or late is None or early == late or (math.isnan(early) and math.isnan(late))


def test_numbers_are_read_with_the_answer_unless_one_of_them_is_none() -> None:
    assert read("0.25") == 0.25
    mixed = parse_answer(vector([({"node": "a"}, "0.25"), ({"node": "b"}, "+Inf")]).encode()).series
    assert [one.value for one in mixed] == [(1000.0, "0.25"), (1000.0, "+Inf")]
