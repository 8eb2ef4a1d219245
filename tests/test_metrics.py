from __future__ import annotations

import itertools
import operator
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.parser import text_string_to_metric_families

from scheduler.exposition import RegistryPage, merge, process_registry, render
from scheduler.metrics import Family, Metrics

ATTEMPT = [0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384]
POINT = [0.0001, 0.0002, 0.0004, 0.0008, 0.0016, 0.0032, 0.0064, 0.0128, 0.0256, 0.0512, 0.1024, 0.2048]
SLI = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68, 655.36]
SLI += [1310.72, 2621.44, 5242.88]
PLUGIN = list(itertools.accumulate([1.5] * 19, operator.mul, initial=0.00001))
QUERY = [0.01, 0.06, 0.36, 2.16, 12.96]
REST = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60]

HISTOGRAMS = {
    "scheduler_scheduling_attempt_duration_seconds": (["profile", "result"], ATTEMPT),
    "scheduler_scheduling_algorithm_duration_seconds": ([], ATTEMPT),
    "scheduler_framework_extension_point_duration_seconds": (["extension_point", "profile", "status"], POINT),
    "scheduler_plugin_execution_duration_seconds": (["plugin", "extension_point", "status"], PLUGIN),
    "scheduler_permit_wait_duration_seconds": (["result"], ATTEMPT),
    "scheduler_preemption_victims": ([], [1, 2, 4, 8, 16, 32, 64]),
    "scheduler_pod_scheduling_attempts": ([], [1, 2, 4, 8, 16]),
    "scheduler_pod_scheduling_sli_duration_seconds": (["attempts"], SLI),
    "rest_client_request_duration_seconds": (["verb", "host"], REST),
    "vane_signal_query_duration_seconds": (["signal"], QUERY),
}
COUNTERS = {
    "scheduler_schedule_attempts_total": ["profile", "result"],
    "scheduler_plugin_evaluation_total": ["extension_point", "plugin", "profile"],
    "scheduler_volume_scheduling_stage_error_total": ["operation"],
    "scheduler_preemption_attempts_total": [],
    "scheduler_queue_incoming_pods_total": ["event", "queue"],
    "scheduler_pod_scheduled_after_flush_total": [],
    "rest_client_requests_total": ["code", "method", "host"],
    "vane_signal_samples_dropped_total": ["signal", "reason"],
    "vane_signal_query_errors_total": ["signal", "reason"],
    "vane_bad_objects_total": ["kind", "reason"],
    "vane_bind_conflicts_total": ["kind"],
    "vane_events_dropped_total": [],
    "vane_faults_total": ["where"],
    "vane_patches_total": ["result"],
    "vane_notifications_total": ["result"],
    "vane_rule_attempts_total": ["rule"],
    "vane_rule_refusals_total": ["rule"],
    "vane_rule_shadow_attempts_total": ["rule"],
    "vane_rule_shadow_refusals_total": ["rule"],
    "vane_rule_shadow_changes_total": ["rule"],
    "vane_watch_events_total": ["kind", "type"],
    "vane_watch_restarts_total": ["kind", "reason"],
}
GAUGES = {
    "scheduler_pending_pods": ["queue"],
    "scheduler_unschedulable_pods": ["plugin", "profile"],
    "scheduler_cache_size": ["type"],
    "vane_signal_age_seconds": ["signal"],
    "vane_signal_max_age_seconds": ["signal"],
    "vane_signal_spacing_seconds": ["signal"],
    "vane_signal_coverage_ratio": ["signal"],
    "vane_signal_series": ["signal", "state"],
    "vane_signal_state": ["signal", "state"],
    "vane_signal_problem": ["signal", "problem"],
    "vane_signal_paused": ["signal"],
    "vane_rule_refused_nodes": ["rule"],
    "vane_rule_held_pods": ["rule"],
    "vane_rule_valve_open": ["rule"],
    "vane_rule_weight": ["rule"],
    "vane_rule_weight_share_ratio": ["rule"],
    "vane_rule_score_spread": ["rule"],
    "vane_rules_loaded": [],
    "vane_rules_last_reload_successful": [],
    "vane_rules_last_reload_success_timestamp_seconds": [],
    "vane_prometheus_up": ["server"],
    "leader_election_master_status": ["name"],
    "vane_notifications_pending": [],
    "vane_unreadable_objects": ["kind"],
    "vane_build_info": ["version"],
}


