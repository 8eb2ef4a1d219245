"""`vane check --prometheus` between a real Prometheus and a real API server."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path

import pytest

from scheduler.cli.main import main
from tests.evaluator.remote_write import remote_write
from tests.support import manifests
from tests.support.controlplane import ControlPlane
from tests.support.kubeapi import KubeApi
from tests.support.plugin import StartPrometheus
from tests.support.ports import free_port
from tests.support.prometheus import PrometheusServer

RULES = """apiVersion: vane.dev/v1
kind: Rules
signals:
  use: {expr: 'max by (node) (use)', unit: ratio, range: [0, 1]}
  zone_p99: {expr: 'max by (zone) (p99)', by: topology.kubernetes.io/zone, unit: ms}
  burn: {expr: max(burn), by: cluster}
  nobody: {expr: max by (node) (nobody)}
  twice: {expr: 'max by (node, disk) (disk)'}
  requested: {requested: cpu}
rules:
  - name: hot
    signal: use
    filter: {max: 80%}
    score: {best: 0, worst: 1}
    weight: {signal: burn, points: [[0, 1], [2, 21]]}
  - {name: measured, signal: nobody, filter: {max: 1, missing: reject}}
  - {name: fast, signal: zone_p99, filter: {max: 500ms, valve: 10%}, score: {best: 0, worst: 1s}, mode: shadow}
  - {name: one-disk, signal: twice, filter: {max: 1}}
  - {name: half, signal: requested, filter: {max: 4}}
