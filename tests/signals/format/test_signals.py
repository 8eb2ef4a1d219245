from __future__ import annotations

import pytest

from scheduler.errors import RuleFilesError
from scheduler.model.rules import ByKind, Reduce, Signal, Unit
from scheduler.signals.format.rule_files import parse_rule_files

HEAD = "apiVersion: vane.dev/v1\nkind: Rules\n"
EXPR = "max by (instance) (use)"


def signal(**fields: str) -> Signal:
    body = "".join(f"    {name}: {value}\n" for name, value in ({"expr": EXPR} | fields).items())
    rules = parse_rule_files({"a.yaml": f"{HEAD}signals:\n  use:\n{body}".encode()})
    return rules.signals["use"]


def refusal(**fields: str) -> str:
    with pytest.raises(RuleFilesError) as caught:
        signal(**fields)
    return str(caught.value)


def test_every_default_is_resolved() -> None:
    assert signal() == Signal(
        name="use",
        expr=EXPR,
        by=ByKind.NODE,
        label="",
        unit=Unit.NONE,
        interval_s=15.0,
        max_age_s=60.0,
        is_max_age_written=False,
        range=None,
        reduce=None,
        window_s=0.0,
        where="a.yaml:4:3",
    )


def test_every_field_is_read() -> None:
    read = signal(
        expr="'avg_over_time(use[5m])'",
        by="topology.kubernetes.io/zone",
        unit="ms",
        interval="1m30s",
        max_age="5m",
        range="[0, 10s]",
        reduce="max",
    )
    assert (read.by, read.label) == (ByKind.LABEL, "topology.kubernetes.io/zone")
    assert (read.unit, read.reduce) == (Unit.MILLISECONDS, Reduce.MAX)
    assert (read.interval_s, read.max_age_s, read.window_s) == (90.0, 300.0, 300.0)
    assert read.range == (0.0, 10_000.0)


def test_max_age_follows_the_interval() -> None:
    assert signal(interval="30s").max_age_s == 120.0


def test_two_intervals_are_the_least_max_age() -> None:
    assert signal(interval="10s", max_age="20s").max_age_s == 20.0
    assert "at least two intervals (20s)" in refusal(interval="10s", max_age="19s")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1s", 1.0), ("1500ms", 1.5), ("1m30s", 90.0), ("1h", 3600.0), ("1d", 86_400.0), ("1h1m1s1ms", 3661.001)],
)
def test_durations_are_those_of_prometheus(text: str, seconds: float) -> None:
    assert signal(interval=text).interval_s == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["15", "15 s", "s", "1s1m", "1.5s", "-1s", "15sec", "1e3s", '""', "[15s]"])
def test_other_durations_are_refused(text: str) -> None:
    assert "must be a duration" in refusal(interval=text) or "'5m'" in text


@pytest.mark.parametrize("text", ["0s", "999ms", "25h", "999999999d"])
def test_an_interval_is_from_a_second_to_a_day(text: str) -> None:
    assert "must be from 1s to 1d" in refusal(interval=text)


def test_one_number_is_for_the_cluster_only() -> None:
    assert signal(expr="scalar(sum(use))", by="cluster").by is ByKind.CLUSTER
    assert signal(expr="1", by="cluster").expr == "1"
    assert "one number for all nodes" in refusal(expr="scalar(sum(use))")


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30.0), ("1h", 3600.0), ("100ms", 0.1)])
def test_a_half_life_is_read(text: str, seconds: float) -> None:
    assert signal(smoothing=text).smoothing_s == seconds
    assert signal().smoothing_s == 0.0


@pytest.mark.parametrize("text", ["0s", "61m", "30", "cpu"])
def test_another_half_life_is_refused(text: str) -> None:
    assert "smoothing: must be" in refusal(smoothing=text)


def test_smoothing_and_inflight_exclude_each_other() -> None:
    assert "later than the window of `inflight` assumes, got both" in refusal(
        unit="ratio", smoothing="30s", inflight="{cpu: request}"
    )


def test_a_folded_expression_is_one_text() -> None:
    assert signal(expr=">-\n      max by (instance)\n      (use)").expr == EXPR


def test_a_mistake_in_a_folded_expression_has_its_own_place() -> None:
    assert "a.yaml:7:12: " in refusal(expr=">-\n      max by (instance)\n      (use ,)")


def test_a_mistake_behind_an_escape_stands_at_the_expression() -> None:
    assert "a.yaml:5:11: " in refusal(expr='"sum(use{a=\\"b\\"} ,,)"')
