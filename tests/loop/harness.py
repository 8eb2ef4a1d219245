"""The deciding side as `app` builds it, with the binder's twin in memory and a clock that stands until it is moved."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from prometheus_client import CollectorRegistry

from scheduler.cluster.cache import Cache
from scheduler.cluster.queue import SchedulingQueue
from scheduler.cluster.router import Router
from scheduler.framework.instructions import Notify
from scheduler.framework.plugin import Plugin
from scheduler.framework.profile import Enabled, Profile
from scheduler.kube.binder.messages import (
    BindRequest,
    BindResult,
    EventRequest,
    EvictRequest,
    FailureReport,
    Outcome,
    PatchRequest,
    PatchResult,
    PodRef,
    WriteRequest,
)
from scheduler.kube.watch_stream import Changed, Replaced
from scheduler.loop.binding.cycle import BindingCycle
from scheduler.loop.cycle import SchedulingCycle, World
from scheduler.loop.cycle_observer import CycleObserver
from scheduler.loop.failure import FailureHandler, Guard
from scheduler.loop.instructions import Instructions
from scheduler.loop.messages import BinderSaid, Inbox, PageAsked, RulesLoaded, SignalAnswered
from scheduler.loop.pages.metrics import MetricsQuery
from scheduler.loop.pages.pages import Pages
from scheduler.loop.pages.query import ListingQuery, PageQuery
from scheduler.loop.preemptions import Preemptions
from scheduler.loop.record_ring import RecordRing
from scheduler.loop.rule_updates.verdicts import Verdicts
from scheduler.loop.scheduler import Parts, SchedulingLoop
from scheduler.metrics import Metrics
from scheduler.model.identity import KnownNodes, NodeIdentity
from scheduler.model.objects import Node, Pod
from scheduler.model.pods import PodInfo
from scheduler.plugins import default_chain
from scheduler.rules.compiled import compile_rules, indexes_for
from scheduler.signals.answers import SignalAnswer, signature
from scheduler.signals.columns.store import SignalStore
from scheduler.signals.format.rule_files import parse_rule_files


@dataclass
class RecordingBinder:
    """The twin of the binder process: keeps what it is asked, answers nothing by itself."""

    binds: list[BindRequest] = field(default_factory=list)
    reports: list[FailureReport] = field(default_factory=list)
    events: list[EventRequest] = field(default_factory=list)
    patches: list[PatchRequest] = field(default_factory=list)
    writes: list[WriteRequest] = field(default_factory=list)
    evictions: list[EvictRequest] = field(default_factory=list)
    on_bind: Callable[[], None] = lambda: None
    on_flush: Callable[[], None] = lambda: None

    def bind(self, request: BindRequest) -> None:
        self.binds.append(request)
        self.on_bind()

    def patch(self, request: PatchRequest) -> None:
        self.patches.append(request)

    def write(self, request: WriteRequest) -> None:
        self.writes.append(request)

    def evict(self, request: EvictRequest) -> None:
        self.evictions.append(request)

    def report_failure(self, report: FailureReport) -> None:
        self.reports.append(report)

    def event(self, request: EventRequest) -> None:
        self.events.append(request)

    def flush(self) -> None:
        self.on_flush()


class Harness:
    """One scheduler without processes; messages go in with `loop.apply`, cycles run with `run`."""

    def __init__(
        self,
        extra_plugins: Sequence[Plugin] = (),
        first_answers_s: float = 0.0,
        without: Sequence[str] = (),
        records: RecordRing | None = None,
        signals: Callable[[Callable[[], float]], SignalStore] = SignalStore,
    ) -> None:
        self.now_s = 1_000.0
        self.seconds_per_look = 0.0
        self.binder = RecordingBinder()
        self.inbox = Inbox()
        self.nodes = KnownNodes()
        self.page_faults: list[str] = []
        metrics = self.metrics = Metrics(CollectorRegistry())
        chain = [enabled for enabled in default_chain() if enabled.plugin.name not in without]
        profile = Profile.build("vane", [*chain, *(Enabled(plugin) for plugin in extra_plugins)])
        profiles = {"vane": profile}
        cache = Cache(indexes_for(profiles.values()))
        store = signals(self.clock)
        queue = SchedulingQueue(profiles, cache.nominator, rules=lambda: compile_rules(store.rules, cache.state.memo))
        self.world = World(cache, queue, store, RecordRing() if records is None else records)
        guard = Guard(metrics, self.clock)
        failure = FailureHandler(cache, queue, self.binder, metrics, guard)
        self.sent: list[Notify] = []
        instructions = Instructions(self.binder, self.sent.append, self.inbox.put)
        binding = self.binding = BindingCycle(cache, queue, failure, instructions, self.binder, metrics, self.clock)
        preemptions = Preemptions(cache, queue, binding, instructions, self.binder, metrics, self.clock)
        own_pod = PodRef(namespace="kube-system", name="vane-0", uid="own")
        self.cycle = SchedulingCycle(
            self.world, profiles, binding, failure, preemptions, CycleObserver(metrics, self.clock), self.clock
        )
        self.parts = Parts(
            world=self.world,
            router=Router(
                cache,
                queue,
                profiles,
                binding.gone,
                binding.changed,
                binding.object_changed,
                lambda: store.rules.has_windows,
            ),
            cycle=self.cycle,
            binding=binding,
            instructions=instructions,
            verdicts=Verdicts(self.world.signals, queue, cache, self.binder, own_pod, "vane"),
            pages=Pages(self.world, metrics, self.clock),
            guard=guard,
            metrics=metrics,
            kinds=frozenset({"Node", "Pod"}),
            hosts={"": "api:443"},
            first_answers_s=first_answers_s,
        )
        self.loop = self.loop_with(self.clock)

    def loop_with(self, clock: Callable[[], float]) -> SchedulingLoop:
        """Return a loop over the same world that reads another clock."""
        return SchedulingLoop(self.inbox, self.parts, self.nodes.apply, clock)

    def clock(self) -> float:
        self.now_s += self.seconds_per_look
        return self.now_s

    def list_nodes(self, *nodes: Node) -> None:
        self.loop.apply(Replaced("Node", list(nodes)))

    def list_pods(self, *pods: PodInfo) -> None:
        self.loop.apply(Replaced("Pod", [pod.pod for pod in pods]))

    def see(self, pod: PodInfo | Pod, type_: str = "ADDED") -> None:
        """Have the watch show a Pod."""
        self.loop.apply(Changed("Pod", type_, pod.pod if isinstance(pod, PodInfo) else pod))  # type: ignore[arg-type]

    def run(self, cycles: int = 100) -> int:
        """Run scheduling cycles until none is waiting; return how many there were."""
        return next((i for i in range(cycles) if not self.cycle.run_once()), cycles)

    def take(self, count: int) -> None:
        """Apply so many messages that other threads put into the inbox, each within a second."""
        for _ in range(count):
            message = self.inbox.take(1.0)
            assert message is not None
            self.loop.apply(message)

    def settle(self, outcome: Outcome = "bound", message: str = "") -> None:
        """Have the binder answer every bind asked for so far in one way."""
        binds, self.binder.binds = self.binder.binds, []
        results = [
            BindResult(
                uid=bind.pod.uid, outcome=outcome, node_name=bind.node_name, code=0, message=message, duration_s=0.01
            )
            for bind in binds
        ]
        self.loop.apply(BinderSaid(results))

    def settle_patches(self, outcome: Literal["patched", "deleted", "expired", "failed"] = "patched") -> None:
        """Have the binder answer every patch asked for so far in one way."""
        patches, self.binder.patches = self.binder.patches, []
        self.loop.apply(BinderSaid([PatchResult(number=patch.number, outcome=outcome) for patch in patches]))

    def identity(self) -> NodeIdentity:
        """Return what the loop has told of the nodes, after it has told what is new."""
        self.loop.announce_nodes()
        return self.nodes.identity()

    def load_rules(self, text: str, generation: int = 1) -> None:
        self.loop.apply(RulesLoaded(parse_rule_files({"rules.yaml": text.encode()}, generation)))

    def answer(self, signal: str, values: Mapping[str, float], unix_s: float = math.nan) -> None:
        """Have Prometheus answer a signal by node, evaluated now, at `unix_s`; nodes not named have no sample."""
        rules = self.world.signals.rules
        identity = self.identity()
        column = np.array([values.get(name, np.nan) for name in identity.names])
        self.loop.apply(
            SignalAnswered(
                SignalAnswer(
                    signal=signal,
                    signature=signature(rules.signals[signal]),
                    rules_generation=rules.generation,
                    max_age_s=rules.signals[signal].max_age_s,
                    evaluated_at_s=self.now_s,
                    evaluated_unix_s=unix_s,
                    identity_generation=identity.generation,
                    values=column.tobytes(),
                    n_series=len(values),
                    n_mapped=len(values),
                )
            )
        )

    def placed(self) -> dict[str, str]:
        """Return Pod name -> node of all binds asked for and not settled yet."""
        return {bind.pod.name: bind.node_name for bind in self.binder.binds}

    def page(self, query: PageQuery, *, goes_on: bool = False) -> bytes:
        """Return an answer as the HTTP side would get it."""
        said: list[bytes] = []
        self.loop.apply(PageAsked(query, said.append, self.page_faults.append, goes_on))
        return said[0] if said else b""

    def listing(self, query: ListingQuery) -> list[bytes]:
        """Return all slices of an answer."""
        slices = [self.page(query)]
        while slices[-1]:
            slices.append(self.page(query, goes_on=True))
        return slices[:-1]

    def metrics_page(self) -> str:
        return b"".join(self.listing(MetricsQuery())).decode()
