from __future__ import annotations

import math
from collections.abc import Mapping
from random import Random
from typing import Any

import numpy as np
import pytest

from scheduler.model.pods import PodInfo
from scheduler.model.rules import ByKind, Effect, EffectKind, Rule, RuleSet, Signal, Unit, effect_scale
from scheduler.model.signals import SignalColumn, SignalTable
from scheduler.model.snapshot import Snapshot
from scheduler.model.state import ClusterState
from scheduler.rules.pending_column import with_pending
from scheduler.rules.pending_load import SHARES, PendingPods, PendingQuestion
from tests.builders import make_node, make_pod, pod_of
from tests.worlds import each_seed

REQUEST = Effect(EffectKind.REQUEST, "cpu")
START = "2026-01-01T00:00:00Z"
START_S = 1_767_225_600.0
SIGNAL = Signal("cpu", "rate(cpu[2m])", unit=Unit.RATIO, window_s=120.0, inflight=REQUEST)


def time_of(second: int) -> str:
    return f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z"


def status_of(bound: int | None = None, running: int | None = None, *, restarts: int = 0) -> dict[str, Any]:
    """Return a Pod's status, with times in seconds after START."""
    status: dict[str, Any] = {}
    if bound is not None:
        status["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": time_of(bound)}]
        status["startTime"] = time_of(bound + 1)
        state = {"waiting": {}} if running is None else {"running": {"startedAt": time_of(running)}}
        status["containerStatuses"] = [{"name": "c0", "restartCount": restarts, "state": state}]
    return status


def question(
    as_of_s: float,
    effect: Effect = REQUEST,
    window_s: float = 120.0,
    learned: Mapping[Any, int] | None = None,
    signal: str = "cpu",
) -> PendingQuestion:
    return PendingQuestion(signal, effect, window_s, START_S + as_of_s, learned or {})


class TestShare:
    @pytest.mark.parametrize(
        ("as_of_s", "status", "share"),
        [
            pytest.param(0, status_of(), 1.0, id="assumed: nobody has said when it was bound"),
            pytest.param(0, status_of(10, 20), 1.0, id="it ran after the samples"),
            pytest.param(20, status_of(10, 20), 1.0, id="it began to run as they were taken"),
            pytest.param(80, status_of(10, 20), 0.5, id="they show half of it"),
            pytest.param(110, status_of(10, 20), 0.25, id="they show three quarters"),
            pytest.param(140, status_of(10, 20), 0.0, id="they show it whole"),
            pytest.param(9_999, status_of(10, 20), 0.0, id="long ago"),
            pytest.param(309, status_of(10), 1.0, id="its image is still pulled"),
            pytest.param(311, status_of(10), 0.0, id="it does not get to run: five minutes are enough"),
            pytest.param(71, status_of(10, 60, restarts=1), 0.5, id="a restart: the Pod's start counts"),
        ],
    )
    def test_how_much_of_a_pod_the_samples_do_not_show(
        self, as_of_s: float, status: dict[str, Any], share: float
    ) -> None:
        pod = make_pod(status=status)

        assert question(as_of_s).share(pod.running_s, pod.bound_s) == share * SHARES

    def test_without_a_window_a_pod_is_seen_once_it_runs(self) -> None:
        pod = make_pod(status=status_of(10, 20))

        shares = [question(at_s, window_s=0.0).share(pod.running_s, pod.bound_s) for at_s in (19, 20, 21)]
        assert shares == [SHARES, 0, 0]


@each_seed(200)
def test_many_at_once_are_each_one_by_itself(random: Random) -> None:
    asked = question(random.uniform(-50, 500), window_s=random.choice([0.0, 1.0, 60.0, 120.0, 3600.0]))
    running = np.array([random.choice([math.inf, START_S + random.uniform(-600, 600)]) for _ in range(20)])
    bound = np.array([random.choice([math.inf, START_S + random.uniform(-600, 600)]) for _ in range(20)])

    each = [asked.share(*times) for times in zip(running.tolist(), bound.tolist(), strict=True)]
    assert asked.shares(running, bound).tolist() == each