def families(metrics: Metrics) -> list[Family[Any]]:
    return [value for value in vars(metrics).values() if isinstance(value, Family)]


def touched() -> str:
    """Return the page of a process that has used every metric once."""
    metrics = Metrics(CollectorRegistry())
    for family in families(metrics):
        child = family(*[f"v{i}" for i in range(len(family.labels))])
        if isinstance(child, Counter):
            child.inc()
        elif isinstance(child, Gauge):
            child.set(1)
        elif isinstance(child, Histogram):
            child.observe(0)
    return render(metrics.registry).decode()


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(CollectorRegistry())


def test_names_types_labels_and_buckets_are_exactly_these() -> None:
    page = touched()
    found: dict[str, dict[str, Any]] = {"counter": {}, "gauge": {}, "histogram": {}}
    for family in text_string_to_metric_families(page):
        if family.name.startswith(("process_", "python_")):
            continue
        if family.type == "histogram":
            buckets = [sample for sample in family.samples if sample.name.endswith("_bucket")]
            labels = [name for name in buckets[0].labels if name != "le"]
            bounds = [float(sample.labels["le"]) for sample in buckets]
            assert bounds.pop() == float("inf")
            found["histogram"][family.name] = (labels, bounds)
        else:
            found[family.type][family.samples[0].name] = list(family.samples[0].labels)
    # The page sorts labels by name.
    assert found == {
        "counter": {name: sorted(labels) for name, labels in COUNTERS.items()},
        "gauge": {name: sorted(labels) for name, labels in GAUGES.items()},
        "histogram": {name: (sorted(labels), bounds) for name, (labels, bounds) in HISTOGRAMS.items()},
    }


def test_label_values_are_given_in_the_order_of_the_table(metrics: Metrics) -> None:
    tables = [*COUNTERS.values(), *GAUGES.values(), *(labels for labels, _ in HISTOGRAMS.values())]
    assert sorted(tuple(labels) for labels in tables) == sorted(family.labels for family in families(metrics))


def test_bounds_are_written_as_kube_scheduler_writes_them() -> None:
    assert set(re.findall(r'sli_duration_seconds_bucket\{attempts="v0",le="([^"]+)"', touched())) >= {
        "0.01",
        "0.08",
        "2.56",
        "5242.88",
    }


def test_the_page_follows_the_text_format() -> None:
    page = touched()
    assert "_created" not in page
    for name in [*COUNTERS, *GAUGES, *HISTOGRAMS]:
        assert len(re.findall(rf"^# HELP {name} \S", page, re.M)) == 1, name
        assert len(re.findall(rf"^# TYPE {name} \S", page, re.M)) == 1, name


def test_children_are_cached_and_checked(metrics: Metrics) -> None:
    child = metrics.schedule_attempts("vane", "scheduled")
    assert metrics.schedule_attempts("vane", "scheduled") is child
    child.inc(3)
    assert 'scheduler_schedule_attempts_total{profile="vane",result="scheduled"} 3.0' in page_of(metrics)
    with pytest.raises(ValueError, match=r"must be values of \('profile', 'result'\)"):
        metrics.schedule_attempts("vane")


def test_a_gauge_nobody_set_is_not_shown_as_0(metrics: Metrics) -> None:
    assert "vane_prometheus_up{" not in page_of(metrics)
    assert "scheduler_pod_scheduled_after_flush_total 0.0" in page_of(metrics)
    metrics.prometheus_up("").set(1)
    metrics.prometheus_up("").set(0)
    assert 'vane_prometheus_up{server=""} 0.0' in page_of(metrics)


def test_the_state_of_a_signal_is_one_of_three(metrics: Metrics) -> None:
    metrics.set_signal_state("cpu", "fresh")
    metrics.set_signal_state("cpu", "fading")
    states = re.findall(r'vane_signal_state\{signal="cpu",state="(\w+)"\} (\d)', page_of(metrics))
    assert sorted(states) == [("absent", "0"), ("fading", "1"), ("fresh", "0")]
    with pytest.raises(ValueError, match="must be one of"):
        metrics.set_signal_state("cpu", "stale")