"""


@pytest.fixture
def written_s() -> float:
    """The monotonic moment after which the samples are written."""
    return time.monotonic()


@pytest.fixture
def prometheus(start_prometheus: StartPrometheus, written_s: float) -> PrometheusServer:
    del written_s  # it comes first
    server = start_prometheus(flags=["--web.enable-remote-write-receiver"])
    now_ms = int(time.time() * 1000)  # noqa: TID251  # samples of a real Prometheus, which goes by the wall clock
    values = {
        ("use", "node", "node-1"): 0.5,
        ("use", "node", "node-2"): 0.9,
        ("use", "node", "node-9"): 0.9,
        ("use", "node", "node-3"): 7.0,
        ("p99", "zone", "a"): 600.0,
        ("p99", "zone", "moon"): 1.0,
        ("burn", "", ""): 2.0,
    }
    samples = [
        ({"__name__": name, label or "job": value or "x"}, now_ms, number)
        for (name, label, value), number in values.items()
    ]
    samples += [({"__name__": "disk", "node": "node-1", "disk": disk}, now_ms, 0.0) for disk in ("sda", "sdb")]
    remote_write(server.url, samples)
    return server


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.yaml"
    path.write_text(RULES)
    return path


def check(rules: Path, *flags: str, environ: dict[str, str] | None = None) -> tuple[int, list[str]]:
    out, err = io.StringIO(), io.StringIO()
    code = main(["check", str(rules), *flags], environ or {}, out, err)
    assert not err.getvalue()
    return code, [" ".join(line.split()).replace(f"{rules}:", "") for line in out.getvalue().splitlines()]


def test_on_a_cluster(
    rules: Path, prometheus: PrometheusServer, api: KubeApi, control_plane: ControlPlane, written_s: float
) -> None:
    zones = {"node-1": "a", "node-2": "a", "node-3": "b", "node-4": "b"}
    api.create_nodes(manifests.node(name, labels={"topology.kubernetes.io/zone": zone}) for name, zone in zones.items())
    api.create_pod("big", cpu="5", node_name="node-1")

    flags = ("--prometheus", prometheus.url, "--kubeconfig", str(control_plane.kubeconfig_path))
    code, lines = check(rules, *flags)

    assert code == 0
    assert any(line.endswith("Compared with 4 nodes and 1 Pods of " + line.rpartition(" ")[2]) for line in lines)
    signals = {line.split()[0]: line for line in lines[lines.index(_head(lines, "SERIES")) + 1 :] if line}
    assert _without_time(signals["use"], written_s) == "use 4 2/4 range 1, unmapped 1 age 1m 4"
    assert _without_time(signals["zone_p99"], written_s) == "zone_p99 2 2/4 - age 1m 2"
    assert _without_time(signals["burn"], written_s) == "burn 1 - - age 1m 1"
    assert _without_time(signals["nobody"], written_s) == "nobody 0 0/4 - - 1m 0"
    assert _without_time(signals["twice"], written_s) == "twice 2 0/4 duplicate 2 - 1m 2"
    assert "requested" not in signals
    judged = lines[lines.index("RULE REFUSES NOW WEIGHT NOW CAPPED TO SHARE") + 1 :]
    # 3/7 of the 13 that the plugins of the default chain weigh; the rule in shadow takes no part.
    assert judged[:5] == [
        "hot 1/4 21 5.571 30%",
        "measured 4/4 - - -",
        "fast 2/4, but for its valve - - -",
        "one-disk 0/4 - - -",
        "half 1/4 - - -",
    ]
    assert judged[6:] == [
        "4:3: signal 'use': 1 of 4 series name no node of this cluster, as {node=\"node-9\"}",
        "4:3: signal 'use': 2 of 4 nodes get no value",
        "5:3: signal 'zone_p99': 1 of its series have a value of topology.kubernetes.io/zone that no node has, as moon",
        "5:3: signal 'zone_p99': 2 of 4 nodes get no value",
        "7:3: signal 'nobody': no series. Nothing exports the metric, or a label in the query differs",
        "8:3: signal 'twice': 2 series share a node. Aggregate in the query, or write `reduce: max`",
        "8:3: signal 'twice': 4 of 4 nodes get no value",
        "11:5: rule 'hot': weighs 5.571 instead of 21, its share would be above 30%. Write `max_share: …` for more",
        "16:5: rule 'measured': refuses every node now, by its limits or for lack of samples",
        "5 signals, 0 without an answer, 9 notes",
    ]


def test_without_a_cluster(rules: Path, prometheus: PrometheusServer, tmp_path: Path, written_s: float) -> None:
    kubeconfig = tmp_path / "none"
    code, lines = check(rules, "--prometheus", prometheus.url, "--kubeconfig", str(kubeconfig))
    assert code == 0
    assert any("No cluster to compare with: " in line and str(kubeconfig) in line for line in lines)
    (use,) = (line for line in lines if line.startswith("use 4 "))
    assert _without_time(use, written_s) == "use 4 - 1m 4"
    assert "hot 21 5.571 30%" in lines


def test_a_signal_without_an_answer_gives_one(rules: Path, prometheus: PrometheusServer, tmp_path: Path) -> None:
    rules.write_text(RULES.replace("max by (node) (nobody)", "max by (node) (use) * on () group_left () use"))
    flags = ("--prometheus", prometheus.url, "--kubeconfig", str(tmp_path / "none"))
    code, lines = check(rules, *flags)
    assert code == 1
    (said,) = (line for line in lines if "signal 'nobody': no answer" in line)
    assert "HTTP 422, execution: " in said
    assert lines[-1].startswith("5 signals, 1 without an answer, ")

    out = io.StringIO()
    assert main(["check", str(rules), *flags, "-o", "json"], {}, out, io.StringIO()) == 1
    findings = json.loads(out.getvalue())["findings"]
    assert {one["severity"] for one in findings if "'nobody'" in one["message"]} == {"error"}
    assert {one["severity"] for one in findings if "'nobody'" not in one["message"]} == {"warning"}

    prometheus.stop()
    code, lines = check(rules, *flags)
    assert code == 1
    assert sum("no answer: NewConnectionError" in line for line in lines) == 5


def test_further_servers_by_name(rules: Path, prometheus: PrometheusServer, tmp_path: Path, written_s: float) -> None:
    rules.write_text(RULES.replace("expr: max(burn)", "server: edge, expr: max(burn)"))
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: vane.dev/v1\nkind: VaneConfiguration\n"
        f"prometheus: {{url: 'http://127.0.0.1:{free_port()}', servers: [{{name: edge, url: '{prometheus.url}'}}]}}\n"
    )
    code, lines = check(rules, "--config", str(config), "--kubeconfig", str(tmp_path / "none"))
    assert code == 1
    (burn,) = (line for line in lines if line.startswith("burn edge"))
    assert _without_time(burn, written_s) == "burn edge 1 age 1m 1"
    assert lines[-1].startswith("5 signals, 4 without an answer, ")
    rules.write_text(RULES.replace("expr: max(burn)", "server: egde, expr: max(burn)"))
    code, lines = check(rules, "--config", str(config))
    assert code == 1
    assert any('did you mean "edge"' in line for line in lines), lines


def test_mistakes_in_files_are_told_and_nobody_is_asked(rules: Path) -> None:
    rules.write_text(RULES.replace("signal: nobody", "signal: nobdy"))
    code, lines = check(rules, "--prometheus", f"http://127.0.0.1:{free_port()}")
    assert code == 1
    assert any("16:30: rule 'measured', signal: unknown signal, got 'nobdy'" in line for line in lines)
    assert not any("Asked" in line for line in lines)


def _head(lines: list[str], word: str) -> str:
    return next(line for line in lines if line.startswith("SIGNAL ") and word in line)


def _without_time(line: str, written_s: float) -> str:
    """Return a line without how long the query took, and `age` for an age that can be true."""
    words = [word for word in line.split() if not word.endswith("ms")]
    oldest_s = time.monotonic() - written_s
    return " ".join("age" if word in {f"{s}s" for s in range(round(oldest_s) + 1)} else word for word in words)


KEYED = """apiVersion: vane.dev/v1
kind: Rules
signals:
  cards: {expr: 'max by (node, gpu) (card)', by: gpu, unit: percent}
  latency: {expr: 'max by (node, app) (latency)', by: workload, workload: {label: app}}
  rtt: {expr: 'max by (from, to) (rtt)', by: pair, pair: {from: from, to: to, label: topology.kubernetes.io/zone}}
