"""After any history the columns of the cache equal a recount from scratch."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scheduler.cluster.cache import Cache
from scheduler.cluster.queue import SchedulingQueue
from scheduler.cluster.router import Router
from scheduler.model.objects import Node, Pod, UnreadablePod
from scheduler.model.pods import PodInfo
from scheduler.model.structs import ObjectMeta
from tests.builders import make_node, make_pod
from tests.cluster.worlds import (
    FIT,
    CountingIndex,
    FakeProfile,
    assert_recount_agrees,
    assert_shows,
    is_assumed,
    node_version,
    versioned,
)

NODES = ["n1", "n2", "n3"]
NAMES = [f"p{i}" for i in range(6)]
AMOUNTS = st.sampled_from(["1", "250m", "3", "many", "100E"])


class CacheMachine(RuleBasedStateMachine):
    """An API server's truth beside a cache that hears of it through the router, with losses until the next list."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache([CountingIndex()])
        self.queue = SchedulingQueue({"vane": FakeProfile(FIT)}, self.cache.nominator)
        self.router = Router(self.cache, self.queue, {"vane"})
        self.version = 0
        self.n_uids = 0
        self.pods: dict[str, Pod | UnreadablePod] = {}
        self.nodes: dict[str, Node] = {}
        self.is_cut = False

    def tell(self, type_: str, item: Pod | UnreadablePod | Node) -> None:
        if not self.is_cut:
            self.router.changed(type_, item, float(self.version))

    def write(self, pod: PodInfo) -> None:
        self.version += 1
        self.pods[pod.pod.metadata.name] = versioned(pod, self.version).pod
        self.tell("MODIFIED", self.pods[pod.pod.metadata.name])

    @rule(name=st.sampled_from(NAMES), amount=AMOUNTS, app=st.sampled_from("xy"), node=st.sampled_from(["", *NODES]))
    def create(self, name: str, amount: str, app: str, node: str) -> None:
        if name not in self.pods:
            self.n_uids += 1
            self.write(make_pod(name, uid=f"u{self.n_uids}", labels={"app": app}, node=node, cpu=amount))

    @rule(name=st.sampled_from(NAMES), amount=AMOUNTS, app=st.sampled_from("xy"))
    def update(self, name: str, amount: str, app: str) -> None:
        pod = self.pods.get(name)
        if pod is not None:
            node = pod.spec.node_name if isinstance(pod, Pod) else pod.node_name
            self.write(make_pod(name, uid=pod.metadata.uid, labels={"app": app}, node=node, cpu=amount))

    @rule(name=st.sampled_from(NAMES))
    def spoil(self, name: str) -> None:
        pod = self.pods.get(name)
        if isinstance(pod, Pod):
            self.version += 1
            metadata = ObjectMeta(
                name=name, namespace="default", uid=pod.metadata.uid, resource_version=str(self.version)
            )
            spoilt = UnreadablePod(metadata, pod.spec.node_name, "vane", "does not decode")
            self.pods[name] = spoilt
            self.tell("MODIFIED", spoilt)

    @rule(name=st.sampled_from(NAMES), node=st.sampled_from(NODES))
    def bind(self, name: str, node: str) -> None:
        pod = self.pods.get(name)
        if isinstance(pod, Pod) and not pod.spec.node_name:
            requests = pod.spec.containers[0].resources.requests if pod.spec.containers else None
            labels = pod.metadata.labels or {}
            cpu = (requests or {})["cpu"]
            self.write(make_pod(name, uid=pod.metadata.uid, labels=labels, node=node, cpu=str(cpu)))

    @rule(name=st.sampled_from(NAMES), phase=st.sampled_from(["", "Failed"]))
    def end(self, name: str, phase: str) -> None:
        pod = self.pods.pop(name, None)
        if isinstance(pod, Pod) and phase:
            finished = make_pod(name, uid=pod.metadata.uid, node=pod.spec.node_name, status={"phase": phase})
            self.tell("MODIFIED", finished.pod)
        elif pod is not None:
            self.tell("DELETED", pod)

    @rule(node=st.sampled_from(NODES))
    def assume(self, node: str) -> None:
        entity = self.queue.pop(float(self.version))
        if entity is None:
            return
        if entity.problem or entity.pod.pod.spec.containers is None or _cpu(entity.pod) in ("many",):
            self.queue.requeue_until_update(entity, float(self.version))
            return
        self.cache.assume(entity.pod, node)
        self.queue.done(entity.uid)

    @rule(name=st.sampled_from(NAMES))
    def forget(self, name: str) -> None:
        pod = self.pods.get(name)
        if pod is not None and is_assumed(self.cache, pod.metadata.uid):
            self.cache.forget(pod.metadata.uid)
            self.queue.delete(pod.metadata.uid)

    @rule(name=st.sampled_from(NODES), cpu=st.sampled_from(["4", "8", "a lot"]), uid=st.sampled_from("ab"))
    def set_node(self, name: str, cpu: str, uid: str) -> None:
        self.version += 1
        self.nodes[name] = node_version(make_node(name, cpu=cpu), self.version, uid=uid)
        self.tell("MODIFIED", self.nodes[name])

    @rule(name=st.sampled_from(NODES))
    def delete_node(self, name: str) -> None:
        node = self.nodes.pop(name, None)
        if node is not None:
            self.tell("DELETED", node)

    @rule()
    def cut_the_watch(self) -> None:
        self.is_cut = True

    @precondition(lambda self: self.is_cut)
    @rule()
    def list_again(self) -> None:
        self.is_cut = False
        self.router.replaced("Node", list(self.nodes.values()), float(self.version))
        self.router.replaced("Pod", list(self.pods.values()), float(self.version))

    @invariant()
    def columns_equal_a_recount(self) -> None:
        assert_recount_agrees(self.cache)

    @invariant()
    def the_cache_shows_the_truth_while_the_watch_stands(self) -> None:
        if not self.is_cut:
            bound = [PodInfo(pod) for pod in self.pods.values() if isinstance(pod, Pod) and pod.spec.node_name]
            spoilt = [pod for pod in self.pods.values() if isinstance(pod, UnreadablePod) and pod.node_name]
            bound += [make_pod(pod.metadata.name, uid=pod.metadata.uid, node=pod.node_name) for pod in spoilt]
            assert_shows(self.cache, self.nodes.values(), bound)


def _cpu(pod: PodInfo) -> object:
    containers = pod.pod.spec.containers or []
    return (containers[0].resources.requests or {}).get("cpu")


CacheMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestCacheMachine = CacheMachine.TestCase
