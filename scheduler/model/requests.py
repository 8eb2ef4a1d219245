"""What a Pod asks for and what a placed Pod occupies, by kube-scheduler's rules.

All sums are made in exact nano-units and rounded up once at the end: cpu to millicores, the rest to whole
units.

Source: k8s.io/component-helpers resource/helpers.go PodRequests and kube-scheduler v1.37
framework/types.go calculateResource (behaviour).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import NamedTuple

from scheduler.errors import InvalidObjectError
from scheduler.model.arrays import INT64_MAX
from scheduler.model.objects import Container, ContainerStatus, Pod, ResourceRequirements
from scheduler.model.quantity import parse_quantity
from scheduler.model.structs import ResourceList

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
BASIC = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)
NONZERO_RESOURCES = (CPU, MEMORY)

_NANO = 10**9
DEFAULT_REQUESTS = {CPU: 100 * 10**6, MEMORY: 200 * 1024 * 1024 * _NANO}
"""What a container that names no request counts as in scores: 100 millicores and 200 MiB, in nano-units."""

MAX_ADVERTISED = INT64_MAX // 1000
"""What a node advertises beyond counts as this, so that 100 · (capacity - requested) cannot wrap."""

MAX_NAMES_OF_NODE = 128
"""So many resources of one node count: who writes a node's status must not fill the table for all others."""

_LIMIT = MAX_ADVERTISED + 1
"""What a Pod asks for beyond counts as this: still more than any node has. `RowSums` adds it up."""

Amounts = dict[str, int]
Read = Callable[[ResourceList | None], Amounts]
"""Turns quantities into nano-units."""


