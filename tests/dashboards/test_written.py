"""What Grafana's dashboard-linter asks of a dashboard, and that the files are what their modules make of them.

Its rules stand in the public repository grafana/dashboard-linter; those for job and instance do not fit series of
other exporters, which `dashboards/.lint` says too.
"""

from __future__ import annotations

import re

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from dashboards.generate import files
from scheduler.promql.parse import parse
from tests.dashboards.test_alerts import ALERTS
from tests.dashboards.written import FOLDER, LABEL_VALUES, Json, dashboards, filled, panels, queries, variables
from tests.support.controlplane import ControlPlane
from tests.support.kubeapi import KubeApi
from tests.test_metrics import touched

UNITS = {
    "none", "short", "percent", "percentunit", "s", "ms", "bytes", "mbytes", "ops", "reqps", "watt", "celsius",
    "dateTimeFromNow",
}  # fmt: skip
FILES = sorted(dashboards())
EXPORTERS = ("node_", "DCGM_")
OURS = ("vane_", "scheduler_", "rest_client_", "leader_election_")
TARGET = {"cluster", "namespace", "job", "instance"}
SELECTOR = re.compile(r"([a-zA-Z_:][\w:]*)\{([^}]*)\}")


@pytest.fixture(params=FILES)
def dashboard(request: pytest.FixtureRequest) -> Json:
    return dashboards()[request.param]


def test_the_files_are_up_to_date() -> None:
    written = {path.name: path.read_text() for path in FOLDER.glob("*.json")}
    assert written == files(), "run: make dashboards"


def test_uids_titles_and_files_are_told_apart() -> None:
    every = dashboards()
    assert [f"{dashboard['uid']}.json" for dashboard in every.values()] == FILES
    assert len({dashboard["title"] for dashboard in every.values()}) == len(every) == 4
    assert all(len(dashboard["uid"]) <= 40 for dashboard in every.values())


def test_it_can_be_provisioned(dashboard: Json) -> None:
    assert "__inputs" not in dashboard
    assert dashboard.get("id") is None
    assert dashboard["editable"] is False
    assert dashboard["refresh"]
    assert dashboard["time"] == {"from": "now-1h", "to": "now"}
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)


def test_there_is_one_data_source_and_everything_asks_it(dashboard: Json) -> None:
    sources = [variable for variable in dashboard["templating"]["list"] if variable["type"] == "datasource"]
    assert [(one["name"], one["label"], one["query"]) for one in sources] == [
        ("datasource", "Data source", "prometheus")
    ]
    askers = [*variables(dashboard), *panels(dashboard)]
    askers += [target for panel in panels(dashboard) for target in panel["targets"]]
    for asker in askers:
        assert asker["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, asker


def test_job_and_instance_can_be_chosen(dashboard: Json) -> None:
    labels = {variable["name"]: variable["label"] for variable in variables(dashboard)}
    assert labels["cluster"] == "Cluster"
    assert labels["job"] == "Job"
    assert labels["instance"] == "Instance"
    for variable in variables(dashboard):
        assert variable["multi"], variable["name"]
        assert variable["includeAll"], variable["name"]
        assert variable["allValue"] == (".*" if variable["name"] in ("cluster", "namespace") else ".+")
        assert variable["refresh"] == 2, "when the time range changes"
        assert LABEL_VALUES.fullmatch(variable["query"]), variable["query"]


def test_every_variable_is_used(dashboard: Json) -> None:
    asked = " ".join(target["expr"] for panel in panels(dashboard) for target in panel["targets"])
    unused = [one["name"] for one in variables(dashboard) if f"${one['name']}" not in asked]
    assert unused == []


def test_every_panel_says_what_it_shows(dashboard: Json) -> None:
    titles = [panel["title"] for panel in panels(dashboard)]
    assert len(set(titles)) == len(titles)
    for panel in panels(dashboard):
        assert panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS, panel["title"]
        assert panel["targets"], panel["title"]
        assert all(target["legendFormat"] for target in panel["targets"]), panel["title"]


def test_panels_fill_the_grid_and_never_overlap(dashboard: Json) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not taken & cells, panel["title"]
        taken |= cells
    assert {x for x, _ in taken} == set(range(24))
    assert len(taken) == 24 * (1 + max(y for _, y in taken))


@pytest.mark.parametrize("asked", queries(), ids=lambda asked: f"{asked.dashboard}-{asked.panel}")
def test_every_query_is_promql_over_the_chosen_replicas(asked: tuple[str, str, str, str]) -> None:
    _, _, expr, legend = asked
    assert not parse(filled(expr)).needs
    windows = re.findall(r"\[([^\]]+)\]", expr)
    assert set(windows) <= {"$__rate_interval"}
    assert all('cluster=~"$cluster"' in matchers for _, matchers in SELECTOR.findall(expr))
    for metric, matchers in SELECTOR.findall(expr):
        if not metric.startswith(EXPORTERS):
            assert 'job=~"$job", instance=~"$instance"' in matchers, metric
        if metric.endswith(("_total", "_bucket", "_sum", "_count")):
            assert f"rate({metric}" in expr, "a counter is asked for its rate"
    for label in re.findall(r"\{\{(\w+)\}\}", legend):
        assert re.search(rf"\b{label}\b", expr), f"the legend's {label} is not in the query"


def test_metrics_and_labels_exist_even_where_only_a_fault_brings_a_series() -> None:
    labels_of = vane_metrics()
    asked = [(asked.panel, asked.expr) for asked in queries()] + [(one["alert"], one["expr"]) for one in ALERTS]
    wrong = []
    for title, expr in asked:
        found = [(name, matchers) for name, matchers in SELECTOR.findall(expr) if name.startswith(OURS)]
        wrong += [(title, name) for name, _ in found if name not in labels_of]
        for name, matchers in found:
            matched = set(re.findall(r"(\w+)(?:=|!)", matchers))
            wrong += [(title, f"{name} has no label {label}") for label in matched - labels_of.get(name, TARGET)]
        known = TARGET.union(*(labels_of.get(name, ()) for name, _ in found))
        grouped = {label for by in re.findall(r"\bby \(([^)]+)\)", expr) for label in by.split(", ")}
        wrong += [(title, f"none has a label {label}") for label in grouped - known if found]
    assert wrong == []


def vane_metrics() -> dict[str, set[str]]:
    """Return series name -> labels of all that is kept, whether anything has brought a series yet or not."""
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(touched()):
        for sample in family.samples:
            found.setdefault(sample.name, set(TARGET)).update(sample.labels)
    return found


def test_what_the_linter_is_told_to_leave_out_has_a_reason() -> None:
    excluded = yaml.safe_load((FOLDER / ".lint").read_text())["exclusions"]
    balance = dashboards()["vane-balance.json"]
    assert set(excluded) == {"target-job-rule", "target-instance-rule"}
    for rule in excluded.values():
        assert rule["reason"]
        assert [entry["dashboard"] for entry in rule["entries"]] == [balance["title"]]


def test_the_sidecar_gets_every_file_as_it_is(api: KubeApi, control_plane: ControlPlane) -> None:
    api.create_namespace("monitoring")
    applied = control_plane.kubectl("apply", "-k", str(FOLDER))
    assert applied.wait(60.0) == 0, applied.log_text()
    maps = api.list("/api/v1/namespaces/monitoring/configmaps", labelSelector="grafana_dashboard=1")
    assert {name: text for one in maps for name, text in one["data"].items()} == files()
