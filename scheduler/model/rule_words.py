"""The words that a rule file may choose from, as data."""

from __future__ import annotations

import enum


class Unit(enum.StrEnum):
    """The unit of a signal's values; a rule's numbers may carry a suffix that is converted to it."""

    NONE = "none"
    SECONDS = "s"
    MILLISECONDS = "ms"
    BYTES = "bytes"
    RATIO = "ratio"
    PERCENT = "percent"
    WATT = "watt"
    CELSIUS = "celsius"


class ByKind(enum.StrEnum):
    """What one series of a signal stands for."""

    NODE = "node"
    LABEL = "label"
    CLUSTER = "cluster"
    GPU = "gpu"
    """A node and one of its cards."""
    WORKLOAD = "workload"
    """A node and a workload on it; a Pod reads the values of its own workload."""
    PAIR = "pair"
    """Two domains of nodes, from and to; a Pod reads what lies between a node and the Pods that it calls."""

    @property
    def is_keyed(self) -> bool:
        """Whether a node has other values for other Pods."""
        return self in (ByKind.GPU, ByKind.WORKLOAD, ByKind.PAIR)


class BuiltInKind(enum.StrEnum):
    """What a signal that needs no PromQL counts or reads from the snapshot."""

    COUNT = "count"
    REQUESTED = "requested"
    ALLOCATABLE = "allocatable"
    PODS = "pods"


class EffectKind(enum.StrEnum):
    """How much a placed Pod adds to a signal until the samples show it."""

    REQUEST = "request"
    CONSTANT = "constant"
    LEARNED = "learned"


class Mode(enum.StrEnum):
    """Whether a rule acts."""

    ENFORCE = "enforce"
    SHADOW = "shadow"
    """Computed and recorded, never acting."""


class Dialect(enum.StrEnum):
    """The query language of a file's expressions."""

    PROMETHEUS = "prometheus"
    METRICSQL = "metricsql"


class Reduce(enum.StrEnum):
    """How several series of one node become one value."""

    MAX = "max"
    MIN = "min"
    AVG = "avg"
    SUM = "sum"


class FilterMissing(enum.StrEnum):
    """What a filter does with a node that has no usable sample."""

    ALLOW = "allow"
    REJECT = "reject"


class ScoreMissing(enum.StrEnum):
    """What a score gives to a node that has no usable sample."""

    NEUTRAL = "neutral"
    BEST = "best"
    WORST = "worst"
