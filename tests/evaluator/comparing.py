"""The same question to the evaluator and to a real Prometheus."""

from __future__ import annotations

import json
import math
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from typing import Any

from scheduler.evaluator.evaluate import LOOKBACK_S, evaluate
from scheduler.evaluator.store import SeriesStore
from scheduler.evaluator.values import LabelKey, PromQLError, PromQLSyntaxError, Scalar, label_key

RELATIVE_TOLERANCE = 1e-12


@dataclass(frozen=True)
class Outcome:
    """What was answered: values by label set (a scalar's is empty), or an error of Prometheus' API."""

    kind: str
    values: dict[LabelKey, float] = field(default_factory=dict)
    has_warnings: bool = False
    error: str = ""


def evaluated(store: SeriesStore, expr: str, at_s: float, lookback_s: float = LOOKBACK_S) -> Outcome:
    try:
        result = evaluate(expr, store, at_s, lookback_s)
    except PromQLSyntaxError:
        return Outcome("bad_data")
    except PromQLError as error:
        return Outcome("execution", error=str(error))
    if isinstance(result, Scalar):
        return Outcome("scalar", {frozenset(): result.value}, bool(result.warnings))
    values = {label_key(one): float(value) for one, value in zip(result.labels, result.values, strict=True)}
    assert len(values) == len(result)
    return Outcome("vector", values, bool(result.warnings))


def asked(url: str, expr: str, at_s: float, lookback_s: float = LOOKBACK_S) -> Outcome:
    """Ask an instant query over HTTP."""
    parameters = {"query": expr, "time": repr(at_s), "lookback_delta": f"{round(lookback_s * 1000)}ms"}
    return outcome_of(_post(f"{url}/api/v1/query", parameters))


def outcome_of(answer: dict[str, Any]) -> Outcome:
    if answer["status"] == "error":
        kind = answer["errorType"]
        return Outcome(kind, error=answer["error"] if kind == "execution" else "")
    data, has_warnings = answer["data"], bool(answer.get("warnings"))
    if data["resultType"] == "scalar":
        return Outcome("scalar", {frozenset(): float(data["result"][1])}, has_warnings)
    assert data["resultType"] == "vector", data
    values = {label_key(series["metric"]): float(series["value"][1]) for series in data["result"]}
    assert len(values) == len(data["result"])
    return Outcome("vector", values, has_warnings)


def difference(ours: Outcome, theirs: Outcome) -> str:
    """Return in words how two outcomes differ, empty where they do not."""
    if (ours.kind, ours.error) != (theirs.kind, theirs.error):
        return f"{ours.kind} {ours.error!r} instead of {theirs.kind} {theirs.error!r}"
    if ours.values.keys() != theirs.values.keys():
        more, less = ours.values.keys() - theirs.values.keys(), theirs.values.keys() - ours.values.keys()
        return f"series that should not be: {list(map(dict, more))}; missing: {list(map(dict, less))}"
    for key, value in theirs.values.items():
        if not is_equal(ours.values[key], value):
            return f"{dict(key)}: {ours.values[key]!r} instead of {value!r}"
    if ours.has_warnings != theirs.has_warnings:
        return "warnings" if ours.has_warnings else "no warnings"
    return ""


def is_equal(a: float, b: float) -> bool:
    return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=RELATIVE_TOLERANCE, abs_tol=0.0)


def _post(url: str, parameters: dict[str, str]) -> dict[str, Any]:
    request = urllib.request.Request(url, data=urllib.parse.urlencode(parameters).encode())
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            answer: dict[str, Any] = json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            answer = json.load(error)
    return answer
