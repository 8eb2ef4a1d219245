"""`vane run`: puts the parts together, runs the deciding loop on the main thread, ends in order."""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import FrameType

from prometheus_client import CollectorRegistry

from scheduler import __version__, logs
from scheduler.app.observers import (
    ElectionReports,
    counted_bad_input,
    counting_queue,
    counting_requests,
    counting_restarts,
    host_label,
)
from scheduler.app.profiles import build_profiles
from scheduler.app.prometheus_servers import check_addresses, features_of, matchers_of, server_names
from scheduler.app.refresher_link import RefresherLink
from scheduler.app.wire import Start
from scheduler.child_process import ENDING
from scheduler.cluster.backoff import Timings
from scheduler.cluster.cache import Cache
from scheduler.cluster.queue import SchedulingQueue
from scheduler.cluster.router import Router
from scheduler.framework.profile import Profile
from scheduler.kube.binder.client import BinderClient
from scheduler.kube.binder.messages import EventsDropped, PodRef
from scheduler.kube.config import Connection, load_connection
from scheduler.kube.election.elector import Elector
from scheduler.kube.election.settings import ElectionSettings, new_identity
from scheduler.kube.ended_pods import ENDED_PODS, EndedPods
from scheduler.kube.reflector import Reflector
from scheduler.kube.resources import KINDS
from scheduler.kube.transport import Transport
from scheduler.loop.binding.cycle import BindingCycle
from scheduler.loop.cycle import SchedulingCycle, World
from scheduler.loop.cycle_observer import CycleObserver
from scheduler.loop.failure import FailureHandler, Guard
from scheduler.loop.instructions import Instructions
from scheduler.loop.messages import BinderSaid, Inbox, Stop
from scheduler.loop.pages.pages import Pages
from scheduler.loop.preemptions import Preemptions
from scheduler.loop.record_ring import RecordRing
from scheduler.loop.rule_updates.verdicts import Verdicts
from scheduler.loop.scheduler import Parts, SchedulingLoop
from scheduler.metrics import Metrics
from scheduler.model.rules import RuleSet
from scheduler.rules.compiled import CompiledRules, compile_rules, indexes_for
from scheduler.settings.settings import LeaderElectionSettings, Settings
from scheduler.signals.columns.store import SignalStore
from scheduler.signals.loader import RuleLoader

log = logging.getLogger(__name__)

SWITCH_INTERVAL_S = 0.0005
_DRAIN_EVENTS_S = 1.0
_STOP_REFLECTOR_S = 0.1
_RELEASE_S = 2.0


def run(settings: Settings) -> int:
    """Schedule until SIGTERM or SIGINT (exit code 0), or until it cannot go on (1).

    Raises
    ------
    ConfigError
        A setting, a profile, a kubeconfig or a rule file is wrong; nothing was started.
    """
    profiles = build_profiles(settings)
    prometheus = settings.prometheus
    names, features, matchers = server_names(prometheus), features_of(prometheus), matchers_of(prometheus)
    loader = RuleLoader(settings.rules, _ignore, _ignore, servers=names, features=features, matchers=matchers)
    rules = loader.load() if settings.rules else RuleSet()
    check_addresses(prometheus)
    identity = new_identity()
    connection = load_connection(None if settings.kubeconfig is None else str(settings.kubeconfig))
    clusters = {name: load_connection(str(path)).as_replica(identity) for name, path in settings.clusters}
    with logs.configure(settings.logging.format, settings.logging.verbosity, sys.stderr):
        log.info(
            "vane starts",
            extra={
                "version": __version__,
                "identity": identity,
                "api_server": connection.host,
                "profiles": ",".join(profiles),
                "rules": len(rules.rules),
            },
        )
        if prometheus.url is None and any(not signal.server for signal in rules.asked.values()):
            log.warning("no Prometheus is configured, so signals without a server stay missing; write --prometheus URL")
        for notice in settings.scheduler.notices:
            log.warning(notice)
        loader.log_warnings()
        outside = _Outside(identity, connection.as_replica(identity), clusters)
        return _SchedulerRun(settings, profiles, outside, rules, loader).run()


@dataclass(frozen=True, slots=True)
class _Outside:
    """Under which name we speak to which API servers: our own, and others by name."""

    identity: str
    api_server: Connection
    clusters: Mapping[str, Connection]


