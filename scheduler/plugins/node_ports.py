"""NodePorts: no two Pods of a node may hold the same host port."""

from __future__ import annotations

import math
from collections.abc import Container, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from scheduler.framework.events import Action, ClusterEvent, EventInterest, QueueingHint, Resource
from scheduler.framework.index import Index
from scheduler.framework.plugin import FilterPlugin, FreedBy, PreFilterPlugin, Tally
from scheduler.framework.status import SKIP, Code, PreFilterResult, Rejection, Status
from scheduler.model.arrays import IntArray, Rows
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot

REASON = "node(s) didn't have free ports for the requested pod ports"

EVERY_ADDRESS = "0.0.0.0"
"""Conflicts with every address; `::` is an address like any other, as in kube-scheduler."""

K = TypeVar("K", bound=Hashable)

Port = tuple[str, str, int]
"""(protocol, host IP, host port)."""

_NOWHERE: IntArray = np.zeros(0, dtype=np.int64)


@dataclass(slots=True)
class _PortHolders:
    """Who holds one (protocol, port): Pods by host address and row; `rows` keeps answers until a change.

    `of_priority` holds the same by priority and host address. `n_shared` is on how many rows, address by address, two
    Pods or more hold it.
    """

    n_pods: dict[str, dict[int, int]] = field(default_factory=dict)
    of_priority: dict[tuple[int, str], dict[int, int]] = field(default_factory=dict)
    rows: dict[str, IntArray] = field(default_factory=dict)
    n_shared: int = 0

    def against(self, address: str) -> Iterable[str]:
        """Return the addresses at which a holder conflicts with one."""
        return self.n_pods if address == EVERY_ADDRESS else (address, EVERY_ADDRESS)


class HostPorts(Index):
    """Host ports in use, counted in Pods.

    A deliberate difference: kube-scheduler keeps a set, so that of two Pods which share a port (they came
    past the scheduler) the first to go frees it; here it stays taken until the last one goes. Only in the trials of
    a preemption it is as there, so that the same Pods are its victims.
    """

    def __init__(self) -> None:
        self._ports: dict[tuple[str, int], _PortHolders] = {}

    def add_pod(self, pod: PodInfo, row: int) -> None:
        for protocol, address, number in pod.host_ports:
            port = self._ports.setdefault((protocol, number), _PortHolders())
            holders = port.n_pods.setdefault(address, {})
            holders[row] = holders.get(row, 0) + 1
            alike = port.of_priority.setdefault((pod.priority, address), {})
            alike[row] = alike.get(row, 0) + 1
            port.n_shared += holders[row] == 2
            port.rows.clear()

    def remove_pod(self, pod: PodInfo, row: int) -> None:
        for protocol, address, number in pod.host_ports:
            port = self._ports[protocol, number]
            port.n_shared -= port.n_pods[address][row] == 2
            port.rows.clear()
            _take(port.n_pods, address, row)
            _take(port.of_priority, (pod.priority, address), row)
            if not port.n_pods:
                del self._ports[protocol, number]

    def conflicting_rows(self, protocol: str, address: str, number: int) -> IntArray:
        """Return int64 rows of the nodes where this port is taken, ascending."""
        port = self._ports.get((protocol, number))
        if port is None:
            return _NOWHERE
        rows = port.rows.get(address)
        if rows is None:
            found = {row for one in port.against(address) for row in port.n_pods.get(one, ())}
            rows = port.rows[address] = np.array(sorted(found), dtype=np.int64)
        return rows

    def is_held(self, wanted: Port, row: int, freed: Container[Port]) -> bool:
        """Return whether a port conflicts with one in use on a row, those in `freed` left out."""
        protocol, address, number = wanted
        port = self._ports[protocol, number]
        return any(
            row in port.n_pods.get(one, ()) and (protocol, one, number) not in freed for one in port.against(address)
        )

    def is_shared(self, protocol: str, number: int) -> bool:
        """Return whether two Pods of one node hold a port at one address."""
        port = self._ports.get((protocol, number))
        return port is not None and port.n_shared > 0

    def n_conflicts(self, wanted: Sequence[Port], n_rows: int, below: float = math.inf) -> IntArray:
        """Return int64 (n_rows,): the ports held on each row that conflict with the wanted ones, Pod by Pod.

        Only of Pods whose priority is lower than `below`.
        """
        found = np.zeros(n_rows, dtype=np.int64)
        for protocol, address, number in wanted:
            port = self._ports.get((protocol, number), _PortHolders())
            against = set(port.against(address))
            for (priority, one), holders in port.of_priority.items():
                if priority < below and one in against:
                    rows = np.fromiter(holders.keys(), dtype=np.int64, count=len(holders))
                    found[rows] += np.fromiter(holders.values(), dtype=np.int64, count=len(holders))
        return found


