"""Reads a KubeSchedulerConfiguration v1, as a file of its own or as the `scheduler` block of a VaneConfiguration.

Source: kube-scheduler v1.37 apis/config/v1/defaults.go and apis/config/validation/validation.go (behaviour).
"""

from __future__ import annotations

from typing import Final

from scheduler.settings.kube_profiles import VANES, read_percentage, read_profiles
from scheduler.settings.kube_values import (
    INT32,
    INT64,
    check_text,
    read_data,
    read_number,
    read_switch,
    read_whole,
)
from scheduler.settings.scheduler import API_VERSION, KIND, SchedulerSettings
from scheduler.settings.sources import Source
from scheduler.strict_yaml.fields import Fields, Shape, expect, is_null, read_fields, read_list
from scheduler.strict_yaml.nodes import YamlMapping, YamlNode, is_broken
from scheduler.strict_yaml.report import Scope, got

_DURATIONS: Final = ("leaseDuration", "renewDeadline", "retryPeriod")
_OLD: Final = "no such field in v1, as in kube-scheduler. Write --bind-address and --secure-port"

DOCUMENT: Final = Shape(
    fields=(
        "profiles",
        "apiVersion",
        "kind",
        "leaderElection",
        "clientConnection",
        "podInitialBackoffSeconds",
        "podMaxBackoffSeconds",
        "percentageOfNodesToScore",
        "parallelism",
        "extenders",
        "enableProfiling",
        "enableContentionProfiling",
        "delayCacheUntilActive",
    ),
    refused={**VANES, "healthzBindAddress": _OLD, "metricsBindAddress": _OLD},
    is_go=True,
)
LEADER_ELECTION: Final = Shape(
    fields=("leaderElect", *_DURATIONS, "resourceLock", "resourceName", "resourceNamespace"), is_go=True
)
CLIENT_CONNECTION: Final = Shape(fields=("kubeconfig", "acceptContentTypes", "contentType", "qps", "burst"), is_go=True)

_DEFAULT_INITIAL_BACKOFF_S: Final = 1
_DEFAULT_MAX_BACKOFF_S: Final = 10
_DEFAULT_PARALLELISM: Final = 16
_DEFAULT_QPS: Final = 50
_DEFAULT_BURST: Final = 100


def read_kube_scheduler(node: YamlNode, scope: Scope) -> tuple[SchedulerSettings, Source]:
    """Return what the document says of scheduling, and of other settings, by their names in a VaneConfiguration.

    What is wrong is left out and reported. What has no effect in Vane is checked all the same, and told in the notices
    where it differs from what kube-scheduler does by default.
    """
    others = Source()
    if is_null(node):
        scope.problem(node, f"must be a mapping, {got(node)}. Write fields: {', '.join(DOCUMENT.fields)}")
        return SchedulerSettings(), others
    fields = read_fields(node, scope, DOCUMENT)
    if fields is None:
        return SchedulerSettings(), others
    expect(fields, "apiVersion", API_VERSION)
    expect(fields, "kind", KIND)
    profiles = read_profiles(fields.get("profiles"), scope.inner("profiles"))
    initial_s, longest_s = _backoff(fields)
    extenders = fields.get("extenders")
    if read_list(extenders, scope.inner("extenders"), "Write its items, or drop it", may_be_empty=True):
        what = "HTTP extenders of kube-scheduler: not built yet. Drop them"
        scope.inner("extenders").problem(extenders or node, what)
    _check_without_effect(fields)
    _read_leader_election(fields.get("leaderElection"), scope.inner("leaderElection"), others)
    _read_client_connection(fields.get("clientConnection"), scope.inner("clientConnection"), others)
    notices = tuple(map(str, scope.report.warnings))
    return SchedulerSettings(profiles, float(initial_s), float(longest_s), notices), others


def _backoff(fields: Fields) -> tuple[int, int]:
    names = ("podInitialBackoffSeconds", "podMaxBackoffSeconds")
    initial_s, longest_s = (read_whole(fields, name, 1, INT64) for name in names)
    first, last = initial_s or _DEFAULT_INITIAL_BACKOFF_S, longest_s or _DEFAULT_MAX_BACKOFF_S
    if last < first:
        there = names[1] if longest_s else names[0]
        what = f"the longest backoff must be the first at least, got {last} s and {first} s. Write both, as 1 and 10"
        fields.scope.inner(there).problem(fields.get(there) or fields.node, what)
    return first, last


def _check_without_effect(fields: Fields) -> None:
    read_percentage(fields)
    if read_whole(fields, "parallelism", 1, INT32) not in (None, _DEFAULT_PARALLELISM):
        _notice(fields, "parallelism", "one thread decides for all nodes at once")
    for name in ("enableProfiling", "enableContentionProfiling"):
        read_switch(fields, name)
    if read_switch(fields, "delayCacheUntilActive"):
        _notice(fields, "delayCacheUntilActive", "a standby watches like the leader, to take over at once")


def _read_leader_election(node: YamlNode | None, scope: Scope, others: Source) -> None:
    """Add the settings; an empty name and 0s count as unset, as in kube-scheduler, where null is no duration."""
    fields = read_fields(node, scope, LEADER_ELECTION)
    if fields is None:
        return
    for key, value in fields.node.entries if isinstance(fields.node, YamlMapping) else ():
        if key.value in _DURATIONS and is_null(value):
            what = f"must be a duration with units as in 1m30s, {got(value)}. Write it, or drop the line"
            scope.inner(key.value).problem(value, what)
    for name, (_, value) in fields.found.items():
        inner = scope.inner(name)
        given = read_data(value, inner).value
        if not is_broken(value) and given not in (("0s", "0") if name in _DURATIONS else ("",)):
            others.set(("leaderElection", name), given, f"{inner.where(value)}: {inner.label}")


def _read_client_connection(node: YamlNode | None, scope: Scope, others: Source) -> None:
    fields = read_fields(node, scope, CLIENT_CONNECTION)
    if fields is None:
        return
    for name in ("acceptContentTypes", "contentType"):
        check_text(fields, name)
    if read_number(fields, "qps") not in (0, _DEFAULT_QPS):
        _notice(fields, "qps", "Vane holds no request back")
    if read_whole(fields, "burst", 0, INT32) not in (None, 0, _DEFAULT_BURST):
        _notice(fields, "burst", "Vane holds no request back")
    kubeconfig, inner = fields.get("kubeconfig"), scope.inner("kubeconfig")
    if kubeconfig is None or is_broken(kubeconfig):
        return
    if (given := read_data(kubeconfig, inner).value) != "":
        others.set(("kubeconfig",), given, f"{inner.where(kubeconfig)}: {inner.label}")


def _notice(fields: Fields, name: str, why: str) -> None:
    fields.scope.inner(name).warning(fields.get(name) or fields.node, f"has no effect: {why}")