rules:
  - {name: busy-cards, signal: cards, filter: {max: 90}}
  - {name: slow-here, signal: latency, workload: app, score: {best: 0, worst: 1}}
  - {name: far-away, signal: rtt, calls: {pod_label: zone}, score: {best: 0, worst: 1}}
"""


def test_signals_that_pods_read_by_a_key_of_their_own(
    rules: Path, start_prometheus: StartPrometheus, api: KubeApi, control_plane: ControlPlane, written_s: float
) -> None:
    api.create_nodes(manifests.node(f"node-{i}", labels={"topology.kubernetes.io/zone": "a"}) for i in range(3))
    rules.write_text(KEYED)
    prometheus = start_prometheus(flags=["--web.enable-remote-write-receiver"])
    now_ms = int(time.time() * 1000)  # noqa: TID251  # as above
    series = [
        {"__name__": "card", "node": "node-0", "gpu": "0"},
        {"__name__": "card", "node": "node-0", "gpu": "1"},
        {"__name__": "card", "node": "node-1", "gpu": "0"},
        {"__name__": "latency", "node": "node-2", "app": "web"},
        {"__name__": "latency", "node": "elsewhere", "app": "web"},
        {"__name__": "rtt", "from": "a", "to": "b"},
    ]
    remote_write(prometheus.url, [(labels, now_ms, 0.5) for labels in series])

    code, lines = check(rules, "--prometheus", prometheus.url, "--kubeconfig", str(control_plane.kubeconfig_path))
    assert code == 0, lines
    signals = {
        line.split()[0]: _without_time(line, written_s)
        for line in lines[lines.index(_head(lines, "SERIES")) + 1 :]
        if line
    }
    assert signals["cards"] == "cards 3 2/3 - age 1m 3"
    assert signals["latency"] == "latency 2 1/3 unmapped 1 age 1m 2"
    assert signals["rtt"] == "rtt 1 - - age 1m 1"
    assert "busy-cards by Pod - -" in lines
    assert "slow-here - 1 7%" in lines
    assert any(
        '1 of 2 series name no node and workload of this cluster, as {app="web", node="elsewhere"}' in line
        for line in lines
    )


def test_a_label_that_the_answer_does_not_have_is_told(
    rules: Path, prometheus: PrometheusServer, tmp_path: Path
) -> None:
    text = RULES.replace("unit: ratio, range", "node_label: host, unit: ratio, range").replace(
        "max by (node) (use)", "use"
    )
    rules.write_text(text.replace("'max by (node, disk) (disk)'", "'max by (node, disk) (disk)', node_label: disk"))
    _, lines = check(rules, "--prometheus", prometheus.url, "--kubeconfig", str(tmp_path / "none"))
    told = [line for line in lines if "have no label" in line]
    assert told == [
        "4:3: signal 'use': 4 of 4 series have no label host: one has node. Write as `node_label` one that all"
        " of them have, or let the query keep it"
    ]