class TestAmount:
    def test_a_request_a_constant_and_what_was_learned(self) -> None:
        pod = make_pod(cpu="250m", memory="1Gi")

        assert question(0).amount(pod) == 250
        assert question(0, Effect(EffectKind.REQUEST, "memory")).amount(pod) == 1 << 30
        assert question(0, Effect(EffectKind.CONSTANT, "cpu", 40.0)).amount(pod) == 40
        learned = Effect(EffectKind.LEARNED, "cpu")
        assert question(0, learned, learned={pod.workload: 77}).amount(pod) == 77
        assert question(0, learned).amount(pod) == 250, "nothing learned yet: what it asks for"
        assert question(0, Effect(EffectKind.LEARNED)).amount(pod) == 0

    def test_a_pod_without_requests_adds_something_too(self) -> None:
        pod = make_pod("p")
        kinds = (EffectKind.REQUEST, EffectKind.LEARNED)
        assert [question(0, Effect(kind, "cpu")).amount(pod) for kind in kinds] == [100, 100]
        assert question(0, Effect(EffectKind.REQUEST, "memory")).amount(pod) == 200 << 20
        assert question(0, Effect(EffectKind.REQUEST, "example.com/x")).amount(pod) == 0
        written = Effect(EffectKind.REQUEST, "cpu", without_request=500.0)
        assert question(0, written).amount(pod) == 500
        assert question(0, written).amount(make_pod("q", cpu="50m")) == 50
        assert question(0, written, learned={pod.workload: 77}).amount(pod) == 500, "it is not learned"

    def test_pods_of_a_rollout_and_jobs_of_a_schedule_are_one_workload(self) -> None:
        def owned(kind: str, name: str, labels: Mapping[str, str]) -> tuple[str, str]:
            owner = {"kind": kind, "name": name, "uid": name, "controller": True}
            fields = {"name": "p", "namespace": "shop", "labels": labels, "ownerReferences": [owner]}
            return pod_with(fields).workload

        assert owned("ReplicaSet", "web-5d4f9", {"pod-template-hash": "5d4f9"}) == ("shop", "ReplicaSet/web")
        assert owned("Job", "backup-29387720", {}) == ("shop", "Job/backup")
        assert owned("StatefulSet", "db-2", {}) == ("shop", "StatefulSet/db-2")
        assert make_pod(namespace="shop").workload == ("shop", "")


def pod_with(metadata: Mapping[str, Any]) -> PodInfo:
    return pod_of({"metadata": metadata, "spec": {"containers": [{"name": "c"}]}})


