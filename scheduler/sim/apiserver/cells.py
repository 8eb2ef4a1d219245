"""The cells of one row: how kubectl sees an object at a glance."""

from __future__ import annotations

from typing import Any, Final

from scheduler.sim.apiserver.metadata import seconds_of
from scheduler.sim.apiserver.resources import Json

_NONE: Final = "<none>"
_UNKNOWN: Final = "<unknown>"
_ROLE: Final = "node-role.kubernetes.io/"
_OLD_ROLE: Final = "kubernetes.io/role"
_MINUTE_S: Final = 60
_HOUR_S: Final = 3600
_DAY_S: Final = 24 * _HOUR_S
_YEAR_S: Final = 365 * _DAY_S


def duration_text(seconds: float) -> str:
    """Return a duration as kubectl writes it: `118s`, `4m30s`, `12m`, `5h2m`, `2d3h`, `400d`, `3y20d`."""
    whole = int(seconds)
    minutes, hours, days = whole // _MINUTE_S, whole // _HOUR_S, whole // _DAY_S
    steps = (
        (0, _INVALID, 0, ""),
        (2 * _MINUTE_S, f"{whole}s", 0, ""),
        (10 * _MINUTE_S, f"{minutes}m", whole % _MINUTE_S, "s"),
        (3 * _HOUR_S, f"{minutes}m", 0, ""),
        (8 * _HOUR_S, f"{hours}h", minutes % 60, "m"),
        (2 * _DAY_S, f"{hours}h", 0, ""),
        (8 * _DAY_S, f"{days}d", hours % 24, "h"),
        (2 * _YEAR_S, f"{days}d", 0, ""),
        (8 * _YEAR_S, f"{days // 365}y", days % 365, "d"),
    )
    for below_s, text, rest, unit in steps:
        if whole < below_s:
            return f"{text}{rest}{unit}" if rest else text
    return f"{days // 365}y"


_INVALID: Final = "<invalid>"


def age(obj: Json, now: float) -> str:
    return since(obj["metadata"].get("creationTimestamp"), now)


def since(time: str | None, now: float) -> str:
    """Return how long ago an API time was; a clock that runs ahead by under 2 s counts as none."""
    if not time:
        return _UNKNOWN
    try:
        seconds = now - seconds_of(time)
    except ValueError:
        return _UNKNOWN
    return duration_text(0.0 if -2 < seconds < 0 else seconds)


def pod_cells(pod: Json, now: float) -> list[Any]:
    spec, status = pod["spec"], pod.get("status") or {}
    statuses = status.get("containerStatuses") or ()
    n_ready = sum(bool(one.get("ready")) and "running" in (one.get("state") or {}) for one in statuses)
    ips = status.get("podIPs") or ()
    gates = spec.get("readinessGates") or ()
    holding = {one["type"] for one in status.get("conditions") or () if one.get("status") == "True"}
    n_holding = sum(gate.get("conditionType") in holding for gate in gates)
    return [
        pod["metadata"]["name"],
        f"{n_ready}/{len(spec['containers'])}",
        _pod_status(pod, status),
        str(sum(one.get("restartCount", 0) for one in statuses)),
        age(pod, now),
        ips[0]["ip"] if ips else status.get("podIP") or _NONE,
        spec.get("nodeName") or _NONE,
        status.get("nominatedNodeName") or _NONE,
        f"{n_holding}/{len(gates)}" if gates else _NONE,
    ]


def _pod_status(pod: Json, status: Json) -> str:
    """Return why a Pod isn't running, else its phase; init containers are not looked at."""
    if pod["metadata"].get("deletionTimestamp"):
        return "Terminating"
    reason = str(status.get("reason") or status.get("phase") or "")
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    for one in reversed(status.get("containerStatuses") or ()):
        state = one.get("state") or {}
        waiting, terminated = state.get("waiting") or {}, state.get("terminated") or {}
        if waiting.get("reason"):
            reason = str(waiting["reason"])
        elif terminated:
            reason = str(terminated.get("reason") or f"ExitCode:{terminated.get('exitCode', 0)}")
    return reason


def node_cells(node: Json, now: float) -> list[Any]:
    status = node.get("status") or {}
    info = status.get("nodeInfo") or {}
    ready = [one.get("status") for one in status.get("conditions") or () if one.get("type") == "Ready"]
    state = {"True": "Ready", "False": "NotReady"}.get(str(ready[-1]) if ready else "", "Unknown")
    if ready and ready[-1] not in ("True", "False"):
        state = "NotReady"
    if (node.get("spec") or {}).get("unschedulable"):
        state += ",SchedulingDisabled"
    return [
        node["metadata"]["name"],
        state,
        ",".join(_roles(node["metadata"].get("labels") or {})) or _NONE,
        age(node, now),
        info.get("kubeletVersion", ""),
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        info.get("osImage") or _UNKNOWN,
        info.get("kernelVersion") or _UNKNOWN,
        info.get("containerRuntimeVersion") or _UNKNOWN,
    ]


def _roles(labels: dict[str, str]) -> list[str]:
    roles = {label.removeprefix(_ROLE) for label in labels if label.startswith(_ROLE) and label != _ROLE}
    if labels.get(_OLD_ROLE):
        roles.add(labels[_OLD_ROLE])
    return sorted(roles)


def _address(status: Json, type_: str) -> str:
    found = (one.get("address") for one in status.get("addresses") or () if one.get("type") == type_)
    return next(found, None) or _NONE


def event_cells(event: Json, now: float) -> list[Any]:
    series, source = event.get("series") or {}, event.get("source") or {}
    first = event.get("firstTimestamp") or event.get("eventTime")
    last = series.get("lastObservedTime") or event.get("lastTimestamp") or first
    count = series.get("count") or event.get("count") or 1
    about = event.get("involvedObject") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    host = source.get("host") or event.get("reportingInstance") or ""
    what = f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}" if about.get("name") else ""
    return [
        since(last, now),
        event.get("type", ""),
        event.get("reason", ""),
        what or str(about.get("kind", "")).lower(),
        about.get("fieldPath", ""),
        ", ".join(filter(None, (component, host))),
        str(event.get("message", "")).strip(),
        since(first, now),
        count,
        event["metadata"]["name"],
    ]
