"""What listens to parts that must not know who listens: it counts in the metrics, or passes news on."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from scheduler.cluster.bad_input import BadInput
from scheduler.cluster.queue import IncomingObserver
from scheduler.kube.binder.client import BinderClient
from scheduler.kube.binder.messages import LeaseUntil
from scheduler.kube.election.roll_call import RollCall
from scheduler.kube.reflector import RestartObserver
from scheduler.kube.transport import RequestObserver
from scheduler.loop.messages import Inbox, Led
from scheduler.metrics import Metrics
from scheduler.signals.answers import Drops, SignalAnswer
from scheduler.signals.problems import concern_of, problems_of


def counting_queue(metrics: Metrics) -> IncomingObserver:
    """Return the observer of Pods that enter a queue."""
    return lambda event, queue: metrics.queue_incoming_pods(event, queue).inc()


def counted_bad_input(metrics: Metrics, clock: Callable[[], float]) -> BadInput:
    """Return what notes bad objects, and counts them."""
    return BadInput(clock, lambda kind, reason: metrics.bad_objects(kind, reason).inc())


def host_label(url: str) -> str:
    """Return an API server as the label `host` of `rest_client_*` names it: host and port."""
    return urlsplit(url).netloc


def counting_requests(metrics: Metrics, host: str) -> RequestObserver:
    """Return the observer of the deciding process' own reads from the API server."""

    def done(verb: str, code: str, duration_s: float) -> None:
        metrics.rest_client_requests(code, verb, host).inc()
        metrics.rest_client_request_duration(verb, host).observe(duration_s)

    return done


def counting_restarts(metrics: Metrics) -> RestartObserver:
    """Return the observer of the reflectors."""
    return lambda kind, reason: metrics.watch_restarts(kind, reason).inc()


class CountingRefresher:
    """A RefreshObserver."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def query_done(self, signal: str, duration_s: float, error_kind: str) -> None:
        self._metrics.signal_query_duration(signal).observe(duration_s)
        if error_kind:
            self._metrics.signal_query_errors(signal, concern_of(error_kind)).inc()
            self._metrics.set_signal_problem(signal, error_kind)

    def server_done(self, server: str, is_up: bool) -> None:
        self._metrics.prometheus_up(server).set(is_up)

    def query_skipped(self, signal: str, reason: str) -> None:
        is_paused = reason != "running"
        self._metrics.signal_query_errors(signal, "skipped_pause" if is_paused else "skipped_running").inc()
        if is_paused:
            self._metrics.signal_paused(signal).set(1)

    def answered(self, answer: SignalAnswer) -> None:
        """Count series and drops of one answer."""
        metrics, drops = self._metrics, answer.drops
        metrics.set_signal_problem(answer.signal, next(iter(problems_of(answer)), ""))
        metrics.signal_paused(answer.signal).set(0)
        metrics.signal_series(answer.signal, "mapped").set(answer.n_series - drops.total)
        metrics.signal_series(answer.signal, "unmapped").set(drops.unmapped)
        for reason in Drops.__struct_fields__:
            n_dropped = getattr(drops, reason)
            if n_dropped:
                metrics.signal_samples_dropped(answer.signal, reason).inc(n_dropped)


class ElectionReports:
    """An ElectionObserver: the term goes to the binder, news to the inbox, a lost lease to `failed`: all must end."""

    def __init__(self, binder: BinderClient, inbox: Inbox, failed: Callable[[str], None]) -> None:
        self._binder = binder
        self._inbox = inbox
        self._failed = failed

    def on_term(self, term: LeaseUntil) -> None:
        self._binder.set_term(term)

    def on_leading(self, roll_call: RollCall) -> None:
        self._inbox.put(Led(roll_call))

    def on_lost(self, reason: str) -> None:
        self._failed(reason)