@dataclass(frozen=True, slots=True)
class _PortState:
    """What has changed on trial: ports, with their rows, that Pods which left have freed.

    `n_conflicts`, int64 (n_rows,), is what is left of HostPorts.n_conflicts; None: what the index says.
    """

    freed: frozenset[tuple[int, Port]] = frozenset()
    n_conflicts: IntArray | None = None


class NodePorts(PreFilterPlugin, FilterPlugin):
    """Refuses nodes on which a host port that the Pod wants is taken.

    Source: kube-scheduler v1.37 nodeports/node_ports.go and HostPortInfo of framework/types.go (behaviour).
    """

    freed_by = FreedBy.ITS_ROW
    indexes = (HostPorts,)

    def prefilter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status:
        return PreFilterResult(_PortState()) if pod.host_ports else SKIP

    def filter(self, state: _PortState, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        if state.n_conflicts is not None:
            return (Rejection(state.n_conflicts[rows] > 0, Code.UNSCHEDULABLE, REASON),)
        index = snapshot.index(HostPorts)
        taken = [(port, found) for port in pod.host_ports if len(found := index.conflicting_rows(*port))]
        if not taken:
            return ()
        mask = np.zeros(snapshot.nodes.n_rows, dtype=np.bool_)
        for _, found in taken:
            mask[found] = True
        for row in {row for row, _ in state.freed}:
            freed = {port for there, port in state.freed if there == row}
            mask[row] = any(row in found and index.is_held(port, row, freed) for port, found in taken)
        return (Rejection(mask[rows], Code.UNSCHEDULABLE, REASON),)

    def add_pod(self, state: _PortState, pod: PodInfo, row: int, snapshot: Snapshot) -> _PortState:
        ports = {(row, port) for port in pod.host_ports}
        return replace(state, freed=state.freed - ports) if ports else state

    def remove_pod(self, state: _PortState, pod: PodInfo, row: int, snapshot: Snapshot) -> _PortState:
        """Note its ports as free even where another Pod shares them, as in kube-scheduler's trials."""
        ports = {(row, port) for port in pod.host_ports}
        return replace(state, freed=state.freed | ports) if ports else state

    def tally(self, state: _PortState, pod: PodInfo, snapshot: Snapshot, pods: Sequence[PodInfo]) -> Tally | None:
        """Count ports in conflict; None where Pods share one, which `remove_pod` frees with the first of them."""
        index, wanted = snapshot.index(HostPorts), pod.host_ports
        if any(index.is_shared(protocol, number) for protocol, _, number in wanted):
            return None
        held = index.n_conflicts(wanted, snapshot.nodes.n_rows)
        below = index.n_conflicts(wanted, snapshot.nodes.n_rows, pod.priority)
        each = np.array([[_n_conflicts(wanted, one) for one in pods]], dtype=np.int64)
        return Tally(each, below[None], lambda gone: _PortState(n_conflicts=held - gone[0]))

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


def _take(holders: dict[K, dict[int, int]], key: K, row: int) -> None:
    """Count one Pod less; no entry is empty."""
    here = holders[key]
    here[row] -= 1
    if not here[row]:
        del here[row]
    if not here:
        del holders[key]


def _conflict(wanted: Iterable[Port], held: Sequence[Port]) -> bool:
    return any(_is_conflict(one, other) for one in wanted for other in held)


def _n_conflicts(wanted: Sequence[Port], pod: PodInfo) -> int:
    held = pod.host_ports
    return sum(_is_conflict(one, other) for one in wanted for other in held) if held else 0


def _is_conflict(one: Port, other: Port) -> bool:
    (protocol, address, number), (its_protocol, its_address, its_number) = one, other
    is_same_address = address == its_address or EVERY_ADDRESS in (address, its_address)
    return protocol == its_protocol and number == its_number and is_same_address
