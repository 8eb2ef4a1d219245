"""NodePorts: no two Pods of a node may hold the same host port."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from scheduler.framework.events import Action, ClusterEvent, EventInterest, QueueingHint, Resource
from scheduler.framework.index import Index
from scheduler.framework.plugin import FilterPlugin, PreFilterPlugin
from scheduler.framework.status import SKIP, Code, PreFilterResult, Rejection, Status
from scheduler.model.arrays import IntArray, Rows
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot

REASON = "node(s) didn't have free ports for the requested pod ports"

EVERY_ADDRESS = "0.0.0.0"
"""Conflicts with every address; `::` is an address like any other, as in kube-scheduler."""

_NOWHERE: IntArray = np.zeros(0, dtype=np.int64)


@dataclass(slots=True)
class _Port:
    """Who holds one (protocol, port): Pods by host address and row; `rows` keeps answers until a change."""

    n_pods: dict[str, dict[int, int]] = field(default_factory=dict)
    rows: dict[str, IntArray] = field(default_factory=dict)


class HostPorts(Index):
    """Host ports in use, counted in Pods.

    A deliberate difference: kube-scheduler keeps a set, so that of two Pods which share a port (they came
    past the scheduler) the first to go frees it; here it stays taken until the last one goes.
    """

    def __init__(self) -> None:
        self._ports: dict[tuple[str, int], _Port] = {}

    def add_pod(self, pod: PodInfo, row: int) -> None:
        for protocol, address, number in pod.host_ports:
            port = self._ports.setdefault((protocol, number), _Port())
            holders = port.n_pods.setdefault(address, {})
            holders[row] = holders.get(row, 0) + 1
            port.rows.clear()

    def remove_pod(self, pod: PodInfo, row: int) -> None:
        for protocol, address, number in pod.host_ports:
            port = self._ports[protocol, number]
            holders = port.n_pods[address]
            holders[row] -= 1
            port.rows.clear()
            if holders[row] == 0:
                del holders[row]
            if not holders:
                del port.n_pods[address]
            if not port.n_pods:
                del self._ports[protocol, number]

    def conflicting_rows(self, protocol: str, address: str, number: int) -> IntArray:
        """Return int64 rows of the nodes where this port cannot be had, ascending."""
        port = self._ports.get((protocol, number))
        if port is None:
            return _NOWHERE
        rows = port.rows.get(address)
        if rows is None:
            addresses = port.n_pods if address == EVERY_ADDRESS else (address, EVERY_ADDRESS)
            found = {row for one in addresses for row in port.n_pods.get(one, ())}
            rows = port.rows[address] = np.array(sorted(found), dtype=np.int64)
        return rows


class NodePorts(PreFilterPlugin, FilterPlugin):
    """Refuses nodes on which a host port that the Pod wants is taken.

    Source: kube-scheduler v1.37 nodeports/node_ports.go and HostPortInfo of framework/types.go (behaviour).
    """

    indexes = (HostPorts,)

    def prefilter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status:
        return PreFilterResult() if pod.host_ports else SKIP

    def filter(self, state: object, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        index = snapshot.index(HostPorts)
        taken = [found for port in pod.host_ports if len(found := index.conflicting_rows(*port))]
        if not taken:
            return ()
        mask = np.zeros(snapshot.nodes.n_rows, dtype=np.bool_)
        for found in taken:
            mask[found] = True
        return (Rejection(mask[rows], Code.UNSCHEDULABLE, REASON),)

    def events(self) -> Sequence[EventInterest]:
        return (
            EventInterest(Resource.ASSIGNED_POD, Action.DELETE, _port_came_free),
            EventInterest(Resource.NODE, Action.ADD),
        )


def _port_came_free(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    gone = event.old
    if isinstance(gone, PodInfo) and gone.pod.spec.node_name and _conflict(pod.host_ports, gone.host_ports):
        return QueueingHint.QUEUE
    return QueueingHint.SKIP


def _conflict(wanted: Iterable[tuple[str, str, int]], held: Sequence[tuple[str, str, int]]) -> bool:
    return any(
        protocol == other_protocol and number == other and (address == at or EVERY_ADDRESS in (address, at))
        for protocol, address, number in wanted
        for other_protocol, at, other in held
    )
