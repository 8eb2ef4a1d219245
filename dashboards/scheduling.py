"""Placing Pods: is it done, how fast, and what waits."""

from __future__ import annotations

from typing import Final

from dashboards.panels import (
    Dashboard,
    Line,
    Panel,
    Stat,
    Timeline,
    leading,
    mean,
    or_none,
    quantiles,
    replica_variables,
    slowest,
)

_RATE: Final = "[$__rate_interval]"

_NOW: Final[list[Panel]] = [
    Stat(
        "Leaders",
        "Replicas that hold the lease: one, and for a few seconds after a crash none. Without leader election every "
        "replica that is up counts.",
        "none",
        [("sum(leader_election_master_status{<vane>}) or count(vane_build_info{<vane>})", "leaders")],
        width=4,
        steps=[(None, "red"), (1, "green"), (2, "red")],
    ),
    Stat(
        "Replicas",
        "Replicas whose metrics page Prometheus could read.",
        "none",
        [("count(vane_build_info{<vane>})", "replicas")],
        width=4,
    ),
    Stat(
        "Nodes",
        "Nodes in the scheduler's cache.",
        "none",
        [('max(scheduler_cache_size{<vane>, type="nodes"})', "nodes")],
        width=4,
    ),
    Stat(
        "Pods waiting",
        "Pods in any queue of the leader, including those that no node can take.",
        "none",
        [(f"sum({leading('scheduler_pending_pods{<vane>}')})", "Pods")],
        width=4,
    ),
    Stat(
        "Placed",
        "Pods placed per second.",
        "ops",
        [(f'sum(rate(scheduler_schedule_attempts_total{{<vane>, result="scheduled"}}{_RATE}))', "placed")],
        width=4,
    ),
    Stat(
        "Errors",
        "Attempts per second that ended with an error: a plugin raised, a bind failed, or a Pod needs a feature that "
        "Vane does not have.",
        "ops",
        [(f'sum(rate(scheduler_schedule_attempts_total{{<vane>, result="error"}}{_RATE})) or vector(0)', "errors")],
        width=4,
        steps=[(None, "green"), (0.001, "red")],
    ),
]

_ATTEMPTS: Final[list[Panel]] = [
    Line(
        "Attempts by result",
        "Attempts per second. Unschedulable: no node passed; Vane retries when something changes that may help.",
        "ops",
        [(f"sum by (result) (rate(scheduler_schedule_attempts_total{{<vane>}}{_RATE}))", "{{result}}")],
        low=0,
    ),
    Line(
        "From queue to bind",
        "Time from a Pod's arrival in the queue to its bind, including waiting and further attempts.",
        "s",
        quantiles("scheduler_pod_scheduling_sli_duration_seconds"),
        low=0,
    ),
    Line(
        "Attempt that placed a Pod",
        "Time of a successful attempt: decision and bind.",
        "s",
        quantiles("scheduler_scheduling_attempt_duration_seconds", ', result="scheduled"'),
        low=0,
    ),
    Line(
        "Decision",
        "Time of a decision alone: filters and scores over all nodes. The finest bucket ends at 1 ms.",
        "s",
        quantiles("scheduler_scheduling_algorithm_duration_seconds"),
        low=0,
    ),
    Line(
        "Extension points, p99",
        "Time of all plugins of an extension point, p99 over attempts.",
        "s",
        slowest("scheduler_framework_extension_point_duration_seconds", "extension_point"),
        low=0,
    ),
    Line(
        "Plugins, mean",
        "Mean time of a plugin at an extension point; one attempt in ten is measured.",
        "s",
        mean(
            "scheduler_plugin_execution_duration_seconds", "plugin, extension_point", "{{plugin}} {{extension_point}}"
        ),
        low=0,
    ),
]

