"""Signals and rules as data: what `rules/*.yaml` says once it has been read and checked.

A *signal* is something measured with PromQL; a *rule* says what to do with it. Nothing here is optional
in the sense of "fill it in later": the loader (`signals.format`) has resolved every default.
"""

from __future__ import annotations

import enum
import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_WEIGHT = 100.0


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


@dataclass(frozen=True, slots=True)
class Signal:
    """One thing measured.

    `label` is the node label that joins series and nodes for `ByKind.LABEL`, empty otherwise.
    `range` bounds valid samples; what lies outside is dropped and counted. `unit` is that of the values.
    `window_s` is the widest range selector of `expr`, 0 if there is none.
    """

    name: str
    expr: str
    by: ByKind = ByKind.NODE
    label: str = ""
    unit: Unit = Unit.NONE
    interval_s: float = 15.0
    max_age_s: float = 60.0
    range: tuple[float, float] | None = None
    reduce: Reduce | None = None
    window_s: float = 0.0
    where: str = ""

    @property
    def fresh_s(self) -> float:
        """The age in seconds up to which a sample is fresh: two intervals."""
        return 2.0 * self.interval_s


@dataclass(frozen=True, slots=True)
class Match:
    """Which Pods a rule concerns: namespaces (globs, any of them) and labels (all of them equal)."""

    namespaces: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    def covers(self, namespace: str, labels: Mapping[str, str]) -> bool:
        if self.namespaces and not any(fnmatch.fnmatchcase(namespace, glob) for glob in self.namespaces):
            return False
        return all(labels.get(key) == value for key, value in self.labels.items())


@dataclass(frozen=True, slots=True)
class RuleFilter:
    """Limits in the signal's unit; a node outside them is refused.

    `max_clear` and `min_clear` give hysteresis: once refused, a node stays so until its value is at or
    within them; they equal the limit where the file has no `clear`. `valve`: with more than this share
    of the nodes refused the rule only scores; None means that it never opens by itself.
    """

    max: float | None = None
    min: float | None = None
    max_clear: float | None = None
    min_clear: float | None = None
    valve: float | None = None
    missing: FilterMissing = FilterMissing.ALLOW


@dataclass(frozen=True, slots=True)
class Curve:
    """A piecewise linear map: x rising strictly, values beyond the ends take the end's y."""

    xs: tuple[float, ...]
    ys: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class RuleScore:
    """From a value to 0..100 points. `best`/`worst` become a curve of two points when the file is read."""

    curve: Curve
    missing: ScoreMissing = ScoreMissing.NEUTRAL


@dataclass(frozen=True, slots=True)
class WeightSignal:
    """A weight that a cluster-wide signal sets; `missing` holds without a usable sample."""

    signal: str
    curve: Curve
    missing: float


@dataclass(frozen=True, slots=True)
class Rule:
    """What to do with a signal. At least one of `filter` and `score` is set."""

    name: str
    signal: str
    match: Match = Match()
    filter: RuleFilter | None = None
    score: RuleScore | None = None
    weight: float | WeightSignal = 1.0
    where: str = ""


@dataclass(frozen=True, slots=True)
class RuleSet:
    """All signals and rules in force together; `generation` grows by one with each successful load."""

    signals: Mapping[str, Signal] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    generation: int = 0
