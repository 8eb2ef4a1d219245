"""PodInfo: a Pod with what scheduling derives from it, worked out once when the Pod arrives."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import datetime
from functools import cached_property

import msgspec

from scheduler.model.affinity_terms import PodTerms, terms_of
from scheduler.model.hashes import hash64, lot_of
from scheduler.model.objects import Container, ContainerPort, Pod, PodSpec, PodStatus
from scheduler.model.requests import Amounts, Usage, placed_usage, pod_requests, scored_requests, usage_status
from scheduler.model.selector_sizes import spread_size
from scheduler.model.structs import Labels
from scheduler.model.unsupported import unsupported

_encoder = msgspec.json.Encoder(order="sorted")


class PodInfo:
    """A Pod as the scheduler sees it. Derived values raise InvalidObjectError where the spec is impossible."""

    def __init__(self, pod: Pod) -> None:
        self.pod = pod

    def __repr__(self) -> str:
        return f"PodInfo({self.key}, uid={self.uid})"

    def inherit(self, older: PodInfo) -> bool:
        """Take over what was worked out for an earlier version, as far as it still holds.

        Return whether the two specs differ in nothing but the node, which is what a bind changes.
        """
        before, after = older.pod, self.pod
        if not _is_same_spec(before.spec, after.spec):
            return False
        is_usage_same = usage_status(before) == usage_status(after)
        for name in (*_FROM_SPEC, *_FROM_STATUS) if is_usage_same else _FROM_SPEC:
            if name in older.__dict__:
                self.__dict__[name] = older.__dict__[name]
        return True

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid

    @property
    def key(self) -> str:
        return self.pod.key

    @property
    def name(self) -> str:
        return self.pod.metadata.name

    @property
    def namespace(self) -> str:
        return self.pod.metadata.namespace

    @property
    def labels(self) -> Labels:
        return self.pod.metadata.labels or {}

    @cached_property
    def priority(self) -> int:
        return self.pod.spec.priority or 0

    @cached_property
    def started_s(self) -> float:
        """When it was started on its node, as UNIX time; infinity if it wasn't yet."""
        return _unix_s(self.pod.status.start_time)

    @cached_property
    def running_s(self) -> float:
        """When all its containers first ran, as UNIX time; infinity if they do not yet.

        Where a container was restarted, or a kubelet says nothing of containers, when the Pod was started.
        """
        return _running_s(self.pod.status, self.started_s)

    @cached_property
    def bound_s(self) -> float:
        """When it was bound, as UNIX time by the API server's clock; infinity before that is known."""
        for condition in self.pod.status.conditions or ():
            if condition.type == "PodScheduled" and condition.status == "True":
                return _unix_s(condition.last_transition_time)
        return math.inf

    @cached_property
    def workload(self) -> tuple[str, str]:
        """(namespace, name), shared by the Pods of one Deployment, Job, …; the name is empty without an owner."""
        return self.namespace, _owner_name(self.pod)

    @cached_property
    def seed(self) -> int:
        """The 64-bit seed that breaks ties for this Pod, from its UID."""
        return hash64(self.uid)

    @cached_property
    def lot(self) -> float:
        """From 0 up to 1: below a canary's share the Pod is among its Pods, for all canaries alike."""
        return lot_of(self.uid)

    @cached_property
    def requests(self) -> Amounts:
        """What it asks for while it is pending."""
        return pod_requests(self.pod)

    @cached_property
    def requested_resources(self) -> tuple[str, ...]:
        """The names in `requests`."""
        return tuple(self.requests)

    @cached_property
    def scored_requests(self) -> tuple[int, int]:
        """(millicores, bytes) with defaults, while it is pending."""
        return scored_requests(self.pod)

    @cached_property
    def usage(self) -> Usage:
        """What it occupies once it is on a node."""
        return placed_usage(self.pod)

    @cached_property
    def unread_times(self) -> tuple[str, ...]:
        """`field: what was found` of each time in its status that is none: such a one counts as not known."""
        return tuple(f"{field}: got {text[:_LONGEST_TIME]!r}" for field, text in _times(self.pod) if not _is_time(text))

    @cached_property
    def host_ports(self) -> tuple[tuple[str, str, int], ...]:
        """(protocol, host IP, host port) of each port taken on the node, defaults filled in, no duplicates."""
        found = {
            (port.protocol or "TCP", port.host_ip or "0.0.0.0", port.host_port): None
            for container in self._port_holders()
            for port in _ports(container)
            if port.host_port > 0
        }
        return tuple(found)

    @cached_property
    def affinity_terms(self) -> PodTerms:
        """What it wants and what it avoids near it."""
        return terms_of(self.pod)

    @cached_property
    def spreads_by_few(self) -> bool:
        """Whether it has as few topology spread constraints as nearly every Pod has."""
        return spread_size(self.pod).is_small

    @cached_property
    def unsupported(self) -> tuple[str, ...]:
        """`path: reason` of everything that it needs and Vane does not have, empty for most Pods."""
        return unsupported(self.pod)

    def _port_holders(self) -> list[Container]:
        spec = self.pod.spec
        sidecars = [c for c in spec.init_containers or [] if c.restart_policy == "Always"]
        return [*(spec.containers or []), *sidecars]

    @cached_property
    def class_key(self) -> int:
        """Equal for Pods that every plugin must treat alike: namespace, labels, owner and scheduling fields."""
        metadata = self.pod.metadata
        owners = [owner.uid for owner in metadata.owner_references or [] if owner.controller]
        fields = (metadata.namespace, metadata.labels or {}, owners, self.pod.spec)
        return hash64(_encoder.encode(fields).decode())