def test_series_of_what_is_gone_disappear(metrics: Metrics) -> None:
    for name in ("kept", "gone"):
        metrics.set_signal_state(name, "fresh")
        metrics.signal_age(name).set(1)
        metrics.signal_query_duration(name).observe(1)
        metrics.signal_samples_dropped(name, "nan").inc()
        metrics.rule_refused_nodes(name).set(1)
    metrics.keep_signals(["kept"])
    page = page_of(metrics)
    assert 'signal="gone"' not in page
    assert 'signal="kept"' in page
    assert 'rule="gone"' in page
    metrics.keep_rules(["kept"])
    assert "gone" not in page_of(metrics)
    metrics.signal_samples_dropped("gone", "nan").inc()
    assert 'vane_signal_samples_dropped_total{reason="nan",signal="gone"} 1.0' in page_of(metrics)


def test_two_registries_share_nothing(metrics: Metrics) -> None:
    other = Metrics(CollectorRegistry())
    other.cache_size("nodes").set(5)
    assert "scheduler_cache_size{" not in page_of(metrics)


def test_a_page_is_rendered_once_a_second(metrics: Metrics) -> None:
    now = [10.0]
    page = RegistryPage(metrics.registry, lambda: now[0])
    first = page.render()
    metrics.cache_size("nodes").set(5)
    now[0] = 10.9
    assert page.render() is first
    now[0] = 11.0
    assert b"scheduler_cache_size{" in page.render()


def test_pages_of_processes_become_one() -> None:
    decider, binder = Metrics(CollectorRegistry()), Metrics(CollectorRegistry())
    decider.schedule_attempts("vane", "scheduled").inc(2)
    decider.rest_client_requests("200", "GET", "h").inc(2)
    binder.rest_client_requests("200", "GET", "h").inc(3)
    binder.rest_client_requests("409", "POST", "h").inc()
    binder.rest_client_request_duration("POST", "h").observe(0.2)
    decider.build_info("1").set(1)
    binder.build_info("1").set(1)
    own = render(process_registry(os.getpid()))
    page = merge({"decider": render(decider.registry) + own, "binder": own + render(binder.registry)}).decode()
    for name in [*COUNTERS, *HISTOGRAMS]:
        assert page.count(f"# TYPE {name} ") == page.count(f"# HELP {name} ") == 1
    assert 'rest_client_requests_total{code="200",host="h",method="GET"} 5.0\n' in page
    assert 'rest_client_requests_total{code="409",host="h",method="POST"} 1.0\n' in page
    assert 'scheduler_schedule_attempts_total{profile="vane",result="scheduled"} 2.0\n' in page
    assert 'rest_client_request_duration_seconds_count{host="h",verb="POST"} 1.0\n' in page
    assert 'vane_build_info{version="1"} 1.0\n' in page
    for process in ("decider", "binder"):
        assert re.search(rf'^process_cpu_seconds_total{{process="{process}"}} ', page, re.M)
    series = [line.rpartition(" ")[0] for line in page.splitlines() if not line.startswith("#")]
    assert len(series) == len(set(series))
    assert sum(len(family.samples) for family in text_string_to_metric_families(page)) == len(series)


def test_merging_one_page_changes_nothing_else(metrics: Metrics) -> None:
    metrics.watch_restarts("Pod", 'a "quoted\nreason" }').inc()
    page = render(metrics.registry)
    lines = [line for line in merge({"only": page}).splitlines() if not line.startswith(b"process_")]
    assert lines == [line for line in page.splitlines() if not line.startswith(b"process_")]


def test_promtool_has_no_complaint(programs: Path) -> None:
    used = touched().encode()
    for page in (used, merge({"used": used, "new": render(Metrics(CollectorRegistry()).registry)})):
        done = subprocess.run([programs / "promtool", "check", "metrics"], input=page, capture_output=True, check=False)
        assert (done.returncode, done.stdout + done.stderr) == (0, b"")


def page_of(metrics: Metrics) -> str:
    return render(metrics.registry).decode()
