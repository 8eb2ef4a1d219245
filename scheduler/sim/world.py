"""The state of one simulated cluster: which Pod runs where, and what the law makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.sim.law import Card, Shift, background, chance, choose_card, cpu_use, fill, memory_use
from scheduler.sim.nodes import DISTANCE_MS, FRAMEBUFFER_MIB, SimNode
from scheduler.sim.workloads import Behaviour


@dataclass(frozen=True, slots=True)
class NodeState:
    """One node at one moment; uses are shares of capacity. `serving` are the Pods that answer requests."""

    node: SimNode
    cpu: float
    memory: float
    distance_ms: float
    cards: tuple[Card, ...]
    n_pods: int
    serving: tuple[tuple[str, float], ...]
    """Name of the Pod and its requests per second."""


@dataclass(slots=True)
class _Running:
    name: str
    node: str
    behaviour: Behaviour
    card: int | None


class SimWorld:
    """Pods on nodes. It knows no clock: `states(at_s)` says how things stand then, seconds after the start."""

    def __init__(self, nodes: Sequence[SimNode], seed: int, shift: Shift | None = None) -> None:
        self.nodes = tuple(nodes)
        self._by_name = {node.name: node for node in nodes}
        self._seed = seed
        self._shift = shift
        self._running: dict[str, _Running] = {}
        self._cards = {node.name: [Card()] * node.cards for node in nodes}

    def start(self, uid: str, name: str, node: str, behaviour: Behaviour) -> None:
        """Let a Pod run on a node; one that needs a card is given one and keeps it."""
        card = None
        if behaviour.framebuffer_mib and self._by_name[node].cards:
            card = choose_card(self._cards[node], behaviour.framebuffer_mib)
        self._running[uid] = _Running(name, node, behaviour, card)
        self._fill_cards(node)

    def stop(self, uid: str) -> None:
        """Take a Pod away; one that does not run is ignored."""
        gone = self._running.pop(uid, None)
        if gone is not None:
            self._fill_cards(gone.node)

    def knows(self, node: str) -> bool:
        return node in self._by_name

    def _fill_cards(self, node: str) -> None:
        cards = [Card()] * self._by_name[node].cards
        for pod in self._running.values():
            if pod.node == node and pod.card is not None:
                cards[pod.card] = fill(cards[pod.card], pod.behaviour)
        self._cards[node] = cards

    def states(self, at_s: float) -> list[NodeState]:
        on: dict[str, list[_Running]] = {node.name: [] for node in self.nodes}
        for pod in self._running.values():
            on[pod.node].append(pod)
        return [self._state(node, on[node.name], at_s) for node in self.nodes]

    def _state(self, node: SimNode, pods: Sequence[_Running], at_s: float) -> NodeState:
        behaviours = [pod.behaviour for pod in pods]
        return NodeState(
            node=node,
            cpu=cpu_use(node, background(node, at_s, self._seed, self._shift), behaviours),
            memory=memory_use(node, behaviours),
            distance_ms=node.distance_ms,
            cards=tuple(self._cards[node.name]),
            n_pods=len(pods),
            serving=tuple((pod.name, pod.behaviour.requests_per_s) for pod in pods if pod.behaviour.requests_per_s),
        )


def noise(states: Sequence[NodeState], at_s: float, seed: int, hold_s: float = 4.0) -> list[NodeState]:
    """Return states of the same shape and range that say nothing about the nodes: drawn anew every `hold_s`.

    What a rule makes of these shows what it gains by being fed with the truth, and not by merely being there.
    """
    moment = int(at_s / hold_s)
    nearest, farthest = min(DISTANCE_MS.values()), max(DISTANCE_MS.values())

    def draw(node: SimNode, *words: object) -> float:
        return chance(seed, "noise", moment, node.name, *words)

    return [
        NodeState(
            node=state.node,
            cpu=draw(state.node, "cpu"),
            memory=draw(state.node, "memory"),
            distance_ms=nearest + (farthest - nearest) * chance(seed, "noise", moment, state.node.zone),
            cards=tuple(
                Card(FRAMEBUFFER_MIB * draw(state.node, "used", i), 100.0 * draw(state.node, "util", i))
                for i in range(len(state.cards))
            ),
            n_pods=state.n_pods,
            serving=state.serving,
        )
        for state in states
    ]