@functools.lru_cache(maxsize=65_536)
def _nano(text: str) -> int:
    value = parse_quantity(text) * _NANO
    return -(-value.numerator // value.denominator)


def _nano_amounts(resources: ResourceList | None) -> Amounts:
    """Return nano-units; InvalidObjectError names the resource whose quantity is none."""
    amounts: Amounts = {}
    for name, quantity in (resources or {}).items():
        try:
            amounts[name] = _nano(str(quantity))
        except InvalidObjectError as error:
            raise InvalidObjectError(f"resource {name!r}: {error}") from error
    return amounts


def _usable_amounts(resources: ResourceList | None) -> Amounts:
    """Return nano-units of what can be read: no other quantity, and none below 0, says anything of room."""
    amounts: Amounts = {}
    for name, quantity in (resources or {}).items():
        try:
            nano = _nano(str(quantity))
        except InvalidObjectError:
            continue
        if nano >= 0:
            amounts[name] = nano
    return amounts


def _sound_amounts(resources: ResourceList | None) -> Amounts:
    """Return nano-units; InvalidObjectError where a quantity is none or below 0."""
    amounts = _nano_amounts(resources)
    if amounts and min(amounts.values()) < 0:
        name = min(amounts, key=amounts.__getitem__)
        raise InvalidObjectError(f"resource {name!r}: got {(resources or {})[name]!r}. Write 0 or more")
    return amounts


def _rounded(name: str, nano: int) -> int:
    unit = 10**6 if name == CPU else _NANO
    return max(-_LIMIT, min(_LIMIT, -(-nano // unit)))


@functools.lru_cache(maxsize=4_096)
def is_counted(name: str) -> bool:
    """Return whether kube-scheduler accounts for a resource of this name at all."""
    if name in (CPU, MEMORY, EPHEMERAL_STORAGE) or name.startswith(("hugepages-", "attachable-volumes-")):
        return True
    return "kubernetes.io/" in name or ("/" in name and not name.startswith("requests."))


def is_extended(name: str) -> bool:
    """Return whether kube-scheduler calls this an extended resource: named by a vendor, as nvidia.com/gpu."""
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def is_pod_level(name: str) -> bool:
    """Return whether `spec.resources` of a Pod may set this resource."""
    return name in (CPU, MEMORY) or name.startswith("hugepages-")


def resource_amounts(resources: ResourceList | None) -> Amounts:
    """Return a node's allocatable in millicores and whole units; names that nothing counts are left out."""
    return advertised_amounts(resources)[0]


def advertised_amounts(resources: ResourceList | None) -> tuple[Amounts, str]:
    """Return what of a node's allocatable counts, in millicores and whole units, and what does not as it stands.

    Names that nothing counts are left out.
    """
    amounts: Amounts = {}
    cut = ""
    n_left_out = 0
    for name, quantity in (resources or {}).items():
        if name != PODS and not is_counted(name):
            continue
        if len(amounts) >= MAX_NAMES_OF_NODE and name not in BASIC:
            n_left_out += 1
            continue
        amount = _rounded(name, _nano_amounts({name: quantity})[name])
        amounts[name] = max(0, min(amount, MAX_ADVERTISED))
        if amounts[name] != amount:
            cut = f"allocatable {name!r}: got {quantity!r}, which counts as {amounts[name]}"
    if n_left_out:
        cut = f"allocatable: got {len(amounts) + n_left_out} resources, of which the first {len(amounts)} count"
    return amounts, cut


def pod_requests(pod: Pod) -> Amounts:
    """Return what an incoming Pod asks for: its spec only, pod-level requests and overhead included."""
    total = _sum_containers(pod, lambda container: _nano_amounts(container.resources.requests))
    total |= _pod_level(pod.spec.resources)
    _add(total, _nano_amounts(pod.spec.overhead))
    return _counted(total)


def container_requests(pod: Pod) -> Amounts:
    """Return what its containers ask for with overhead, pod-level requests left out: the basis of Fit's scores."""
    total = _sum_containers(pod, lambda container: _nano_amounts(container.resources.requests))
    _add(total, _nano_amounts(pod.spec.overhead))
    return _counted(total)


def scored_requests(pod: Pod) -> tuple[int, int]:
    """Return (millicores, bytes) that an incoming Pod counts as in NodeResourcesFit's scores.

    Each container that names no request counts with the defaults; pod-level requests are not looked at
    (kube-scheduler 1.37 leaves that switch off in the scorer that Fit embeds).
    """
    total = _sum_containers(pod, lambda container: DEFAULT_REQUESTS | _nano_amounts(container.resources.requests))
    _add(total, _nano_amounts(pod.spec.overhead))
    return _rounded(CPU, total.get(CPU, 0)), _rounded(MEMORY, total.get(MEMORY, 0))


class Usage(NamedTuple):
    """What a Pod on a node occupies; `scored` is (millicores, bytes) with defaults for scores.

    `problem` says which quantity cannot be read and so does not count: whoever may create Pods must not be able to
    close a node with one, and the kubelet admits no Pod beyond what its node has.
    """

    requests: Amounts
    scored: tuple[int, int]
    problem: str = ""


def placed_usage(pod: Pod) -> Usage:
    """Return what a Pod on a node occupies.

    A Pod that is being resized occupies the most of what it asks for, was allotted and really has.
    """
    try:
        return _usage(pod, _sound_amounts, "")
    except InvalidObjectError as error:
        return _usage(pod, _usable_amounts, str(error))


def _usage(pod: Pod, read: Read, problem: str) -> Usage:
    plain = _placed(pod, {}, read)
    # With requests at Pod level, a default stands only for what the Pod names nowhere, not in any container.
    settled = plain if _pod_level(pod.spec.resources, read) else {}
    defaults = {name: amount for name, amount in DEFAULT_REQUESTS.items() if name not in settled}
    padded = _placed(pod, defaults, read)
    scored = _rounded(CPU, padded.get(CPU, 0)), _rounded(MEMORY, padded.get(MEMORY, 0))
    return Usage(_counted(plain), scored, problem)


def usage_status(pod: Pod) -> tuple[object, ...]:
    """Return what `placed_usage` reads of the status; all else that it reads is spec."""
    status = pod.status
    return (
        _resources_of(status.container_statuses),
        _resources_of(status.init_container_statuses),
        status.resources,
        status.allocated_resources,
        _is_resize_infeasible(pod),
    )


def _resources_of(statuses: list[ContainerStatus] | None) -> list[tuple[object, ...]]:
    return [(one.name, one.allocated_resources, one.resources) for one in statuses or ()]


def described_resources(pod: Pod) -> tuple[Amounts, Amounts]:
    """Return (requests, limits) as `/metrics/resources` shows them, in nano-units: the spec's, whatever their names.

    Overhead adds to the limits only where there is one.

    Source: k8s.io/component-helpers resource/helpers.go PodRequests, PodLimits (behaviour).
    """
    requests = _sum_containers(pod, lambda container: _nano_amounts(container.resources.requests))
    limits = _sum_containers(pod, lambda container: _nano_amounts(container.resources.limits))
    own, overhead = pod.spec.resources, _nano_amounts(pod.spec.overhead)
    requests |= _pod_level(own)
    limits |= {} if own is None else _only_pod_level(_nano_amounts(own.limits))
    _add(requests, overhead)
    _add(limits, {name: amount for name, amount in overhead.items() if limits.get(name)})
    return requests, limits


def _placed(pod: Pod, defaults: Mapping[str, int], read: Read) -> Amounts:
    status, infeasible = pod.status, _is_resize_infeasible(pod)
    by_name = {s.name: s for s in chain(status.container_statuses or [], status.init_container_statuses or [])}

    def spec(container: Container) -> Amounts:
        return {**defaults, **read(container.resources.requests)}

    def allocated(container: Container) -> Amounts:
        found = by_name.get(container.name)
        if found is not None and found.allocated_resources is not None:
            return {**defaults, **read(found.allocated_resources)}
        return {**defaults} if infeasible else spec(container)

    def actuated(container: Container) -> Amounts:
        found: ContainerStatus | None = by_name.get(container.name)
        if found is not None and found.resources is not None and found.resources.requests is not None:
            return {**defaults, **read(found.resources.requests)}
        return allocated(container)

    sums = [] if infeasible else [_sum_containers(pod, spec)]
    actual = status.resources.requests if status.resources else None
    if status.allocated_resources is not None and actual is not None:
        sums += [read(status.allocated_resources), read(actual)]
    elif by_name or infeasible:
        sums += [_sum_containers(pod, allocated), _sum_containers(pod, actuated)]
    total = _largest(sums)
    total |= _placed_pod_level(pod, infeasible, read)
    _add(total, read(pod.spec.overhead))
    return total


def _placed_pod_level(pod: Pod, infeasible: bool, read: Read) -> Amounts:
    wanted = _pod_level(pod.spec.resources, read)
    if not wanted or pod.status.resources is None:
        return wanted
    actual = read(pod.status.resources.requests)
    allocated = read(pod.status.allocated_resources)
    largest = _largest([{} if infeasible else wanted, actual, allocated])
    return _only_pod_level(largest)


def _pod_level(resources: ResourceRequirements | None, read: Read = _nano_amounts) -> Amounts:
    return _only_pod_level(read(resources.requests)) if resources else {}


def _only_pod_level(amounts: Amounts) -> Amounts:
    return {name: amount for name, amount in amounts.items() if is_pod_level(name)}


def _is_resize_infeasible(pod: Pod) -> bool:
    return any(c.type == "PodResizePending" and c.reason == "Infeasible" for c in pod.status.conditions or [])


def _sum_containers(pod: Pod, amounts_of: Callable[[Container], Amounts]) -> Amounts:
    """Sum containers and sidecars; no init container may need more than that while it runs."""
    total: Amounts = {}
    for container in pod.spec.containers or []:
        _add(total, amounts_of(container))
    sidecars: Amounts = {}
    peaks: list[Amounts] = []
    for container in pod.spec.init_containers or []:
        own = amounts_of(container)
        if container.restart_policy == "Always":
            _add(total, own)
            _add(sidecars, own)
        else:
            # Of what it does not name the total has as much as its sidecars; copies of theirs would be quadratic.
            peaks.append({name: amount + sidecars.get(name, 0) for name, amount in own.items()})
    return _largest([total, *peaks])


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _largest(candidates: Iterable[Mapping[str, int]]) -> Amounts:
    result: Amounts = {}
    for amounts in candidates:
        for name, amount in amounts.items():
            if name not in result or amount > result[name]:
                result[name] = amount
    return result


def _counted(nano: Amounts) -> Amounts:
    return {name: _rounded(name, amount) for name, amount in nano.items() if is_counted(name)}
