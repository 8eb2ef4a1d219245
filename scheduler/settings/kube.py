"""A KubeSchedulerConfiguration v1, as a file of its own or as the `scheduler` block of a VaneConfiguration.

Source: kube-scheduler v1.37 apis/config/v1/defaults.go and apis/config/validation/validation.go (behaviour).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler.settings.document import Location
from scheduler.settings.scheduler import API_VERSION, KIND, Reading, SchedulerSettings

_INT32: Final = 2**31 - 1
_INT64: Final = 2**63 - 1

_DURATIONS: Final = ("leaseDuration", "renewDeadline", "retryPeriod")
_LEADER_ELECTION: Final = ("leaderElect", *_DURATIONS, "resourceLock", "resourceName", "resourceNamespace")
_CLIENT_CONNECTION: Final = ("kubeconfig", "acceptContentTypes", "contentType", "qps", "burst")
_FIELDS: Final = (
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
)
_DEFAULT_INITIAL_BACKOFF_S: Final = 1
_DEFAULT_MAX_BACKOFF_S: Final = 10
_DEFAULT_PARALLELISM: Final = 16


@dataclass(frozen=True, slots=True)
class KubeDocument:
    """What a KubeSchedulerConfiguration says; `values` are settings by their names in a VaneConfiguration.

    `places` has the place of each of them, with its path in the document.
    """

    scheduler: SchedulerSettings
    values: Mapping[str, Any] = field(default_factory=dict)
    places: Mapping[Location, str] = field(default_factory=dict)


def read_kube_scheduler(
    value: object, at: Location, places: Mapping[Location, str], problems: list[str]
) -> KubeDocument:
    """Return the document at location `at` of the file; what is wrong is left out and told in `problems`.

    What has no effect in Vane is checked all the same, and told in the notices where it differs from what
    kube-scheduler does by default.
    """
    reading = Reading(places, problems)
    if value is None:
        reading.problem(at, f"must be a mapping of fields, got None. Fields here: {', '.join(_FIELDS)}")
    given = reading.mapping(_whole_numbers(value), at, _FIELDS)
    for name, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
        if name in given and given[name] != expected:
            reading.problem((*at, name), f"must be {expected}, got {given[name]!r}. Write it, or drop the line")
    profiles = reading.profiles(given.get("profiles"), (*at, "profiles"))
    initial_s, longest_s = _backoff(reading, given, at)
    if reading.items(given.get("extenders"), (*at, "extenders")):
        reading.problem((*at, "extenders"), "HTTP extenders of kube-scheduler: not built yet. Drop them")
    _without_effect(reading, given, at)
    found: dict[Location, Any] = _leader_election(reading, given.get("leaderElection"), (*at, "leaderElection"))
    found |= _client_connection(reading, given.get("clientConnection"), (*at, "clientConnection"))
    values: dict[str, Any] = {}
    for path, one in found.items():
        group = values
        for name in map(str, path[:-1]):
            group = group.setdefault(name, {})
        group[str(path[-1])] = one
    where = {path: reading.where((*at, *_INVERSE.get(path, path))) for path in found}
    settings = SchedulerSettings(profiles, float(initial_s), float(longest_s), tuple(reading.notices))
    return KubeDocument(settings, values, where)


def _whole_numbers(value: Any) -> Any:
    """Return the value with 4 for 4.0, as kube-scheduler reads it."""
    if isinstance(value, dict):
        return {name: _whole_numbers(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


_INVERSE: Final[Mapping[Location, Location]] = {("kubeconfig",): ("clientConnection", "kubeconfig")}
"""The way in the document to a setting that has another one in a VaneConfiguration."""


def _backoff(reading: Reading, given: Mapping[str, Any], at: Location) -> tuple[int, int]:
    names = ("podInitialBackoffSeconds", "podMaxBackoffSeconds")
    initial_s, longest_s = (reading.whole(given, at, name, (1, _INT64)) for name in names)
    first, last = initial_s or _DEFAULT_INITIAL_BACKOFF_S, longest_s or _DEFAULT_MAX_BACKOFF_S
    if last < first:
        there = names[1] if longest_s else names[0]
        reading.problem(
            (*at, there),
            f"the longest backoff must be the first at least, got {last} s and {first} s. Write both, as 1 and 10",
        )
    return first, last


def _without_effect(reading: Reading, given: Mapping[str, Any], at: Location) -> None:
    reading.percentage(given, at)
    parallelism = reading.whole(given, at, "parallelism", (1, _INT32))
    if parallelism not in (None, _DEFAULT_PARALLELISM):
        reading.notice((*at, "parallelism"), "has no effect: one thread decides, over all nodes at once")
    switches = {
        "enableProfiling": "has no effect: there are no pages of Go's profiler",
        "enableContentionProfiling": "has no effect: there are no pages of Go's profiler",
        "delayCacheUntilActive": "has no effect: a standby watches as the leader does, to take over at once",
    }
    for name, message in switches.items():
        value = given.get(name, False)
        if not isinstance(value, bool):
            reading.problem((*at, name), f"must be true or false, got {value!r}. Write one of them, or drop it")
        elif value and name == "delayCacheUntilActive":
            reading.notice((*at, name), message)


def _leader_election(reading: Reading, value: object, at: Location) -> dict[Location, Any]:
    """Return the settings; an empty name and 0s count as unset, as in kube-scheduler, where null is no duration."""
    given = reading.mapping(value, at, _LEADER_ELECTION)
    for name in _DURATIONS:
        if isinstance(value, dict) and name in value and value[name] is None:
            reading.problem(
                (*at, name), "must be a duration with units as in 1m30s, got None. Write it, or drop the line"
            )
    unset = {name: ("0s", "0") if name in _DURATIONS else ("",) for name in given}
    return {("leaderElection", name): one for name, one in given.items() if one not in unset[name]}


def _client_connection(reading: Reading, value: object, at: Location) -> dict[Location, Any]:
    given = reading.mapping(value, at, _CLIENT_CONNECTION)
    for name in ("acceptContentTypes", "contentType"):
        if not isinstance(given.get(name, ""), str):
            reading.problem((*at, name), f"must be text, got {given[name]!r}. Write another, or drop it")
    qps = given.get("qps", 0)
    if isinstance(qps, bool) or not isinstance(qps, int | float):
        reading.problem((*at, "qps"), f"must be a number, got {qps!r}. Write another, or drop it")
    elif qps not in (0, 50):
        reading.notice((*at, "qps"), "has no effect: Vane holds no request back")
    if reading.whole(given, at, "burst", (0, _INT32)) not in (None, 0, 100):
        reading.notice((*at, "burst"), "has no effect: Vane holds no request back")
    kubeconfig = given.get("kubeconfig", "")
    return {("kubeconfig",): kubeconfig} if kubeconfig != "" else {}
