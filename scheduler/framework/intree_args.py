"""The arguments of kube-scheduler's own plugins, as a KubeSchedulerConfiguration v1 holds them.

A plugin says `Args = InterPodAffinityArgs` and is handed a complete and valid one; without arguments in the
configuration that is `InterPodAffinityArgs()`, whose defaults are kube-scheduler's.

Source: kube-scheduler v1.37 apis/config/v1/defaults.go, apis/config/validation/validation_pluginargs.go (behaviour).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final, Self

import msgspec

from scheduler.framework.args import PluginArgs
from scheduler.framework.intree_checks import Mistake, duplicates, name_mistakes, shape_mistakes, term_mistakes, within
from scheduler.model.objects import NodeAffinitySpec, TopologySpreadConstraint

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

MAX_RESOURCE_WEIGHT: Final = 100


class InTreeArgs(PluginArgs, frozen=True):
    """What all of them have: zero values to fill in, and mistakes that a type cannot hold."""

    def completed(self) -> Self:
        """Return it with kube-scheduler's defaults where it holds a zero value that means "unset"."""
        return self

    def mistakes(self) -> Iterator[Mistake]:
        """Yield what kube-scheduler would refuse of a completed one, with the way there."""
        return iter(())


class ResourceSpec(PluginArgs, frozen=True):
    """A resource and its weight as a score."""

    name: str = ""
    weight: Int64 = 0


class ShapePoint(PluginArgs, frozen=True):
    """`utilization` is a per cent, `score` is out of 10."""

    utilization: Int32 = 0
    score: Int32 = 0


class RequestedToCapacityRatio(PluginArgs, frozen=True):
    shape: tuple[ShapePoint, ...] = ()


_BASIC: Final = (ResourceSpec(name="cpu", weight=1), ResourceSpec(name="memory", weight=1))


class ScoringStrategy(PluginArgs, frozen=True):
    type: str = ""
    resources: tuple[ResourceSpec, ...] = ()
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None


class NodeResourcesFitArgs(InTreeArgs, frozen=True):
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(type="LeastAllocated", resources=_BASIC)

    def completed(self) -> Self:
        strategy = self.scoring_strategy
        resources = _weighted(strategy.resources)
        return msgspec.structs.replace(self, scoring_strategy=msgspec.structs.replace(strategy, resources=resources))

    def mistakes(self) -> Iterator[Mistake]:
        for i, name in enumerate(self.ignored_resources):
            yield from name_mistakes(("ignoredResources", i), name)
        for i, group in enumerate(self.ignored_resource_groups):
            at = ("ignoredResourceGroups", i)
            if "/" in group:
                yield at, f"must have no '/', got {group!r}. Write what stands before it, as nvidia.com"
            else:
                yield from name_mistakes(at, group)
        yield from within("scoringStrategy", self._strategy_mistakes())

    def _strategy_mistakes(self) -> Iterator[Mistake]:
        strategy, shaped = self.scoring_strategy, "RequestedToCapacityRatio"
        types = ("LeastAllocated", "MostAllocated", shaped)
        if strategy.type not in types:
            yield ("type",), f"must be one of {', '.join(types)}, got {strategy.type!r}. Write one of them"
        for i, resource in enumerate(strategy.resources):
            if not 0 < resource.weight <= MAX_RESOURCE_WEIGHT:
                wanted = f"a whole number from 1 to {MAX_RESOURCE_WEIGHT}"
                yield ("resources", i, "weight"), f"must be {wanted}, got {resource.weight}. Write for example 1"
        ratio, at = strategy.requested_to_capacity_ratio, ("requestedToCapacityRatio",)
        if strategy.type == shaped and ratio is None:
            yield at, f"must be given if type is {shaped}, got nothing. Write its shape"
        elif strategy.type == shaped and ratio is not None:
            yield from within(at[0], shape_mistakes([(point.utilization, point.score) for point in ratio.shape]))
        elif ratio is not None:
            yield at, f"must be given only if type is {shaped}, got type {strategy.type!r}. Drop one of the two"


class NodeResourcesBalancedAllocationArgs(InTreeArgs, frozen=True):
    resources: tuple[ResourceSpec, ...] = _BASIC

    def completed(self) -> Self:
        return msgspec.structs.replace(self, resources=_weighted(self.resources))

    def mistakes(self) -> Iterator[Mistake]:
        for i in duplicates([resource.name for resource in self.resources]):
            yield ("resources", i, "name"), f"{self.resources[i].name!r} is listed twice. Name each resource once"
        for i, resource in enumerate(self.resources):
            if resource.weight != 1:
                yield ("resources", i, "weight"), f"must be 1, got {resource.weight}. Write 1, or drop it"


