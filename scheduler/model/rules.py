"""Signals and rules as data: what `rules/*.yaml` says once it has been read and checked.

A *signal* is something measured with PromQL; a *rule* says what to do with it. Nothing here is optional
in the sense of "fill it in later": the loader (`signals.format`) has resolved every default.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from scheduler.model.declared_signals import (
    FRESH_AGES,
    MAX_AGES,
    BuiltIn,
    Effect,
    PairKey,
    Signal,
    WorkloadKey,
    effect_scale,
)
from scheduler.model.labels import requirement_holds
from scheduler.model.pods import PodInfo
from scheduler.model.rule_words import (
    BuiltInKind,
    ByKind,
    Dialect,
    EffectKind,
    FilterMissing,
    Mode,
    Reduce,
    ScoreMissing,
    Unit,
)
from scheduler.model.selectors import SelectorTerm

__all__ = [
    "DEFAULT_MAX_SHARE",
    "FRESH_AGES",
    "MAX_AGES",
    "MAX_WEIGHT",
    "BuiltIn",
    "BuiltInKind",
    "ByKind",
    "Calls",
    "Canary",
    "Curve",
    "Dialect",
    "Effect",
    "EffectKind",
    "FilterMissing",
    "LabelMatch",
    "Match",
    "Mode",
    "PairKey",
    "Reduce",
    "Rule",
    "RuleFilter",
    "RuleScore",
    "RuleSet",
    "ScoreMissing",
    "Signal",
    "Tenant",
    "Unit",
    "WeightSignal",
    "WorkloadKey",
    "effect_scale",
]

NO_LABELS: Mapping[str, str] = MappingProxyType({})
MAX_WEIGHT = 100.0
DEFAULT_MAX_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class Match:
    """Which Pods a rule concerns: namespaces (globs, any of them) and labels (all of them equal).

    expressions, of_namespace
        What the labels of the Pod, and those of its Namespace, must be like, as in label selectors of Kubernetes; all
        of these hold.
    requests
        Names of resources as globs; the Pod requests some of one of them.
    """

    namespaces: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    expressions: tuple[SelectorTerm, ...] = ()
    of_namespace: tuple[SelectorTerm, ...] = ()
    requests: tuple[str, ...] = ()

    @property
    def is_for_all(self) -> bool:
        return not (self.namespaces or self.labels or self.expressions or self.of_namespace or self.requests)

    def covers(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str] = NO_LABELS
    ) -> bool:
        """Whether Pods of these labels may be meant; what they request is asked apart, with `is_requested_by`."""
        if self.namespaces and not any(fnmatch.fnmatchcase(namespace, glob) for glob in self.namespaces):
            return False
        if self.labels and not self.labels.items() <= labels.items():
            return False
        if self.expressions and not all(requirement_holds(one, labels) for one in self.expressions):
            return False
        return not self.of_namespace or all(requirement_holds(one, namespace_labels) for one in self.of_namespace)

    def is_requested_by(self, pod: PodInfo) -> bool:
        if not self.requests:
            return True
        names = [name for name, amount in pod.requests.items() if amount]
        return any(fnmatch.fnmatchcase(name, glob) for name in names for glob in self.requests)


@dataclass(frozen=True, slots=True)
class RuleFilter:
    """Limits in the signal's unit; a node outside them is refused.

    `max_clear` and `min_clear` give hysteresis: once refused, a node stays so until its value is at or
    within them; they equal the limit where the file has no `clear`. `valve`: with more than this share
    of the nodes refused the rule only scores; None means that it never opens by itself. `hold_s`: once a node's
    verdict has changed, it stays for at least so many seconds. `soft_after_s`: for a Pod that has waited so many
    seconds the rule only scores; 0: however long it waits, the rule refuses.
    """

    max: float | None = None
    min: float | None = None
    max_clear: float | None = None
    min_clear: float | None = None
    valve: float | None = None
    missing: FilterMissing = FilterMissing.ALLOW
    hold_s: float = 0.0
    soft_after_s: float = 0.0


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
class LabelMatch:
    """A label of the Pod whose value the node's label must have; a Pod without it may go anywhere."""

    pod_label: str
    node_label: str

    @property
    def text(self) -> str:
        """What it compares, where other rules have their signal's PromQL."""
        return f"Pod label {self.pod_label} = node label {self.node_label}"


