"""Signals as data: what a file declares of something measured, and how far apart its samples come."""

from __future__ import annotations

from dataclasses import dataclass, replace

from scheduler.model.rule_words import BuiltInKind, ByKind, Dialect, EffectKind, Reduce, Unit

FRESH_AGES = 2.0
MAX_AGES = 4.0
"""The age up to which samples are fresh, and `max_age` where the file has none, each as a multiple of the pace."""


@dataclass(frozen=True, slots=True)
class WorkloadKey:
    """The series labels that name a workload, and its namespace (empty: workloads of all namespaces are one)."""

    label: str
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class PairKey:
    """The series labels that name the two domains of a pair; domains are values of a node label (`Signal.label`)."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A signal that is read from the snapshot: true at its moment, known of every node.

    resource
        `requested` and `allocatable`: the resource. With the unit `ratio` or `percent`, `requested` is a share of
        what is allocatable, and `pods` one of the Pods that a node takes; else cpu is in cores, the rest in whole
        units.
    same
        `count`: Pods whose values of these labels are those of the Pod at hand, in order; no Pods if it lacks one.
    window_s
        `count`: Pods that were placed within so many seconds count though they have gone; 0: only who is there.
    all_namespaces
        `count`: Pods of other namespaces count too.
    """

    kind: BuiltInKind
    resource: str = ""
    same: tuple[str, ...] = ()
    window_s: float = 0.0
    all_namespaces: bool = False

    @property
    def text(self) -> str:
        """What it reads, in a few words, where others have their PromQL."""
        words = [str(self.kind), self.resource] if self.resource else [str(self.kind)]
        words += [f"same {', '.join(self.same)}"] if self.same else []
        words += [f"window {self.window_s:g}s"] if self.window_s else []
        words += ["namespaces all"] if self.all_namespaces else []
        return " ".join(words)


@dataclass(frozen=True, slots=True)
class Effect:
    """What a placed Pod adds to a signal until its samples show it.

    resource
        The amount is one of this resource, and what it adds is its share of the node's allocatable, in the signal's
        unit; empty: the amount is in the signal's unit itself.
    amount
        Of a constant effect, whole: millicores for cpu, units of other resources, else parts of the signal's unit, of
        which `effect_scale` are one.
    without_request
        What a Pod adds that requests nothing of the resource, whole, in its units; 0: of CPU and memory what
        kube-scheduler's scores take for a container without a request, nothing of others.
    """

    kind: EffectKind
    resource: str = ""
    amount: float = 0.0
    without_request: float = 0.0


def effect_scale(unit: Unit) -> int:
    """Return how finely an effect in a signal's own unit is counted: parts of one unit."""
    return 1 if unit is Unit.BYTES else 1_000_000


@dataclass(frozen=True, slots=True)
class Signal:
    """One thing measured, with `expr`, or read from the snapshot, as `built_in` says.

    `label` is the node label that joins series and nodes, where domains or pairs of them are measured; else empty.
    `spacing_s` is how far apart its samples come, as measured, 0 while that is not known: see `paced`.
    `range` bounds valid samples; what lies outside is dropped and counted. `unit` is that of the values.
    `window_s` is the widest range selector of `expr`, 0 if there is none, or what the file says.
    `lag` is PromQL for how far behind the samples are, in seconds, by the same keys; empty where timestamps
    say it.
    `smoothing_s` is the half-life of the weight of past samples, 0 without smoothing.
    `server` names the Prometheus to be asked, empty for the one without a name.
    `node_label` is the one series label that names the node; empty: the known ones are tried in turn.
    """

    name: str
    expr: str
    by: ByKind = ByKind.NODE
    label: str = ""
    unit: Unit = Unit.NONE
    interval_s: float = 15.0
    max_age_s: float = 60.0
    is_max_age_written: bool = True
    spacing_s: float = 0.0
    range: tuple[float, float] | None = None
    reduce: Reduce | None = None
    window_s: float = 0.0
    built_in: BuiltIn | None = None
    workload: WorkloadKey | None = None
    pair: PairKey | None = None
    inflight: Effect | None = None
    lag: str = ""
    smoothing_s: float = 0.0
    server: str = ""
    node_label: str = ""
    dialect: Dialect = Dialect.PROMETHEUS
    where: str = ""

    @property
    def pace_s(self) -> float:
        """How often new samples can be had, in seconds: the larger of interval and spacing."""
        return max(self.interval_s, self.spacing_s)

    @property
    def fresh_s(self) -> float:
        """The age in seconds up to which a sample is fresh: twice the pace, and never beyond `max_age_s`."""
        return min(FRESH_AGES * self.pace_s, self.max_age_s)

    @property
    def shown_after_s(self) -> float:
        """How long a Pod has run when the samples show it whole, in seconds.

        `window_s`, and as much longer as nodes are sampled less often than they are asked for: the newest sample of all
        nodes, by which ages go, may be so much newer than that of a single one.
        """
        return self.window_s + self.pace_s - self.interval_s

    def paced(self, spacing_s: float) -> Signal:
        """Return the signal as it is where samples come so far apart; without a written `max_age` that goes along."""
        if spacing_s == self.spacing_s:
            return self
        max_age_s = self.max_age_s if self.is_max_age_written else MAX_AGES * max(self.interval_s, spacing_s)
        return replace(self, spacing_s=spacing_s, max_age_s=max_age_s)

    @property
    def source(self) -> str:
        """Where its values come from: its PromQL, or what it reads of the snapshot."""
        return self.expr if self.built_in is None else self.built_in.text

    @property
    def depends_on_pod(self) -> bool:
        """Whether Pods may read different values of it on one node."""
        if self.built_in is not None:
            return self.built_in.kind is BuiltInKind.COUNT
        return self.by.is_keyed
