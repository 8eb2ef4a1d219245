"""What Vane knows of the cluster's signals: how old it is, of how many nodes, and what became of the rest."""

from __future__ import annotations

from typing import Final

from dashboards.panels import (
    OF_JOB,
    Dashboard,
    Line,
    Panel,
    Stat,
    Timeline,
    choice,
    mean,
    or_none,
    replica_variables,
    slowest,
)

_RATE: Final = "[$__rate_interval]"
_OURS: Final = '<vane>, signal=~"$signal"'

_NOW: Final[list[Panel]] = [
    Stat(
        "Prometheus answers",
        "1: every replica got an answer to its last query, even if an error. 0: a replica got none.",
        "none",
        [("min(vane_prometheus_up{<vane>})", "answers")],
        width=4,
        steps=[(None, "red"), (1, "green")],
    ),
    Stat(
        "Fresh signals",
        "Signals whose samples are no older than twice the time between two of them, even if without series.",
        "none",
        [(f'sum(max by (signal) (vane_signal_state{{{_OURS}, state="fresh"}}))', "fresh")],
        width=4,
    ),
    Stat(
        "Fading signals",
        "Signals with samples older than twice the time between two: scores fade to neutral, filters do not change.",
        "none",
        [(f'sum(max by (signal) (vane_signal_state{{{_OURS}, state="fading"}}))', "fading")],
        width=4,
        steps=[(None, "green"), (1, "orange")],
    ),
    Stat(
        "Absent signals",
        "Signals without usable samples: their rules treat all nodes as `missing` says.",
        "none",
        [(f'sum(max by (signal) (vane_signal_state{{{_OURS}, state="absent"}}))', "absent")],
        width=4,
        steps=[(None, "green"), (1, "red")],
    ),
    Stat(
        "Lowest coverage",
        "The share of nodes with a usable sample, for the signal with the lowest share. Signals without any "
        "series, such as those of packs whose exporter you do not have, are left out.",
        "percentunit",
        [(f"min(vane_signal_coverage_ratio{{{_OURS}}} > 0) or vector(0)", "coverage")],
        width=4,
        low=0,
        high=1,
        steps=[(None, "red"), (0.8, "orange"), (0.99, "green")],
    ),
    Stat(
        "Queries",
        "Queries to Prometheus per second, of all replicas: a standby also queries, to be ready to take over.",
        "reqps",
        [(f"sum(rate(vane_signal_query_duration_seconds_count{{{_OURS}}}{_RATE}))", "queries")],
        width=4,
    ),
]

_AGE: Final[list[Panel]] = [
    Timeline(
        "Freshness",
        "Fresh up to twice the time between samples, fading up to max_age, then absent. The worst of any replica.",
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
        "Age of a signal's samples, by Prometheus' clock.",
        "s",
        [(f"max by (signal) (vane_signal_age_seconds{{{_OURS}}})", "{{signal}}")],
        low=0,
    ),
    Line(
        "Age as a share of max_age",
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
        "Nodes with a usable sample, as a share of all nodes. The others are scored and filtered as missing.",
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
        "The worst problem of the last answer to a signal: scheduler/signals/problems.py "
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
        "Signals queried less often",
        "Signals that have failed several times, or whose server does not answer: Vane queries them less and less "
        "often. The maximum over the replicas.",
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
        "p99 of answers, by signal. No decision ever waits for an answer.",
        "s",
        slowest("vane_signal_query_duration_seconds", "signal", ', signal=~"$signal"'),
        low=0,
    ),
    Line(
        "Query errors by reason",
        "Queries per second that failed, by cause: timeout, server, access (token, certificate, address), "
        "query, other. Or that were skipped: the previous query still ran, or the signal is queried less often.",
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
    "How old are the samples, how many nodes do they cover, and what happened to the rest?",
    [
        *replica_variables(),
        choice("signal", "Signal", f"label_values(vane_signal_state{{{OF_JOB}}}, signal)"),
    ],
    {"Now": _NOW, "Problems": _PROBLEMS, "Age": _AGE, "Coverage": _COVERAGE, "Queries": _QUERIES},
)