class World:
    """Pods that come, go, are renewed and tried, with the sums that an index keeps of them."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.index = PendingPods()
        self.state = ClusterState(indexes=[self.index])
        self.rows = [self.state.set_node(make_node(f"n{i}")) for i in range(5)]
        self.placed: dict[str, int] = {}
        self.last = {"a": question(60, signal="a")}

    @property
    def questions(self) -> list[PendingQuestion]:
        """The last about each signal: only those are asked any more."""
        return list(self.last.values())

    def step(self, number: int) -> None:
        random, row = self.random, self.random.choice(self.rows)
        uid = random.choice([*self.placed, "none"])
        match random.choice(["place", "place", "displace", "renew", "ask", "trial", "wide"]):
            case "place":
                self.state.place(self.pod(f"p{number}"), row)
                self.placed[f"p{number}"] = row
            case "displace" if uid in self.placed:
                row = self.placed.pop(uid)
                self.state.displace(self.state.pods[row][uid], row)
            case "renew" if uid in self.placed:
                self.state.renew(self.pod(uid), self.placed[uid])
            case "ask":
                window_s, signal = random.choice([0.0, 120.0]), random.choice("abc")
                self.last[signal] = question(random.uniform(0, 400), window_s=window_s, signal=signal)
            case "trial":
                self.trial(row)
            case "wide":
                self.rows.append(self.state.set_node(make_node(f"m{number}")))

    def trial(self, row: int) -> None:
        before = [self.sums(asked) for asked in self.questions]
        with Snapshot(self.state, SignalTable(), 0.0).trial() as trial:
            for pod in list(self.state.pods_on(row)):
                trial.remove(pod, row)
            trial.place(self.pod("guest"), row)
            self.check()
        assert [self.sums(asked) for asked in self.questions] == before

    def pod(self, uid: str) -> PodInfo:
        bound = self.random.choice([None, self.random.randint(0, 300)])
        running = None if bound is None or self.random.random() < 0.3 else bound + self.random.randint(0, 60)
        return make_pod(uid, uid=uid, status=status_of(bound, running), cpu=f"{7 * sum(map(ord, uid))}m")

    def sums(self, asked: PendingQuestion) -> list[int]:
        found: list[int] = self.index.on_rows(asked, self.state.nodes.n_rows).tolist()
        return found

    def check(self) -> None:
        for asked in self.questions:
            counted = [
                sum(
                    asked.share(pod.running_s, pod.bound_s) * asked.amount(pod)
                    for pod in self.state.pods.get(row, {}).values()
                )
                for row in range(self.state.nodes.n_rows)
            ]
            assert self.sums(asked) == counted


@each_seed(60)
def test_the_sums_are_those_of_all_pods_there(random: Random) -> None:
    world = World(random)
    for number in range(40):
        world.step(number)
        world.check()


class Watched(dict[tuple[str, str], int]):
    """Amounts that know how often they were looked up."""

    n_looks = 0

    def get(self, key: Any, default: Any = None) -> Any:
        self.n_looks += 1
        return super().get(key, default)


def test_a_pod_that_comes_is_counted_for_the_last_answer_of_a_signal_only() -> None:
    index = PendingPods()
    state = ClusterState(indexes=[index])
    row = state.set_node(make_node("n0"))
    amounts = [Watched({("default", ""): 7}) for _ in range(100)]
    for second, learned in enumerate(amounts):
        index.on_rows(question(second, Effect(EffectKind.LEARNED, "cpu"), learned=learned), 1)

    state.place(make_pod("one"), row)

    assert [learned.n_looks for learned in amounts] == [0] * 99 + [1]


@each_seed(10)
def test_a_row_counts_as_changed_when_what_is_in_flight_there_changes(random: Random) -> None:
    """Columns that are renewed row by row go by that."""
    world = World(random)
    for number in range(40):
        before, generation = [(one, world.sums(one)) for one in world.questions], world.state.nodes.generation
        world.step(number)
        changed = set(world.state.nodes.rows_changed_since(generation).tolist())
        for asked, sums in before:
            if asked not in world.questions:
                continue
            now = world.sums(asked)
            assert {row for row, was in enumerate(sums) if now[row] != was} <= changed


class TestColumn:
    def snapshot(self, signal: Signal, *, zone: bool = False) -> tuple[Snapshot, ClusterState]:
        state = ClusterState(indexes=[PendingPods()])
        for name, cpu, where in (("n0", "4", "a"), ("n1", "8", "a"), ("n2", "0", "b")):
            row = state.set_node(make_node(name, cpu=cpu, labels={"zone": where} if zone else None))
            state.place(make_pod(f"on-{name}", cpu="400m", memory="1Gi"), row)
        column = SignalColumn(signal, np.array([0.25, 0.5, math.nan]), 5.0, START_S)
        rules = RuleSet({signal.name: signal}, (Rule("cool", signal.name),))
        return Snapshot(state, SignalTable(rules, {signal.name: column}), 0.0), state

    @pytest.mark.parametrize(
        ("unit", "effect", "added"),
        [
            pytest.param(Unit.RATIO, REQUEST, [0.1, 0.05, 0.0], id="a share of the node"),
            pytest.param(Unit.PERCENT, REQUEST, [10.0, 5.0, 0.0], id="in percent"),
            pytest.param(Unit.RATIO, Effect(EffectKind.CONSTANT, "cpu", 800.0), [0.2, 0.1, 0.0], id="an amount"),
            pytest.param(Unit.BYTES, Effect(EffectKind.REQUEST, "memory"), [2.0**30] * 3, id="bytes as they are"),
            pytest.param(
                Unit.WATT, Effect(EffectKind.CONSTANT, "", 12.5 * effect_scale(Unit.WATT)), [12.5] * 3, id="the unit"
            ),
            pytest.param(Unit.RATIO, Effect(EffectKind.REQUEST, "nobody/has"), [0.0] * 3, id="an unknown resource"),
        ],
    )
    def test_in_the_unit_of_the_signal(self, unit: Unit, effect: Effect, added: list[float]) -> None:
        signal = Signal("cpu", "up", unit=unit, inflight=effect)
        snapshot, _ = self.snapshot(signal)

        found = with_pending(snapshot.signals.columns["cpu"], snapshot)

        assert found.pending is not None
        assert found.pending.tolist() == pytest.approx(added)
        assert found.expected[:2].tolist() == pytest.approx([0.25 + added[0], 0.5 + added[1]])
        assert math.isnan(found.expected[2]), "pending load makes no sample"

    def test_a_domain_has_what_is_in_flight_on_all_its_nodes(self) -> None:
        signal = Signal("cpu", "up", by=ByKind.LABEL, label="zone", unit=Unit.RATIO, inflight=REQUEST)
        snapshot, _ = self.snapshot(signal, zone=True)

        found = with_pending(snapshot.signals.columns["cpu"], snapshot).pending

        assert found is not None
        assert found.tolist() == pytest.approx([800 / 12_000, 800 / 12_000, 0.0])

    def test_a_pod_that_comes_is_there_in_the_next_cycle(self) -> None:
        snapshot, state = self.snapshot(SIGNAL)
        first = with_pending(snapshot.signals.columns["cpu"], snapshot).pending
        state.place(make_pod("one-more", cpu="2"), 0)
        later = Snapshot(state, snapshot.signals, 0.0)

        second = with_pending(later.signals.columns["cpu"], later).pending

        assert first is not None
        assert second is not None
        assert (first.tolist(), second.tolist()) == (
            pytest.approx([0.1, 0.05, 0.0]),
            pytest.approx([0.6, 0.05, 0.0]),
        )

    def test_without_times_or_without_an_effect_there_is_none(self) -> None:
        snapshot, _ = self.snapshot(Signal("cpu", "up"))
        assert with_pending(snapshot.signals.columns["cpu"], snapshot).pending is None
        timeless = SignalColumn(SIGNAL, np.zeros(3), 0.0)
        assert with_pending(timeless, snapshot).pending is None