class NodeAffinityArgs(InTreeArgs, frozen=True):
    """`added_affinity` counts for every Pod of the profile, beside the Pod's own."""

    added_affinity: NodeAffinitySpec | None = None

    def mistakes(self) -> Iterator[Mistake]:
        added = self.added_affinity
        if added is None:
            return
        if added.required is not None:
            for i, term in enumerate(added.required.node_selector_terms or ()):
                at = ("addedAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms", i)
                yield from term_mistakes(at, term)
        for i, preferred in enumerate(added.preferred or ()):
            if preferred.weight:
                where = ("addedAffinity", "preferredDuringSchedulingIgnoredDuringExecution", i, "preference")
                yield from term_mistakes(where, preferred.preference)


class InterPodAffinityArgs(InTreeArgs, frozen=True):
    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    def mistakes(self) -> Iterator[Mistake]:
        weight = self.hard_pod_affinity_weight
        if not 0 <= weight <= 100:
            yield ("hardPodAffinityWeight",), f"must be from 0 to 100, got {weight}. Write for example 1"


class PodTopologySpreadArgs(InTreeArgs, frozen=True):
    """`default_constraints` have no selector: a Pod's services and owners give it.

    They count only with `defaulting_type` List; with System there are kube-scheduler's own.
    """

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = "System"

    def completed(self) -> Self:
        return msgspec.structs.replace(self, defaulting_type=self.defaulting_type or "System")

    def mistakes(self) -> Iterator[Mistake]:
        if self.defaulting_type not in ("System", "List"):
            yield ("defaultingType",), f"must be System or List, got {self.defaulting_type!r}. Write one of them"
        elif self.defaulting_type == "System" and self.default_constraints:
            yield ("defaultingType",), "must be List if there are defaultConstraints, got 'System'. Write List"
        constraints = self.default_constraints
        for i, constraint in enumerate(constraints):
            yield from within("defaultConstraints", within(i, _constraint_mistakes(constraint)))
        for i in duplicates([(one.topology_key, one.when_unsatisfiable) for one in constraints]):
            pair = f"{constraints[i].topology_key!r} with {constraints[i].when_unsatisfiable!r}"
            yield ("defaultConstraints", i), f"{pair} is listed twice. Write it once"


class VolumeBindingArgs(InTreeArgs, frozen=True):
    """`shape` is how a node scores by the share of its storage capacity that the Pod's claims take."""

    bind_timeout_seconds: Int64 = 600
    shape: tuple[ShapePoint, ...] = (ShapePoint(utilization=0, score=10), ShapePoint(utilization=100, score=0))

    def completed(self) -> Self:
        return msgspec.structs.replace(self, shape=self.shape or VolumeBindingArgs().shape)

    def mistakes(self) -> Iterator[Mistake]:
        seconds = self.bind_timeout_seconds
        if seconds < 0:
            yield ("bindTimeoutSeconds",), f"must be 0 or more, got {seconds}. Write for example 600"
        yield from shape_mistakes([(point.utilization, point.score) for point in self.shape])


class DefaultPreemptionArgs(InTreeArgs, frozen=True):
    """How many nodes preemption tries out: the greater of the two, at most all."""

    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100

    def mistakes(self) -> Iterator[Mistake]:
        percentage, absolute = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        if not 0 <= percentage <= 100:
            yield ("minCandidateNodesPercentage",), f"must be from 0 to 100, got {percentage}. Write for example 10"
        if absolute < 0:
            yield ("minCandidateNodesAbsolute",), f"must be 0 or more, got {absolute}. Write for example 100"
        if percentage == 0 and absolute == 0:
            advice = "must not be 0 with minCandidateNodesAbsolute 0. Raise one of the two"
            yield ("minCandidateNodesPercentage",), advice


INTREE_ARGS: Final[Mapping[str, type[InTreeArgs]]] = {
    "DefaultPreemption": DefaultPreemptionArgs,
    "InterPodAffinity": InterPodAffinityArgs,
    "NodeAffinity": NodeAffinityArgs,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs,
    "NodeResourcesFit": NodeResourcesFitArgs,
    "PodTopologySpread": PodTopologySpreadArgs,
    "VolumeBinding": VolumeBindingArgs,
}
"""The arguments by the name of the plugin."""


def _weighted(resources: Sequence[ResourceSpec]) -> tuple[ResourceSpec, ...]:
    """Return the resources with weight 1 for 0; none are cpu and memory."""
    return tuple(ResourceSpec(name=one.name, weight=one.weight or 1) for one in resources) or _BASIC


def _constraint_mistakes(constraint: TopologySpreadConstraint) -> Iterator[Mistake]:
    if constraint.max_skew <= 0:
        yield ("maxSkew",), f"must be 1 or more, got {constraint.max_skew}. Write for example 1"
    yield from name_mistakes(("topologyKey",), constraint.topology_key)
    if constraint.when_unsatisfiable not in ("DoNotSchedule", "ScheduleAnyway"):
        found = f"got {constraint.when_unsatisfiable!r}"
        yield ("whenUnsatisfiable",), f"must be DoNotSchedule or ScheduleAnyway, {found}. Write one of them"
    if constraint.label_selector is not None:
        yield ("labelSelector",), "must not be given: it is derived from the Pod's services and owners. Drop it"
