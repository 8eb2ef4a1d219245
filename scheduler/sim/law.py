"""The law of the simulated cluster: what the Pods of a node do to it. Pure functions; README.md states them.

CPU, memory and background are shares of a node's capacity, 0 to 1; latency is in milliseconds.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from scheduler.model.arrays import FloatArray
from scheduler.sim.nodes import FRAMEBUFFER_MIB, SimNode
from scheduler.sim.workloads import Behaviour

SERVICE_MS: Final = 8.0
"""Mean time of a request on an idle node, without the way."""
MOST_BUSY: Final = 0.97
"""Where the queueing law is cut off: at 1 it has no finite answer."""
HOT: Final = 0.8
"""CPU use above which a node counts as hot."""
CARD_IN_USE_MIB: Final = 512.0
"""A card with less in use counts as idle: drivers keep some hundreds of MiB."""

_RAMP_S: Final = 2.0
_SYSTEM_MEMORY: Final = 0.08


@dataclass(frozen=True, slots=True)
class Shift:
    """Load on the nodes of a zone that no request shows: from `begins_s` on `extra` more, within two seconds."""

    zone: str
    begins_s: float
    extra: float


@dataclass(frozen=True, slots=True)
class Card:
    """One graphics card."""

    used_mib: float = 0.0
    util_percent: float = 0.0

    @property
    def free_mib(self) -> float:
        return FRAMEBUFFER_MIB - self.used_mib

    @property
    def is_in_use(self) -> bool:
        return self.used_mib > CARD_IN_USE_MIB


def background(node: SimNode, at_s: float, seed: int, shift: Shift | None) -> float:
    """Return what runs on a node beside its Pods: some per cent that swing slowly, and the shift."""
    base = 0.03 + 0.07 * chance(seed, node.name, "base")
    phase = chance(seed, node.name, "phase")
    swing = 0.02 * math.sin(2.0 * math.pi * (at_s / 20.0 + phase))
    moved = 0.0
    if shift is not None and node.zone == shift.zone:
        moved = shift.extra * min(max((at_s - shift.begins_s) / _RAMP_S, 0.0), 1.0)
    return base + swing + moved


def cpu_use(node: SimNode, behind: float, pods: Sequence[Behaviour]) -> float:
    """Return background and true use of the Pods over capacity, at most 1: then all get less than they would use."""
    return min(behind + sum(pod.cpu_cores for pod in pods) / node.cores, 1.0)


def memory_use(node: SimNode, pods: Sequence[Behaviour]) -> float:
    return min(_SYSTEM_MEMORY + sum(pod.memory_bytes for pod in pods) / node.memory_bytes, 1.0)


def waiting_ms(cpu: float) -> float:
    """Return the mean time of a request on a node, queueing included: M/M/1, service time over 1 - use."""
    return SERVICE_MS / (1.0 - min(cpu, MOST_BUSY))


def answered_within(bounds_ms: FloatArray, distance_ms: float, cpu: float) -> FloatArray:
    """Return which share of the requests takes no longer than each bound: the way, then an exponential time."""
    beyond = np.maximum(bounds_ms - distance_ms, 0.0)
    share: FloatArray = -np.expm1(-beyond / waiting_ms(cpu))
    return share


def choose_card(cards: Sequence[Card], framebuffer_mib: float) -> int:
    """Return the fullest card with room, as a node's own allocator would; the emptiest if none has any."""
    fitting = [i for i, card in enumerate(cards) if card.free_mib >= framebuffer_mib]
    if fitting:
        return max(fitting, key=lambda i: (cards[i].used_mib, -i))
    return min(range(len(cards)), key=lambda i: (cards[i].used_mib, i))


def fill(card: Card, pod: Behaviour) -> Card:
    used = min(card.used_mib + pod.framebuffer_mib, FRAMEBUFFER_MIB)
    return Card(used, min(card.util_percent + pod.gpu_util_percent, 100.0))


def fragments_mib(cards: Sequence[Card]) -> float:
    """Return the free framebuffer on cards already in use: what a job that needs a whole card cannot have."""
    return sum(card.free_mib for card in cards if card.is_in_use)


def chance(seed: int, *words: object) -> float:
    """Return a number in [0, 1) that depends on the seed and the words alone."""
    text = "\0".join([str(seed), *map(str, words)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest()) / 2.0**56