_QUEUE: Final[list[Panel]] = [
    Line(
        "Pods by queue",
        "Active: about to be tried. Backoff: was tried a moment ago. Unschedulable: waits for a change. Gated: waits "
        "for its gates. Of the leader.",
        "none",
        [(f"sum by (queue) {leading('scheduler_pending_pods{<vane>}')}", "{{queue}}")],
        low=0,
    ),
    Line(
        "Unschedulable Pods by plugin",
        "Which plugin refused the Pods that wait. SignalFilter: a rule refused them, see the dashboard Rules.",
        "none",
        [(or_none(f"sum by (plugin) {leading('scheduler_unschedulable_pods{<vane>}')}", "plugin"), "{{plugin}}")],
        low=0,
    ),
    Line(
        "Pods entering a queue by event",
        "Pods per second that entered a queue, by event.",
        "ops",
        [(f"sum by (event) (rate(scheduler_queue_incoming_pods_total{{<vane>}}{_RATE}))", "{{event}}")],
        low=0,
    ),
]

_WRITES: Final[list[Panel]] = [
    Line(
        "Requests to the API server",
        "Requests per second by method and status code.",
        "reqps",
        [(f"sum by (method, code) (rate(rest_client_requests_total{{<vane>}}{_RATE}))", "{{method}} {{code}}")],
        low=0,
    ),
    Line(
        "Time of a request, p99",
        "p99 of requests to the API server, by verb. A watch counts until its first line.",
        "s",
        slowest("rest_client_request_duration_seconds", "verb"),
        low=0,
    ),
    Line(
        "Bind conflicts",
        "Binds per second that found the Pod in another state. other_node: another scheduler placed the Pod, so more "
        "than one scheduler uses its schedulerName.",
        "ops",
        [(f"sum by (kind) (rate(vane_bind_conflicts_total{{<vane>}}{_RATE}))", "{{kind}}")],
        low=0,
    ),
    Line(
        "Events dropped",
        "Events per second that were not written: too many at once, or refused. Pods are still placed.",
        "ops",
        [(f"sum(rate(vane_events_dropped_total{{<vane>}}{_RATE}))", "dropped")],
        low=0,
    ),
    Line(
        "Watches restarted",
        "By reason. Now and then is normal; a steady rate means that an API server or a proxy ends them.",
        "ops",
        [(or_none(f"sum by (reason) (rate(vane_watch_restarts_total{{<vane>}}{_RATE}))", "reason"), "{{reason}}")],
        low=0,
    ),
    Line(
        "Patches for plugins",
        "Patches of Pods per second that plugins requested, by result.",
        "ops",
        [(or_none(f"sum by (result) (rate(vane_patches_total{{<vane>}}{_RATE}))", "result"), "{{result}}")],
        low=0,
    ),
]

_REPLICAS: Final[list[Panel]] = [
    Timeline(
        "Who leads",
        "Which replica holds the lease. Without leader election: which replicas are up.",
        "none",
        [
            (
                "max by (instance) (leader_election_master_status{<vane>}) "
                "or max by (instance) (vane_build_info{<vane>})",
                "{{instance}}",
            )
        ],
        states=[("stands by", "blue"), ("leads", "green")],
    ),
    Line(
        "Memory",
        "Resident memory of a replica's three processes.",
        "bytes",
        [("sum by (instance, process) (process_resident_memory_bytes{<vane>})", "{{instance}} {{process}}")],
        low=0,
    ),
    Line(
        "CPU",
        "CPU seconds per second of a replica's three processes.",
        "none",
        [
            (
                f"sum by (instance, process) (rate(process_cpu_seconds_total{{<vane>}}{_RATE}))",
                "{{instance}} {{process}}",
            )
        ],
        low=0,
    ),
]

DASHBOARD: Final = Dashboard(
    "vane-scheduling",
    "Vane / Scheduling",
    "Is Vane placing Pods, how fast, and what waits?",
    [*replica_variables()],
    {"Now": _NOW, "Attempts": _ATTEMPTS, "Queue": _QUEUE, "API server": _WRITES, "Replicas": _REPLICAS},
)