class _SchedulerRun:
    """One run: the three processes, and the threads of this one."""

    def __init__(
        self,
        settings: Settings,
        profiles: Mapping[str, Profile],
        outside: _Outside,
        rules: RuleSet,
        loader: RuleLoader,
    ) -> None:
        self._settings = settings
        self._profiles = profiles
        self._outside = outside
        self._rules = rules
        self._inbox = Inbox()
        self._metrics = Metrics(CollectorRegistry())
        self._metrics.build_info(__version__).set(1)
        self._count_request = counting_requests(self._metrics, host_label(outside.api_server.host))
        self._binder = BinderClient(
            outside.api_server,
            on_result=lambda results: self._inbox.put(BinderSaid(results)),
            on_patched=lambda results: self._inbox.put(BinderSaid(results)),
            on_dead=self._fail,
            on_requests=lambda requests: self._inbox.put(BinderSaid(requests)),
            on_events_dropped=lambda count: self._inbox.put(BinderSaid([EventsDropped(count=count)])),
        )
        self._loader = loader
        self._elector: Elector | None = None

    def run(self) -> int:
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        gc.disable()  # until the loop runs, see there: what is made up to then stays
        for number in ENDING:
            signal.signal(number, self._on_signal)
        self._binder.start(self._outside.clusters)
        pids = {"deciding": os.getpid(), "binder": self._binder.pid}
        start = Start(self._settings, self._loader.state, pids, self._outside.identity)
        refresher = RefresherLink(start, self._rules, self._inbox, self._fail, self._metrics)
        refresher.start()
        loop = self._loop(refresher)
        reflectors = self._start_watching()
        stop = loop.run()
        log.info("vane ends", extra={"reason": stop.reason})
        for reflector in reflectors:
            # One that waits for an answer cannot be woken; its thread ends with the process.
            reflector.stop(_STOP_REFLECTOR_S)
        self._end_writing(loop.has_drained and stop.exit_code == 0)
        refresher.stop()
        return stop.exit_code

    def _start_watching(self) -> list[Reflector | EndedPods]:
        transport = Transport(self._outside.api_server, self._count_request)
        on_restart = counting_restarts(self._metrics)
        watching: list[Reflector | EndedPods] = [
            EndedPods(transport, self._inbox.put)
            if name == ENDED_PODS
            else Reflector(KINDS[name], transport, self._inbox.put, on_restart)
            for name in sorted(self._kinds)
        ]
        for one in watching:
            one.start()
        return watching

    @property
    def _kinds(self) -> frozenset[str]:
        """The kinds to list; Pods that have ended only where a rule from the start on counts them."""
        kinds = frozenset[str]().union(*(profile.kinds for profile in self._profiles.values()))
        return kinds | {ENDED_PODS} if self._rules.has_windows else kinds

    def _stand_for_election(self) -> None:
        settings = self._settings.leader_election
        if not settings.leader_elect:
            return
        self._metrics.leader_election_master_status(settings.resource_name).set(0)
        self._elector = Elector(
            self._outside.api_server,
            self._outside.identity,
            _election_settings(settings),
            list(self._profiles),
            ElectionReports(self._binder, self._inbox, self._fail),
            self._count_request,
        )
        self._elector.start()

    def _end_writing(self, has_drained: bool) -> None:
        """Hand the lease back once nothing is written any more: another replica leads a moment later."""
        if has_drained:
            self._binder.drain(_DRAIN_EVENTS_S)
        self._binder.stop()
        if self._elector is not None and not self._elector.release(_RELEASE_S):
            log.warning("the lease was not released; another replica takes it when it has expired")

    def _loop(self, refresher: RefresherLink) -> SchedulingLoop:
        settings, metrics, clock = self._settings, self._metrics, time.monotonic
        profiles = self._profiles
        cache = Cache(indexes_for(profiles.values()), counted_bad_input(metrics, clock))
        timings = Timings(settings.scheduler.initial_backoff_s, settings.scheduler.max_backoff_s)
        store = SignalStore(clock)
        store.set_rules(self._rules)

        def rules() -> CompiledRules:
            return compile_rules(store.rules, cache.state.memo)

        queue = SchedulingQueue(profiles, cache.nominator, timings, counting_queue(metrics), rules)
        world = World(cache, queue, store, RecordRing())
        guard = Guard(metrics, clock)
        failure = FailureHandler(cache, queue, self._binder, metrics, guard)
        instructions = Instructions(self._binder, refresher.notify, self._inbox.put)
        binding = BindingCycle(cache, queue, failure, instructions, self._binder, metrics, clock)
        preemptions = Preemptions(cache, queue, binding, instructions, self._binder, metrics, clock)
        verdicts = Verdicts(store, queue, cache, self._binder, _own_pod(), next(iter(profiles)))
        parts = Parts(
            world=world,
            router=Router(
                cache,
                queue,
                profiles,
                binding.gone,
                binding.changed,
                binding.object_changed,
                lambda: store.rules.has_windows,
            ),
            cycle=SchedulingCycle(world, profiles, binding, failure, preemptions, CycleObserver(metrics, clock), clock),
            binding=binding,
            instructions=instructions,
            verdicts=verdicts,
            pages=Pages(world, metrics, clock),
            guard=guard,
            metrics=metrics,
            kinds=self._kinds,
            hosts={
                cluster: host_label(connection.host)
                for cluster, connection in {"": self._outside.api_server, **self._outside.clusters}.items()
            },
            first_answers_s=5.0 if settings.prometheus.by_name() else 0.0,
            lease=settings.leader_election.resource_name if settings.leader_election.leader_elect else "",
        )
        # The times that Pods carry are of wall clocks.
        unix_clock = time.time  # noqa: TID251
        announce, lead = refresher.publish_nodes, self._stand_for_election
        return SchedulingLoop(self._inbox, parts, announce, clock, lead, unix_clock)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._inbox.put(Stop(0, signal.Signals(number).name))

    def _fail(self, reason: str) -> None:
        log.critical("cannot go on: %s", reason)
        self._inbox.put(Stop(1, reason))


def _own_pod() -> PodRef:
    """Return the Pod that Events about Vane itself are written to; the manifests set both variables."""
    return PodRef(
        namespace=os.environ.get("POD_NAMESPACE", "kube-system"),
        name=os.environ.get("POD_NAME", socket.gethostname()),
        uid=os.environ.get("POD_UID", ""),
    )


def _election_settings(settings: LeaderElectionSettings) -> ElectionSettings:
    """Return what the elector needs of the user's settings, which have been validated."""
    return ElectionSettings(
        lease_duration_s=settings.lease_duration_s,
        renew_deadline_s=settings.renew_deadline_s,
        retry_period_s=settings.retry_period_s,
        name=settings.resource_name,
        namespace=settings.resource_namespace,
    )


def _ignore(_: object) -> None:
    pass
