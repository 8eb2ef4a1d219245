"""`vane top` beside a running scheduler, a real API server and a real Prometheus."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from scheduler.cli.main import main
from tests.e2e.conftest import StartVane
from tests.e2e.world import MeasuredCluster, prefer_idle, refuse_above, replace_file, rules
from tests.support.vane import VaneProcess
from tests.support.waiting import wait_until


def top(vane: VaneProcess, *words: str) -> str:
    out, err = io.StringIO(), io.StringIO()
    code = main(["top", *words, "--url", f"https://127.0.0.1:{vane.port}"], {}, out, err)
    assert code == 0, err.getvalue()
    return out.getvalue()


def page(vane: VaneProcess, *words: str) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(top(vane, *words, "--output", "json"))
    return shown


def test_it_says_of_every_node_what_rules_read_and_of_every_signal_what_is_wrong(
    cluster: MeasuredCluster, start_vane: StartVane, tmp_path: Path
) -> None:
    hot, silent = cluster.nodes[3], cluster.nodes[7]
    cluster.set_cpu([hot], 0.95)
    rule_file = tmp_path / "rules.yaml"
    rule_file.write_text(rules(refuse_above(0.8), prefer_idle(5)))
    vane = start_vane(rules=[rule_file], prometheus=cluster.prometheus.url)
    vane.wait_for_metric('vane_signal_coverage_ratio{signal="node_cpu"}', 1)

    head, first, *_ = top(vane, "node_cpu").split("\n\n")[1].splitlines()
    assert head.split() == ["SIGNAL", "NODE", "VALUE", "PENDING", "AGE", "STATE", "RULES"]
    assert first.split()[:2] == ["node_cpu", hot]
    assert "avoid-hot-nodes: refused" in first
    (of_hot,) = page(vane, hot)["nodes"]
    assert abs(of_hot["value"] - 0.95) < 0.05
    assert [rule["verdict"] for rule in of_hot["rules"]] == ["refused", ""]
    assert of_hot["rules"][1]["score"] < 10

    # One exporter ends: its node lags, then lacks a sample, and the page knows why; the signal itself is well.
    cluster.exporter.set_down(silent)
    wait_until(lambda: page(vane, silent)["nodes"][0]["state"] in ("fading", "missing"), 15.0, "the node lags")
    wait_until(lambda: page(vane, silent)["nodes"][0]["state"] == "missing", 15.0, "the node lacks a sample")
    assert page(vane, silent)["nodes"][0]["why"] in ("no_series", "stale")

    # The query is edited to one that nothing answers.
    replace_file(rule_file, rules(refuse_above(0.8)).replace("node_cpu_seconds_total", "never_heard_of"))
    wait_until(lambda: page(vane)["signals"][0]["problems"] == ["empty"], 10.0, "no series")
    assert "no series; does Prometheus have these metrics?" in top(vane)
    vane.wait_for_metric('vane_signal_problem{problem="empty",signal="node_cpu"}', 1)
    assert "no series; does Prometheus have these metrics?" in vane.process.log_text()

    # Prometheus goes.
    cluster.prometheus.kill()
    wait_until(lambda: page(vane)["signals"][0]["pause"] == "outage", 15.0, "the outage")
    signal = page(vane)["signals"][0]
    assert signal["problems"] == ["unreachable"]
    assert "its server does not answer" in top(vane)
    assert all(node["state"] == "absent" or node["why"] for node in page(vane, "node_cpu")["nodes"])
