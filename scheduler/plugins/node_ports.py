"""NodePorts: no two Pods of a node may hold the same host port."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from scheduler.framework.events import Action, ClusterEvent, EventInterest, QueueingHint, Resource
from scheduler.framework.index import Index
from scheduler.framework.plugin import FilterPlugin, FreedBy, PreFilterPlugin
from scheduler.framework.status import SKIP, Code, PreFilterResult, Rejection, Status
from scheduler.model.arrays import IntArray, Rows
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot

REASON = "node(s) didn't have free ports for the requested pod ports"

EVERY_ADDRESS = "0.0.0.0"
"""Conflicts with every address; `::` is an address like any other, as in kube-scheduler."""

Port = tuple[str, str, int]
"""(protocol, host IP, host port)."""

Freed = frozenset[tuple[int, Port]]

_NOTHING_FREED: Freed = frozenset()
_NOWHERE: IntArray = np.zeros(0, dtype=np.int64)


@dataclass(slots=True)
class _Port:
    """Who holds one (protocol, port): Pods by host address and row; `rows` keeps answers until a change."""

    n_pods: dict[str, dict[int, int]] = field(default_factory=dict)
    rows: dict[str, IntArray] = field(default_factory=dict)


class HostPorts(Index):
    """Host ports in use, counted in Pods.

    A deliberate difference: kube-scheduler keeps a set, so that of two Pods which share a port (they came
    past the scheduler) the first to go frees it; here it stays taken until the last one goes. Only in the trials of
    a preemption it is as there, so that the same Pods are its victims.
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

    def is_held(self, wanted: Port, row: int, freed: Container[Port]) -> bool:
        """Return whether a port conflicts with one in use on a row, those in `freed` left out."""
        protocol, address, number = wanted
        held = self._ports[protocol, number].n_pods
        addresses = held if address == EVERY_ADDRESS else (address, EVERY_ADDRESS)
        return any(row in held.get(one, ()) and (protocol, one, number) not in freed for one in addresses)


class NodePorts(PreFilterPlugin, FilterPlugin):
    """Refuses nodes on which a host port that the Pod wants is taken.

    Source: kube-scheduler v1.37 nodeports/node_ports.go and HostPortInfo of framework/types.go (behaviour).
    """

    freed_by = FreedBy.ITS_ROW
    indexes = (HostPorts,)

    def prefilter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status:
        """Return as the state the ports, with their rows, that Pods which left in a trial have freed."""
        return PreFilterResult(_NOTHING_FREED) if pod.host_ports else SKIP

    def filter(self, state: Freed, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        index = snapshot.index(HostPorts)
        taken = [(port, found) for port in pod.host_ports if len(found := index.conflicting_rows(*port))]
        if not taken:
            return ()
        mask = np.zeros(snapshot.nodes.n_rows, dtype=np.bool_)
        for _, found in taken:
            mask[found] = True
        for row in {row for row, _ in state}:
            freed = {port for there, port in state if there == row}
            mask[row] = any(row in found and index.is_held(port, row, freed) for port, found in taken)
        return (Rejection(mask[rows], Code.UNSCHEDULABLE, REASON),)

    def add_pod(self, state: Freed, pod: PodInfo, row: int, snapshot: Snapshot) -> Freed:
        return state - {(row, port) for port in pod.host_ports}

    def remove_pod(self, state: Freed, pod: PodInfo, row: int, snapshot: Snapshot) -> Freed:
        """Note its ports as free even where another Pod shares them, as in kube-scheduler's trials."""
        return state | {(row, port) for port in pod.host_ports}

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
