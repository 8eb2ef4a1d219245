"""A test of rules as data: what a test file says once it has been read and checked."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.evaluator.values import Labels
from scheduler.model.objects import Node
from scheduler.model.pods import PodInfo
from scheduler.model.workloads import Namespace


@dataclass(frozen=True, slots=True)
class InputSeries:
    """`samples` are (seconds since the start of the test, value), rising in time."""

    labels: Labels
    samples: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class PlacedPod:
    """A Pod that is on a node from `placed_s` on, until `gone_s`, in seconds since the start."""

    pod: PodInfo
    placed_s: float
    gone_s: float


@dataclass(frozen=True, slots=True)
class NodeExpectation:
    """What a rule is expected to say of one node; None: not asked."""

    where: str
    node: str
    is_refused: bool | None = None
    is_missing: bool | None = None
    score: float | None = None
    value: float | None = None


@dataclass(frozen=True, slots=True)
class RuleExpectation:
    """What is expected of one rule; None: not asked. `acts`: it concerns the Pod, and does not only watch it."""

    where: str
    rule: str
    nodes: tuple[NodeExpectation, ...] = ()
    concerns: bool | None = None
    acts: bool | None = None
    weight: float | None = None


@dataclass(frozen=True, slots=True)
class RuleTestMoment:
    """A Pod looked at, so many seconds after the start."""

    where: str
    at_s: float
    pod: PodInfo
    expected: tuple[RuleExpectation, ...]


@dataclass(frozen=True, slots=True)
class RuleTest:
    """One test; its moments rise in time."""

    where: str
    name: str
    nodes: tuple[Node, ...]
    pods: tuple[PlacedPod, ...]
    series: tuple[InputSeries, ...]
    moments: tuple[RuleTestMoment, ...]
    namespaces: tuple[Namespace, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleTestFile:
    """`rule_files` are paths relative to the folder of the test file."""

    path: str
    rule_files: tuple[str, ...]
    tests: tuple[RuleTest, ...]
