"""What Vane measures of itself, under kube-scheduler's names where it has them, each process in its own registry.

`exposition` makes pages of registries. A Family hands out its child for label values from a dict, several times faster
than `labels()`; still, hold the child where a loop counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest

SIGNAL_STATES: Final = ("fresh", "fading", "absent")

Child = TypeVar("Child", bound=Counter | Gauge | Histogram)


def doubling(first: float, count: int) -> tuple[float, ...]:
    """Return bucket bounds, each twice the one before."""
    return growing(first, 2, count)


def growing(first: float, factor: float, count: int) -> tuple[float, ...]:
    """Return bucket bounds, each `factor` times the one before, to the last bit as kube-scheduler's."""
    bounds = [first]
    while len(bounds) < count:
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)


# They'd double the series of every counter for nothing that Prometheus' text format can use.
disable_created_metrics()  # type: ignore[no-untyped-call]  # prometheus_client leaves it untyped

# client-go's bounds, which dashboards of the Kubernetes mixin read.
_REST_CLIENT_BUCKETS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)


class Family(Generic[Child]):
    """One metric with its labels; calling it with their values, in order, gives the child that counts."""

    def __init__(self, metric: Child, register: Callable[[Child], None]) -> None:
        self._metric = metric
        self._register = register
        self._registered = False
        self._children: dict[tuple[str, ...], Child] = {}
        self.labels: tuple[str, ...] = tuple(metric._labelnames)  # noqa: SLF001 - it has no public name
        # A gauge that was never set is unknown, not 0: it stays off the page of processes that don't keep it.
        if self.labels or not isinstance(metric, Gauge):
            self._show()

    def __call__(self, *values: str) -> Child:
        child = self._children.get(values)
        return child if child is not None else self._make(values)

    def _make(self, values: tuple[str, ...]) -> Child:
        if len(values) != len(self.labels):
            raise ValueError(f"must be values of {self.labels}, got {values}")
        self._show()
        child: Any = self._metric.labels(*values) if values else self._metric  # mypy loses that it is a Child
        return self._children.setdefault(values, child)

    def _show(self) -> None:
        if not self._registered:
            self._registered = True
            self._register(self._metric)

    def render(self) -> bytes:
        """Return the family's part of the page in Prometheus' text format, empty if it is not on the page."""
        return generate_latest(self._metric) if self._registered else b""

    def remove(self, *values: str) -> None:
        """Take one series off the page, if it is there."""
        if self._children.pop(values, None) is not None:
            self._metric.remove(*values)

    def drop(self, label: str, keep: Callable[[str], bool]) -> None:
        """Remove every series whose value of the label is not to be kept."""
        at = self.labels.index(label)
        for values in [values for values in tuple(self._children) if not keep(values[at])]:
            self._children.pop(values, None)
            self._metric.remove(*values)