_FROM_SPEC = (
    "requests",
    "requested_resources",
    "scored_requests",
    "host_ports",
    "affinity_terms",
    "spreads_by_few",
    "unsupported",
)
_FROM_STATUS = ("usage",)


_REVISION = "pod-template-hash"
_CRON_TIME = re.compile(r"-[0-9]{8,}$")


_LONGEST_TIME = 100


def _unix_s(text: str | None) -> float:
    """Return UNIX time; infinity where there is none, and for what is no time that Python knows, as one in year 0."""
    if not text:
        return math.inf
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return math.inf


def _is_time(text: str) -> bool:
    return _unix_s(text) < math.inf


def _times(pod: Pod) -> Iterator[tuple[str, str]]:
    """Yield the field and the text of each time that is read."""
    status = pod.status
    if status.start_time:
        yield "status.startTime", status.start_time
    for condition in status.conditions or ():
        if condition.type == "PodScheduled" and condition.last_transition_time:
            yield "status.conditions[PodScheduled].lastTransitionTime", condition.last_transition_time
    for one in status.container_statuses or ():
        run = None if one.state is None else one.state.running or one.state.terminated
        if run is not None and run.started_at:
            yield f"status.containerStatuses[{one.name}].state.startedAt", run.started_at


def _running_s(status: PodStatus, started_s: float) -> float:
    states = [one.state for one in status.container_statuses or () if one.state is not None]
    if not states or any(one.restart_count for one in status.container_statuses or ()):
        return started_s
    runs = [state.running or state.terminated for state in states]
    return max(math.inf if run is None else _unix_s(run.started_at) for run in runs)


def _owner_name(pod: Pod) -> str:
    """Return the controller's name without what a rollout or a CronJob's schedule adds to it."""
    owner = next((one for one in pod.metadata.owner_references or () if one.controller), None)
    if owner is None:
        return ""
    revision = (pod.metadata.labels or {}).get(_REVISION, "")
    name = owner.name.removesuffix(f"-{revision}") if revision else owner.name
    return f"{owner.kind}/{_CRON_TIME.sub('', name) if owner.kind == 'Job' else name}"


def _is_same_spec(before: PodSpec, after: PodSpec) -> bool:
    if before.node_name != after.node_name:
        before = msgspec.structs.replace(before, node_name=after.node_name)
    return before == after


def _ports(container: Container) -> list[ContainerPort]:
    return container.ports or []
