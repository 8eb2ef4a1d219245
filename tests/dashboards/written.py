"""The dashboards as they are committed, and Grafana's variables put in."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

FOLDER = Path(__file__).parents[2] / "dashboards"

Json = dict[str, Any]

LABEL_VALUES = re.compile(r"label_values\((?P<series>.+), (?P<label>\w+)\)")


class Asked(NamedTuple):
    """One query of one panel."""

    dashboard: str
    panel: str
    expr: str
    legend: str


def dashboards() -> dict[str, Json]:
    """Return file name -> dashboard."""
    return {path.name: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}


def panels(dashboard: Json) -> list[Json]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def queries() -> list[Asked]:
    """Return every query of every panel, variables not put in."""
    return [
        Asked(dashboard["title"], panel["title"], target["expr"], target["legendFormat"])
        for dashboard in dashboards().values()
        for panel in panels(dashboard)
        for target in panel["targets"]
    ]


def variables(dashboard: Json) -> list[Json]:
    return [variable for variable in dashboard["templating"]["list"] if variable["type"] == "query"]


def filled(expr: str, rate_interval: str = "5m", chosen: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return PromQL with "All" put in for each variable, as every dashboard opens, but where a value is chosen."""
    everything: dict[str, str] = {
        variable["name"]: variable["allValue"] for one in dashboards().values() for variable in variables(one)
    }
    expr = expr.replace("$__rate_interval", rate_interval)
    for name, pattern in {**everything, **chosen}.items():
        expr = re.sub(rf"\${name}\b", pattern, expr)
    return expr
