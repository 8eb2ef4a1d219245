"""Cache: nodes and the Pods of all schedulers on them, as the watch shows them and as we have decided.

A Pod is Initial -> Assumed -> Added -> Deleted, by UID. `assume` counts it on its node before the API server
knows; the watch confirms that, `forget` takes it back, and nothing else does: assumptions never expire.

Source: kube-scheduler v1.37 backend/cache/cache.go (behaviour).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.cluster.assumed import AssumedObjects
from scheduler.cluster.bad_input import BadInput, BadReason, unheard
from scheduler.cluster.changes import bound_to
from scheduler.cluster.nominator import Nominator
from scheduler.errors import CacheCorruptedError, InvalidObjectError
from scheduler.model.catalog import CatalogObject
from scheduler.model.identity import NodeChanges, NodeIdentity, NodeNames
from scheduler.model.objects import Node, Pod
from scheduler.model.pods import PodInfo
from scheduler.model.selector_sizes import affinity_size
from scheduler.model.signals import SignalTable
from scheduler.model.snapshot import Snapshot
from scheduler.model.state import ClusterState, PodListener
from scheduler.model.unsupported import is_vast

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CachedPod:
    """A Pod on a row. `problem` says what of it cannot be read: that does not count, all else does."""

    pod: PodInfo
    node_name: str
    row: int
    is_assumed: bool = False
    problem: str = ""


class Cache:
    """The one owner of the ClusterState; all changes go through here.

    What cannot be read stands in `unreadable_nodes` (name -> problem), `unreadable_pods` (UID -> problem) and
    `unreadable_objects` (kind -> (namespace, name) -> problem). `bad_input` is told of each.
    """

    def __init__(self, indexes: Sequence[PodListener] = (), bad_input: BadInput | None = None) -> None:
        self.bad_input = bad_input or BadInput(time.monotonic, unheard)
        self.state = ClusterState(indexes=indexes)
        self.nominator = Nominator(self.state)
        self.assumed = AssumedObjects(self.state)
        self.unreadable_nodes: dict[str, str] = {}
        self.unreadable_pods: dict[str, str] = {}
        self.unreadable_objects: dict[str, dict[tuple[str, str], str]] = {}
        self._pods: dict[str, CachedPod] = {}
        self._n_assumed = 0
        # Nodes that have come, gone or changed their names since `name_changes`, and what that has told so far.
        self._renamed: set[str] = set()
        self._known_names: dict[str, None] = {}
        self._names_generation = 0

    # -- nodes ----------------------------------------------------------------------------------------------

    def node(self, name: str) -> Node | None:
        row = self.state.nodes.row_of(name)
        return None if row is None else self.state.nodes.objects[row]

    def nodes(self) -> list[Node]:
        return [node for node in self.state.nodes.objects if node is not None]

    def set_node(self, node: Node) -> Node | None:
        """Add or replace a node; return the one before.

        One with an impossible quantity is set aside: it and what stood there before take no Pods.
        """
        name = node.metadata.name
        old = self.node(name)
        if old is not None and is_same_version(old, node):
            return old
        told = self._told_of(name)
        try:
            self.state.set_node(node)
        except InvalidObjectError as error:
            return self.set_node_aside(name, BadReason.QUANTITY, str(error))
        except Exception:
            self._renamed.add(name)
            raise
        for reason, what in self._told_of(name):
            if (reason, what) not in told:
                self.bad_input.note("Node", name, reason, what)
        self.unreadable_nodes.pop(name, None)
        if old is None or NodeNames.of(old) != NodeNames.of(node):
            self._renamed.add(name)
        return old

    def _told_of(self, name: str) -> list[tuple[BadReason, str]]:
        """Return what of a node that can be read does not count as it stands."""
        table = self.state.nodes
        figures, cut = table.unread_figures.get(name), table.cut.get(name)
        found = [] if figures is None else [(BadReason.QUANTITY, f"counts with what it advertises: {figures}")]
        return found if cut is None else [*found, (BadReason.QUANTITY, cut)]

    def set_node_aside(self, name: str, reason: BadReason, problem: str, error: Exception | None = None) -> Node | None:
        """Take a node that cannot be read out of scheduling; return the one before."""
        text = f"cannot be read and takes no Pods until it can: {problem}"
        self.bad_input.note("Node", name, reason, text, error)
        old = self._drop_node(name)
        self.unreadable_nodes[name] = problem
        return old

    def remove_node(self, name: str) -> Node | None:
        """Remove a node; Pods bound to its name stay counted. Return it if it was known."""
        self.unreadable_nodes.pop(name, None)
        return self._drop_node(name)

    def _drop_node(self, name: str) -> Node | None:
        old = self.node(name)
        if old is not None:
            self.state.remove_node(name)
            self._renamed.add(name)
        return old

    def name_changes(self) -> NodeChanges | None:
        """Return by which names nodes are known, as far as that has changed since the last call, else None."""
        if not self._renamed and self._names_generation:
            return None
        self._names_generation += 1
        renamed = [(name, self.node(name)) for name in sorted(self._renamed)]
        self._renamed.clear()
        gone = tuple(name for name, node in renamed if node is None)
        named = tuple(NodeNames.of(node) for _, node in renamed if node is not None)
        for name in gone:
            self._known_names.pop(name, None)
        self._known_names.update((node.name, None) for node in named)
        return NodeChanges(self._names_generation, named, gone)

    def identity(self) -> NodeIdentity:
        """Return the names of the nodes that `name_changes` has told of, in order, without aliases."""
        return NodeIdentity(self._names_generation, tuple(sorted(self._known_names)))

    # -- Pods -----------------------------------------------------------------------------------------------

    def get(self, uid: str) -> CachedPod | None:
        return self._pods.get(uid)

    def pods(self) -> list[CachedPod]:
        return list(self._pods.values())

    def is_placed(self, uid: str) -> bool:
        """Return whether a Pod is assumed or bound."""
        return uid in self._pods

    def assume(self, pod: PodInfo, node_name: str) -> None:
        """Count a pending Pod on a node from now on; it is no longer nominated.

        Raises
        ------
        InvalidObjectError
            Its usage cannot be read; nothing has changed.
        CacheCorruptedError
            It is on a node already.
        """
        if pod.uid in self._pods:
            raise CacheCorruptedError(f"Pod {pod} is assumed on {node_name} but is on {self._pods[pod.uid].node_name}")
        if pod.usage.problem:
            raise InvalidObjectError(pod.usage.problem)
        self.nominator.remove(pod.uid)
        self._put(pod, node_name, is_assumed=True)

    def forget(self, uid: str) -> PodInfo | None:
        """Take back `assume`; return the Pod as it would have been bound, None if it is not assumed any more."""
        known = self._pods.get(uid)
        if known is None or not known.is_assumed:
            return None
        self._take(known)
        return bound_to(known.pod, known.node_name)

    def add_pod(self, pod: PodInfo, problem: str = "") -> bool:
        """Take in a bound Pod: a new one, the confirmation of an assumed one or an update.

        Return False for a version that is known. `problem` says what of the Pod could not be read. It counts with what
        could: nobody may close a node by binding there what cannot be read.

        Raises
        ------
        CacheCorruptedError
            A confirmed Pod has changed its node, which no API server lets pass.
        """
        known = self._pods.get(pod.uid)
        node_name = pod.pod.spec.node_name
        if known is None:
            self._note(pod)
            self._put(pod, node_name, problem=problem)
            return True
        if not known.is_assumed and is_same_version(known.pod.pod, pod.pod):
            return False
        is_alike = pod.inherit(known.pod) and not (problem or known.problem) and _occupies_the_same(known.pod, pod)
        if known.is_assumed:
            if known.node_name != node_name:
                _log.warning("Pod %s was assumed on %s but is bound to %s", pod, known.node_name, node_name)
        elif known.node_name != node_name:
            raise CacheCorruptedError(f"Pod {pod} is on {known.node_name}, but an update shows it on {node_name}")
        self._note(pod)
        if is_alike and known.node_name == node_name:
            self._swap(known, pod)
            return True
        self._take(known, keep_row=known.node_name == node_name)
        self._put(pod, node_name, problem=problem)
        return True

    def remove_pod(self, uid: str) -> CachedPod | None:
        """Remove a Pod, assumed or bound; return it if it was known."""
        known = self._pods.get(uid)
        if known is not None:
            self._take(known)
        return known

    def _note(self, pod: PodInfo) -> None:
        """Tell which values of a bound Pod do not count."""
        if pod.usage.problem:
            text = f"counts without what cannot be read: {pod.usage.problem}"
            self.bad_input.note("Pod", pod.key, BadReason.QUANTITY, text)
        if pod.unread_times:
            text = f"counts without what is no time: {', '.join(pod.unread_times)}"
            self.bad_input.note("Pod", pod.key, BadReason.TIME, text)
        size = affinity_size(pod.pod)
        if is_vast(size):
            found = f"got {size.n_terms:,} terms with {size.n_words:,} labels, requirements, values and namespaces"
            text = f"counts without its terms about other Pods: spec.affinity: {found}"
            self.bad_input.note("Pod", pod.key, BadReason.SIZE, text)

    def _put(self, pod: PodInfo, node_name: str, *, is_assumed: bool = False, problem: str = "") -> None:
        problem = problem or pod.usage.problem
        row = self.state.nodes.ensure_row(node_name)
        try:
            self.state.place(pod, row)
        except Exception:
            self.state.nodes.release_row(row)
            raise
        if problem:
            self.unreadable_pods[pod.uid] = problem
        self._pods[pod.uid] = CachedPod(pod, node_name, row, is_assumed, problem)
        self._n_assumed += is_assumed

    def _take(self, known: CachedPod, *, keep_row: bool = False) -> None:
        nodes, uid, row = self.state.nodes, known.pod.uid, known.row
        if nodes.row_of(known.node_name) != row:
            raise CacheCorruptedError(f"Pod {known.pod} is on row {row}, which is not that of {known.node_name}")
        self._check_on_row(known)
        self.unreadable_pods.pop(uid, None)
        try:
            self.state.displace(known.pod, row)
        finally:
            del self._pods[uid]
            self._n_assumed -= known.is_assumed
            if not keep_row:
                nodes.release_row(row)

    def _swap(self, known: CachedPod, pod: PodInfo) -> None:
        """Replace or confirm a Pod that occupies what it did."""
        self._check_on_row(known)
        self.state.renew(pod, known.row)
        self._pods[pod.uid] = CachedPod(pod, known.node_name, known.row)
        self._n_assumed -= known.is_assumed

    def _check_on_row(self, known: CachedPod) -> None:
        if known.pod.uid not in self.state.pods.get(known.row, {}):
            raise CacheCorruptedError(f"Pod {known.pod} was placed on {known.node_name}, whose row lacks it")

    # -- what others take -----------------------------------------------------------------------------------

    def snapshot(self, signals: SignalTable, now_s: float, waited_s: float = 0.0) -> Snapshot:
        """Return the world as it is now, valid until the next change; `waited_s` is as in Snapshot."""
        return Snapshot(self.state, signals, now_s, waited_s=waited_s)

    def counts(self) -> dict[str, int]:
        """Return the sizes by the value of `type` in `scheduler_cache_size`."""
        return {"nodes": self.state.nodes.n_alive, "pods": len(self._pods), "assumed_pods": self._n_assumed}


def is_same_version(old: Node | Pod | CatalogObject, new: Node | Pod | CatalogObject) -> bool:
    """Return whether an update brings nothing: kubernetes#96071."""
    before, after = old.metadata, new.metadata
    return before.resource_version != "" and (before.uid, before.resource_version) == (
        after.uid,
        after.resource_version,
    )


def _occupies_the_same(old: PodInfo, new: PodInfo) -> bool:
    """Return whether two versions of one spec count alike for everyone."""
    before, after = old.pod, new.pod
    return (
        old.usage == new.usage
        and old.labels == new.labels
        and before.metadata.deletion_timestamp == after.metadata.deletion_timestamp
        and before.status.start_time == after.status.start_time
    )
