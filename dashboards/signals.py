"""What Vane knows of the cluster's signals: how old it is, of how many nodes, and what became of the rest."""

from __future__ import annotations

from typing import Final

from dashboards.panels import Dashboard, Line, Panel, Stat, Timeline, choice, mean, or_none, replica_variables, slowest

_RATE: Final = "[$__rate_interval]"
_OURS: Final = '<vane>, signal=~"$signal"'

_NOW: Final[list[Panel]] = [
    Stat(
        "Prometheus answers",
        "1: every replica had an answer to its last query, be it an error. 0: one had none.",
        "none",
        [("min(vane_prometheus_up{<vane>})", "answers")],
        width=4,
        steps=[(None, "red"), (1, "green")],
    ),
    Stat(
        "Fresh signals",
        "Signals whose last answer is at most two intervals old, be it one without series.",
        "none",
        [(f'sum(max by (signal) (vane_signal_state{{{_OURS}, state="fresh"}}))', "fresh")],
        width=4,
    ),
    Stat(
        "Fading signals",
        "Signals whose samples are older than two intervals: their scores move towards neutral, their filters stand.",
        "none",
        [(f'sum(max by (signal) (vane_signal_state{{{_OURS}, state="fading"}}))', "fading")],
        width=4,
        steps=[(None, "green"), (1, "orange")],
    ),
    Stat(
        "Absent signals",
        "Signals without samples that may be used: their rules do what they say of missing samples.",
        "none",
        [(f'sum(max by (signal) (vane_signal_state{{{_OURS}, state="absent"}}))', "absent")],
        width=4,
        steps=[(None, "green"), (1, "red")],
    ),
    Stat(
        "Lowest coverage",
        "The part of the nodes that have a usable sample, of the signal that has the fewest. Signals without any "
        "series, as of packs whose exporter you do not have, are left out.",
        "percentunit",
        [(f"min(vane_signal_coverage_ratio{{{_OURS}}} > 0) or vector(0)", "coverage")],
        width=4,
        low=0,
        high=1,
        steps=[(None, "red"), (0.8, "orange"), (0.99, "green")],
    ),
    Stat(
        "Queries",
        "Queries to Prometheus per second, of all replicas: a standby asks too, so that it begins warm.",
        "reqps",
        [(f"sum(rate(vane_signal_query_duration_seconds_count{{{_OURS}}}{_RATE}))", "queries")],
        width=4,
    ),
]

_AGE: Final[list[Panel]] = [
    Timeline(
        "Freshness",
        "Fresh up to two intervals, fading up to max_age, then absent. The worst of the replicas.",
        "none",
        [
            (
                f'max by (signal) (vane_signal_state{{{_OURS}, state="fading"}}) '
                f'+ 2 * max by (signal) (vane_signal_state{{{_OURS}, state="absent"}})',
                "{{signal}}",
            )
        ],
        states=[("fresh", "green"), ("fading", "orange"), ("absent", "red")],
    ),
    Line(
        "Age",
        "Time since a signal's samples were true, by Prometheus' clock.",
        "s",
        [(f"max by (signal) (vane_signal_age_seconds{{{_OURS}}})", "{{signal}}")],
        low=0,
    ),
    Line(
        "Age as part of max_age",
        "From 1 on the samples count as missing.",
        "percentunit",
        [
            (
                f"max by (signal) (vane_signal_age_seconds{{{_OURS}}}) "
                f"/ max by (signal) (vane_signal_max_age_seconds{{{_OURS}}})",
                "{{signal}}",
            )
        ],
        low=0,
        steps=[(None, "green"), (1, "red")],
    ),
]

_COVERAGE: Final[list[Panel]] = [
    Line(
        "Coverage",
        "Nodes with a usable sample as part of all nodes. The others are scored and filtered as missing.",
        "percentunit",
        [(f"min by (signal) (vane_signal_coverage_ratio{{{_OURS}}})", "{{signal}}")],
        low=0,
        high=1,
    ),
    Line(
        "Series by mapping",
        "Series of the last answer. Unmapped: no label names a node of this cluster.",
        "none",
        [(f"max by (signal, state) (vane_signal_series{{{_OURS}}})", "{{signal}} {{state}}")],
        low=0,
    ),
    Line(
        "Samples dropped by reason",
        "Samples per second that were not used: nan, inf, parse: no usable number. range: outside the signal's range. "
        "unmapped: no node. duplicate: several series of one node, and no reduce.",
        "ops",
        [
            (
                or_none(
                    f"sum by (signal, reason) (rate(vane_signal_samples_dropped_total{{{_OURS}}}{_RATE}))", "reason"
                ),
                "{{signal}} {{reason}}",
            )
        ],
        low=0,
    ),
]

_PROBLEMS: Final[list[Panel]] = [
    Line(
        "Problems",
        "What is wrong with the last answer to a signal, the gravest of its problems: scheduler/signals/problems.py "
        "lists what each means, and `vane top` says it in words.",
        "none",
        [
            (
                or_none(f"sum by (signal, problem) (vane_signal_problem{{{_OURS}}})", "problem"),
                "{{signal}} {{problem}}",
            )
        ],
        low=0,
        width=12,
    ),
    Line(
        "Signals asked with pauses",
        "Signals that have failed some times, or whose server does not answer: they are asked at growing distances. "
        "The most of any replica.",
        "none",
        [(f"max(sum by (instance) (vane_signal_paused{{{_OURS}}}))", "paused")],
        low=0,
        width=12,
    ),
]

_QUERIES: Final[list[Panel]] = [
    Line(
        "Query time, mean",
        "Mean time that Prometheus takes to answer, by signal.",
        "s",
        mean("vane_signal_query_duration_seconds", "signal", "{{signal}}", ', signal=~"$signal"'),
        low=0,
    ),
    Line(
        "Query time, p99",
        "The slowest of a hundred answers, by signal. No decision ever waits for one.",
        "s",
        slowest("vane_signal_query_duration_seconds", "signal", ', signal=~"$signal"'),
        low=0,
    ),
    Line(
        "Query errors by reason",
        "Queries per second that failed, by whom that concerns: timeout, server, access (token, certificate, address), "
        "query, other. Or that were skipped: the one before still ran, or the signal is asked with pauses.",
        "ops",
        [
            (
                or_none(f"sum by (signal, reason) (rate(vane_signal_query_errors_total{{{_OURS}}}{_RATE}))", "reason"),
                "{{signal}} {{reason}}",
            )
        ],
        low=0,
    ),
]

DASHBOARD: Final = Dashboard(
    "vane-signals",
    "Vane / Signals",
    "How old is what Vane knows, of how many nodes, and what became of the rest?",
    [
        *replica_variables(),
        choice("signal", "Signal", 'label_values(vane_signal_state{namespace=~"$namespace", job=~"$job"}, signal)'),
    ],
    {"Now": _NOW, "Problems": _PROBLEMS, "Age": _AGE, "Coverage": _COVERAGE, "Queries": _QUERIES},
)