class Metrics:
    """The metrics of one process; its registry is the argument, so that there may be several in one program."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self._families: list[Family[Any]] = []
        self._problems: dict[str, str] = {}
        self._before_page: list[Callable[[], None]] = []
        self._scheduling()
        self._plugins()
        self._preemption()
        self._queue_and_cache()
        self._api_server()
        self._signals()
        self._rules()
        self._notifications()

    def _scheduling(self) -> None:
        self.schedule_attempts = self._counter(
            "scheduler_schedule_attempts_total",
            "Attempts to schedule Pods, by result: scheduled, unschedulable, error.",
            "profile",
            "result",
        )
        self.scheduling_attempt_duration = self._histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Time of a scheduling attempt, scheduling and binding.",
            doubling(0.001, 15),
            "profile",
            "result",
        )
        self.scheduling_algorithm_duration = self._histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Time of a decision.",
            doubling(0.001, 15),
        )
        self.extension_point_duration = self._histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "Time of all plugins of an extension point.",
            doubling(0.0001, 12),
            "extension_point",
            "profile",
            "status",
        )
        self.pod_scheduling_attempts = self._histogram(
            "scheduler_pod_scheduling_attempts",
            "Attempts that a Pod took to be scheduled.",
            (1, 2, 4, 8, 16),
        )
        self.pod_scheduling_sli_duration = self._histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Time from a Pod's arrival in the queue to its binding, by attempts (1 to 14, 15+).",
            doubling(0.01, 20),
            "attempts",
        )
        self.unschedulable_pods = self._gauge(
            "scheduler_unschedulable_pods",
            "Pods that a plugin refused at their last attempt.",
            "plugin",
            "profile",
        )
        self.pod_scheduled_after_flush = self._counter(
            "scheduler_pod_scheduled_after_flush_total",
            "Pods scheduled only because of the periodic flush of the queue: a queueing hint missed an event.",
        )

    def _plugins(self) -> None:
        self.plugin_evaluation = self._counter(
            "scheduler_plugin_evaluation_total",
            "Attempts that a plugin took part in, by extension point: PreFilter, Filter, PreScore, Score.",
            "extension_point",
            "plugin",
            "profile",
        )
        self.plugin_execution_duration = self._histogram(
            "scheduler_plugin_execution_duration_seconds",
            "Time of one plugin at one extension point, measured in one of ten attempts.",
            growing(0.00001, 1.5, 20),
            "plugin",
            "extension_point",
            "status",
        )
        self.permit_wait_duration = self._histogram(
            "scheduler_permit_wait_duration_seconds",
            "Time that a Pod waited at Permit, by the status with which the wait ended.",
            doubling(0.001, 15),
            "result",
        )
        self.volume_stage_errors = self._counter(
            "scheduler_volume_scheduling_stage_error_total",
            "Attempts that failed in VolumeBinding, by operation: assume, bind.",
            "operation",
        )

    def _preemption(self) -> None:
        self.preemption_attempts = self._counter(
            "scheduler_preemption_attempts_total", "Attempts to make room by removing Pods of lower priority."
        )
        self.preemption_victims = self._histogram(
            "scheduler_preemption_victims", "Pods chosen to be removed, by attempt.", doubling(1, 7)
        )

    def _queue_and_cache(self) -> None:
        self.pending_pods = self._gauge(
            "scheduler_pending_pods", "Pods by queue: active, backoff, unschedulable, gated.", "queue"
        )
        self.queue_incoming_pods = self._counter(
            "scheduler_queue_incoming_pods_total", "Pods added to a queue, by event.", "event", "queue"
        )
        self.cache_size = self._gauge(
            "scheduler_cache_size", "Entries of the cache: nodes, pods, assumed_pods.", "type"
        )

    def _api_server(self) -> None:
        self.rest_client_requests = self._counter(
            "rest_client_requests_total", "Requests to the API server, by status code.", "code", "method", "host"
        )
        self.rest_client_request_duration = self._histogram(
            "rest_client_request_duration_seconds",
            "Time of a request to the API server.",
            _REST_CLIENT_BUCKETS,
            "verb",
            "host",
        )
        self.watch_events = self._counter(
            "vane_watch_events_total", "Watch events received, by kind of object and type of event.", "kind", "type"
        )
        self.watch_restarts = self._counter(
            "vane_watch_restarts_total",
            "Watches restarted, by reason: closed, expired, timeout, disconnected, error, malformed.",
            "kind",
            "reason",
        )
        self.unreadable_objects = self._gauge(
            "vane_unreadable_objects", "Objects that cannot be read, by kind.", "kind"
        )
        self.bad_objects = self._counter(
            "vane_bad_objects_total", "Objects not taken as is: schema, quantity, time, size, fault.", "kind", "reason"
        )
        self.bind_conflicts = self._counter(
            "vane_bind_conflicts_total",
            "Binds that found the Pod in another state: same_node, other_node, deleted, gated.",
            "kind",
        )
        self.events_dropped = self._counter(
            "vane_events_dropped_total", "Events that were not written: too many at once, or refused."
        )
        self.patches = self._counter(
            "vane_patches_total",
            "Patches of Pods that plugins requested, by result: patched, deleted, expired, failed.",
            "result",
        )
        self.faults = self._counter(
            "vane_faults_total", "Faults of Vane itself that it has survived, by where; the log shows them.", "where"
        )
        self.leader_election_master_status = self._gauge(
            "leader_election_master_status", "1 while this replica holds the lease, else 0.", "name"
        )
        self.build_info = self._gauge("vane_build_info", "1, with the version of Vane.", "version")

    def _signals(self) -> None:
        self.signal_age = self._gauge("vane_signal_age_seconds", "Age of a signal's samples when last used.", "signal")
        self.signal_max_age = self._gauge(
            "vane_signal_max_age_seconds", "Age from which on a signal's samples count as missing.", "signal"
        )
        self.signal_spacing = self._gauge("vane_signal_spacing_seconds", "How far apart its samples come.", "signal")
        self.signal_coverage = self._gauge(
            "vane_signal_coverage_ratio", "Nodes with a usable sample of the signal, as a share of all nodes.", "signal"
        )
        self.signal_series = self._gauge(
            "vane_signal_series",
            "Series of the last answer, by whether they map to a node: mapped, unmapped.",
            "signal",
            "state",
        )
        self.signal_samples_dropped = self._counter(
            "vane_signal_samples_dropped_total", "Samples not used, by reason.", "signal", "reason"
        )
        self.signal_query_duration = self._histogram(
            "vane_signal_query_duration_seconds", "Time of a query to Prometheus.", growing(0.01, 6, 5), "signal"
        )
        self.signal_query_errors = self._counter(
            "vane_signal_query_errors_total",
            "Queries that failed: timeout, server, access, query, other; or were skipped_running, skipped_pause.",
            "signal",
            "reason",
        )
        self.signal_state = self._gauge(
            "vane_signal_state", "1 for the signal's state, 0 for the others: fresh, fading, absent.", "signal", "state"
        )
        self.signal_problem = self._gauge(
            "vane_signal_problem",
            "1 for the worst problem of the signal's last answer, none if it is healthy; see signals/problems.py.",
            "signal",
            "problem",
        )
        self.signal_paused = self._gauge("vane_signal_paused", "Whether failures make queries of it rare.", "signal")
        self.prometheus_up = self._gauge("vane_prometheus_up", "Whether Prometheus answered the last query.", "server")

    def _rules(self) -> None:
        self.rule_refused_nodes = self._gauge("vane_rule_refused_nodes", "Nodes that its filter refuses now.", "rule")
        self.rule_held_pods = self._gauge(
            "vane_rule_held_pods", "Pending Pods for which it refused nodes that nothing else did, last time.", "rule"
        )
        self.rule_valve_open = self._gauge(
            "vane_rule_valve_open", "Whether the rule's filter is suspended: it would refuse too many nodes.", "rule"
        )
        self.rule_attempts = self._counter(
            "vane_rule_attempts_total", "Attempts to schedule a Pod that the rule covers.", "rule"
        )
        self.rule_refusals = self._counter(
            "vane_rule_refusals_total",
            "Nodes that the rule refused, over all attempts, without those that an earlier filter had refused.",
            "rule",
        )
        self.rule_shadow_attempts = self._counter(
            "vane_rule_shadow_attempts_total",
            "Attempts to schedule a Pod that the rule covers but does not act on.",
            "rule",
        )
        self.rule_shadow_refusals = self._counter(
            "vane_rule_shadow_refusals_total",
            "Nodes that the rule would have refused if it acted, of those that passed all filters.",
            "rule",
        )
        self.rule_shadow_changes = self._counter(
            "vane_rule_shadow_changes_total",
            "Decisions that would have chosen another node, or none, if the rule acted.",
            "rule",
        )
        self.rule_weight = self._gauge("vane_rule_weight", "The rule's weight now.", "rule")
        self.rule_weight_share = self._gauge(
            "vane_rule_weight_share_ratio",
            "The rule's share of the sum of all weights, in the last decision in which it scored.",
            "rule",
        )
        self.rule_score_spread = self._gauge(
            "vane_rule_score_spread",
            "Highest minus lowest score, 0 to 100, that the rule gives to a node now: at 0 it prefers none.",
            "rule",
        )
        self.rules_loaded = self._gauge("vane_rules_loaded", "Rules in force.")
        self.rules_last_reload_successful = self._gauge(
            "vane_rules_last_reload_successful", "Whether the last load of the rule files succeeded."
        )
        self.rules_last_reload_success_timestamp = self._gauge(
            "vane_rules_last_reload_success_timestamp_seconds", "When the rules in force were loaded, in Unix time."
        )

    def _notifications(self) -> None:
        self.notifications = self._counter(
            "vane_notifications_total",
            "Notifications about bound Pods, by result: delivered, dropped, failed.",
            "result",
        )
        self.notifications_pending = self._gauge(
            "vane_notifications_pending", "Notifications that wait to be delivered."
        )

    @property
    def families(self) -> Sequence[Family[Any]]:
        """All families, in the order of the page."""
        return self._families

    def before_page(self, settle: Callable[[], None]) -> None:
        """Have `settle` called before each page, for code in which a Counter would be too expensive."""
        self._before_page.append(settle)

    def settle(self) -> None:
        """Bring what is counted elsewhere into the families."""
        for settle in self._before_page:
            settle()

    def set_signal_state(self, signal: str, state: str) -> None:
        """Show one of SIGNAL_STATES as the signal's state."""
        if state not in SIGNAL_STATES:
            raise ValueError(f"must be one of {SIGNAL_STATES}, got {state!r}")
        for name in SIGNAL_STATES:
            self.signal_state(signal, name).set(name == state)

    def set_signal_problem(self, signal: str, problem: str) -> None:
        """Show this, and nothing else, as what is wrong with the signal; empty where it is healthy."""
        before = self._problems.pop(signal, "")
        if before and before != problem:
            self.signal_problem.remove(signal, before)
        if problem:
            self.signal_problem(signal, problem).set(1)
            self._problems[signal] = problem

    def keep_signals(self, signals: Iterable[str]) -> None:
        """Remove the series of all other signals; children of theirs that someone holds are off the page then."""
        self._keep("signal", frozenset(signals))

    def keep_rules(self, rules: Iterable[str]) -> None:
        """Remove the series of all other rules."""
        self._keep("rule", frozenset(rules))

    def _keep(self, label: str, names: frozenset[str]) -> None:
        for family in self._families:
            if label in family.labels:
                family.drop(label, names.__contains__)

    def _counter(self, name: str, text: str, *labels: str) -> Family[Counter]:
        return self._add(Family(Counter(name, text, labels, registry=None), self.registry.register))

    def _gauge(self, name: str, text: str, *labels: str) -> Family[Gauge]:
        return self._add(Family(Gauge(name, text, labels, registry=None), self.registry.register))

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Family[Histogram]:
        return self._add(Family(Histogram(name, text, labels, registry=None, buckets=buckets), self.registry.register))

    def _add(self, family: Family[Child]) -> Family[Child]:
        self._families.append(family)
        return family