@dataclass(frozen=True, slots=True)
class Calls:
    """To which domains a Pod talks: those where certain Pods run, or the one that a label of the Pod names.

    labels, all_namespaces
        Pods with these labels, in the Pod's namespace or in all: each counts once.
    pod_label
        The label of the Pod whose value is the domain; empty where `labels` says it.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    all_namespaces: bool = False
    pod_label: str = ""


@dataclass(frozen=True, slots=True)
class Canary:
    """The Pods for which a rule acts, while it only watches the others: both conditions hold where both are set.

    `percent` picks Pods by a hash of their UID, 0..100; `namespaces` are globs, any of them.
    """

    percent: float = 100.0
    namespaces: tuple[str, ...] = ()

    def takes(self, pod: PodInfo) -> bool:
        return Match(self.namespaces).covers(pod.namespace, {}) and 100.0 * pod.lot < self.percent


@dataclass(frozen=True, slots=True)
class Rule:
    """What to do with a signal; at least one of `filter` and `score` is set, or only `label_match`, without a signal.

    pod_label
        The Pod label that names the Pod's workload, for a signal `by: workload`.
    gpu_resources
        What a Pod asks for where it wants cards, for a signal `by: gpu`: the amounts are summed.
    max_share
        The most that the rule's weight may be of the sum of all weights, above 0 and at most 1.
    max_age_s
        The age at which samples end for this rule, at most the signal's `max_age_s`; 0: as the signal says.
    """

    name: str
    signal: str = ""
    match: Match = Match()
    filter: RuleFilter | None = None
    score: RuleScore | None = None
    weight: float | WeightSignal = 1.0
    label_match: LabelMatch | None = None
    pod_label: str = ""
    calls: Calls | None = None
    gpu_resources: tuple[str, ...] = ()
    mode: Mode = Mode.ENFORCE
    canary: Canary | None = None
    max_share: float = DEFAULT_MAX_SHARE
    max_age_s: float = 0.0
    where: str = ""

    @property
    def refuses(self) -> bool:
        """Whether it may refuse nodes."""
        return self.filter is not None or self.label_match is not None

    @property
    def is_on_trial(self) -> bool:
        """Whether it only watches all Pods, or some."""
        return self.mode is Mode.SHADOW or self.canary is not None

    def acts_on(self, pod: PodInfo) -> bool:
        """Whether the rule acts on a Pod that it covers; if not, it only watches."""
        return self.mode is Mode.ENFORCE and (self.canary is None or self.canary.takes(pod))


@dataclass(frozen=True, slots=True)
class Tenant:
    """How much of the real allocatable the Pods of some namespaces may use by request, on nodes that publish it.

    namespaces, namespace_labels
        Globs, any of them, and labels of the Namespace, for each one of the values; both hold where both are set.
    per_mille
        Of the real figure, for `resources`; beyond what a node advertises nothing counts. 1000 of all else.
    bounds
        Rules with a filter and nothing else, one for each live signal: above 1000 holds only on nodes where each of
        them has a sample and does not refuse.
    """

    name: str
    namespaces: tuple[str, ...] = ()
    namespace_labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    per_mille: int = 1000
    resources: tuple[str, ...] = ()
    bounds: tuple[Rule, ...] = ()
    where: str = ""

    def covers(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        """Whether it is the tenant of a namespace with these labels; None where the labels are not known."""
        if self.namespaces and not any(fnmatch.fnmatchcase(namespace, glob) for glob in self.namespaces):
            return False
        if labels is None:
            return not self.namespace_labels
        return all(labels.get(key) in values for key, values in self.namespace_labels.items())


@dataclass(frozen=True, slots=True)
class RuleSet:
    """All signals, rules and tenants in force together; `generation` grows by one with each successful load.

    A Pod's tenant is the first that covers its namespace.
    """

    signals: Mapping[str, Signal] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    generation: int = 0
    tenants: tuple[Tenant, ...] = ()

    @property
    def asked(self) -> Mapping[str, Signal]:
        """The signals that a Prometheus is asked for, by name."""
        return {name: signal for name, signal in self.signals.items() if signal.built_in is None}

    @property
    def has_windows(self) -> bool:
        """Whether Pods that have gone count for any signal."""
        return any(signal.built_in is not None and signal.built_in.window_s for signal in self.signals.values())

    @property
    def judged(self) -> tuple[Rule, ...]:
        """All whose filter is judged when samples come: the rules, and the bounds of tenants."""
        return self.rules + tuple(bound for tenant in self.tenants for bound in tenant.bounds)
