"""A rule for the Pods of namespaces with certain labels, on a real API server."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.conftest import StartVane
from tests.support.kubeapi import KubeApi

RULES = """\
apiVersion: vane.dev/v1
kind: Rules
signals: {room: {allocatable: cpu}}
rules:
  - name: closed
    match:
      matchExpressions: [{key: urgent, operator: DoesNotExist}]
      namespaceSelector: {matchExpressions: [{key: team, operator: In, values: [web]}]}
    signal: room
    filter: {max: 0}
"""


def test_a_pod_is_freed_by_new_labels_of_its_namespace(api: KubeApi, start_vane: StartVane, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    api.create_node("node-1")
    api.create_namespace("shop", {"team": "web"})
    api.create_namespace("bank", {"team": "money"})
    start_vane(rules=[rules])
    api.create_pod("elsewhere", namespace="bank", scheduler_name="vane")
    api.create_pod("urgent", namespace="shop", labels={"urgent": ""}, scheduler_name="vane")
    api.create_pod("held", namespace="shop", scheduler_name="vane")
    api.wait_bound("elsewhere", "bank")
    api.wait_bound("urgent", "shop")
    refused = api.wait_for(lambda: api.events("held", "shop", "FailedScheduling"), what="the refusal")
    assert 'rejected by rule "closed"' in refused[0]["message"]
    assert "nodeName" not in api.pod("held", "shop")["spec"]

    api.patch("/api/v1/namespaces/shop", {"metadata": {"labels": {"team": "money"}}})
    assert api.wait_bound("held", "shop") == "node-1"
