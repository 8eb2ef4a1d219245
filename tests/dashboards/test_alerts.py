"""The alert rules: promtool accepts them, each speaks and is quiet when it should, each has its runbook."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.dashboards.written import dashboards, panels

DEPLOY = Path(__file__).parents[2] / "deploy"
MONITORING = DEPLOY / "monitoring"
CASES = Path(__file__).parent / "alert_tests.yaml"
GROUPS: list[dict[str, Any]] = yaml.safe_load((MONITORING / "prometheusrule.yaml").read_text())["spec"]["groups"]
ALERTS: list[dict[str, Any]] = [alert for group in GROUPS for alert in group["rules"]]
RUNBOOKS = (MONITORING / "runbooks.md").read_text()


def anchor(heading: str) -> str:
    """Return the anchor of a heading as Markdown pages make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def write_rules(folder: Path, text: str | None = None) -> Path:
    """Write what the operator hands to Prometheus."""
    rules = folder / "rules.yaml"
    rules.write_text(text or yaml.safe_dump({"groups": GROUPS}))
    return rules


def promtool(programs: Path, *arguments: str | Path) -> tuple[int, str]:
    done = subprocess.run([programs / "promtool", *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_promtool_finds_nothing_to_object_to(programs: Path, tmp_path: Path) -> None:
    code, said = promtool(programs, "check", "rules", "--lint=all", "--lint-fatal", write_rules(tmp_path))
    assert code == 0, said


def test_alerts_speak_and_are_quiet(programs: Path, tmp_path: Path) -> None:
    write_rules(tmp_path)
    shutil.copy(CASES, tmp_path)
    code, said = promtool(programs, "test", "rules", tmp_path / CASES.name)
    assert code == 0, said


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: str(alert["alert"]))
def test_the_cases_notice_an_alert_that_never_speaks(programs: Path, tmp_path: Path, alert: dict[str, Any]) -> None:
    mute = [one if one is not alert else {**one, "expr": f"({one['expr']}) and vector(0) > 1"} for one in ALERTS]
    write_rules(tmp_path, yaml.safe_dump({"groups": [{"name": "vane", "rules": mute}]}))
    shutil.copy(CASES, tmp_path)
    code, said = promtool(programs, "test", "rules", tmp_path / CASES.name)
    assert code == 1
    assert alert["alert"] in said


def test_they_are_few_and_each_says_what_it_is_about() -> None:
    assert 8 <= len(ALERTS) <= 12
    assert len({alert["alert"] for alert in ALERTS}) == len(ALERTS)
    for alert in ALERTS:
        assert alert["alert"].startswith("Vane")
        assert alert["labels"]["severity"] in ("critical", "warning")
        assert alert["for"]
        assert 'job="vane"' in alert["expr"]
        assert alert["annotations"].keys() == {"summary", "description", "runbook_url"}
        assert all(text for text in alert["annotations"].values())


def test_every_alert_has_its_section_and_every_section_its_alert() -> None:
    sections = re.findall(r"^## (\w+)$\n(.*?)(?=^## |\Z)", RUNBOOKS, re.M | re.S)
    assert [name for name, _ in sections] == [alert["alert"] for alert in ALERTS]
    for name, text in sections:
        assert re.findall(r"^\*\*([A-Z][\w ]+)\.\*\* \S", text, re.M) == ["Meaning", "Impact", "Look at", "Do"], name
    for alert in ALERTS:
        path, _, fragment = alert["annotations"]["runbook_url"].partition("#")
        assert Path(__file__).parents[2] / path == MONITORING / "runbooks.md"
        assert fragment == anchor(alert["alert"])


def test_panels_that_the_runbooks_name_are_there() -> None:
    every = dashboards().values()
    titles = {panel["title"] for one in every for panel in one["panels"]}
    titles |= {one["title"].removeprefix("Vane / ") for one in every}
    assert all(panels(one) for one in every)
    named = {" ".join(name.split()) for name in re.findall(r"(?<!\*)\*([A-Z][^*]+)\*(?!\*)", RUNBOOKS)}
    assert len(named) > 10
    assert {name for name in named if not any(title.startswith(name) for title in titles)} == set()


def test_the_service_monitor_finds_the_service_and_gives_the_job_its_name() -> None:
    monitor = yaml.safe_load((MONITORING / "servicemonitor.yaml").read_text())["spec"]
    service = yaml.safe_load((DEPLOY / "base" / "service.yaml").read_text())
    labels = service["metadata"]["labels"]
    assert monitor["selector"]["matchLabels"].items() <= labels.items()
    assert labels[monitor["jobLabel"]] == "vane"
    assert monitor["namespaceSelector"]["matchNames"] == [service["metadata"]["namespace"]]
    ports = {port["name"] for port in service["spec"]["ports"]}
    assert {endpoint["port"] for endpoint in monitor["endpoints"]} <= ports
    assert {endpoint["path"] for endpoint in monitor["endpoints"]} == {"/metrics", "/metrics/resources"}
    assert all(endpoint["scheme"] == "https" and endpoint["bearerTokenFile"] for endpoint in monitor["endpoints"])


def test_the_pages_that_are_scraped_may_be_read() -> None:
    monitor = yaml.safe_load((MONITORING / "servicemonitor.yaml").read_text())["spec"]
    role = next(iter(yaml.safe_load_all((MONITORING / "metrics-reader.yaml").read_text())))
    (rule,) = role["rules"]
    assert set(rule["nonResourceURLs"]) == {endpoint["path"] for endpoint in monitor["endpoints"]}
    assert rule["verbs"] == ["get"]


def test_it_is_a_component_of_the_installation(programs: Path, tmp_path: Path) -> None:
    base, component = (os.path.relpath(DEPLOY / name, tmp_path) for name in ("base", "monitoring"))
    kustomization = {"resources": [base], "components": [component]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    built = subprocess.run(
        [programs / "kubectl", "kustomize", tmp_path], capture_output=True, text=True, check=False, timeout=60
    )
    assert built.returncode == 0, built.stderr
    objects = [(one["kind"], one["metadata"]["name"]) for one in yaml.safe_load_all(built.stdout)]
    assert {("ServiceMonitor", "vane"), ("PrometheusRule", "vane"), ("ClusterRole", "vane-metrics-reader")} <= {
        *objects
    }
    assert len(set(objects)) == len(objects)
