"""The webhook notifier in a running Vane: what a receiver gets, and what one that is down costs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import StartVane
from tests.kube.fake_api import FakeApi, fake_api, hangs, replies
from tests.support import manifests
from tests.support.kubeapi import KubeApi
from tests.support.vane import VaneProcess
from tests.support.waiting import wait_until

CONFIGURATION = """\
apiVersion: vane.dev/v1
kind: VaneConfiguration
scheduler:
  profiles:
    - schedulerName: vane
      plugins: {{multiPoint: {{enabled: [{{name: WebhookNotifier}}]}}}}
      pluginConfig: [{{name: WebhookNotifier, args: {{url: "{url}"}}}}]
"""


@pytest.fixture
def receiver() -> Iterator[FakeApi]:
    with fake_api() as server:
        yield server


@pytest.fixture
def vane(api: KubeApi, receiver: FakeApi, start_vane: StartVane, tmp_path: Path) -> VaneProcess:
    for i in range(12):
        api.create_node(f"n{i:02}")
    configuration = tmp_path / "vane.yaml"
    configuration.write_text(CONFIGURATION.format(url=f"{receiver.host}/hook"))
    return start_vane(flags=["--config", str(configuration)])


def place(api: KubeApi, prefix: str, count: int) -> dict[str, str]:
    """Create Pods and return the node of each by name, when all are bound."""
    names = {f"{prefix}-{i}" for i in range(count)}
    api.create_pods(manifests.pod(name, cpu="10m", memory="16Mi", scheduler_name="vane") for name in sorted(names))

    def bound() -> dict[str, str] | None:
        placed = {name: node for name, node in api.placements().items() if name in names}
        return placed if len(placed) == count else None

    return wait_until(bound, 60.0, f"{count} Pods {prefix}-* bound", interval=0.1) or {}


def test_each_bound_pod_is_told_once(api: KubeApi, vane: VaneProcess, receiver: FakeApi) -> None:
    receiver.script("POST", "/hook", replies(200, {}))
    placed = place(api, "web", 20)
    vane.wait_for_metric('vane_notifications_total{result="delivered"}', 20)
    events = [one.json for one in receiver.of("POST", "/hook")]
    assert {event["data"]["name"]: event["data"]["node"] for event in events} == placed
    assert len({event["id"] for event in events}) == len(events) == 20
    assert {(event["source"], event["type"]) for event in events} == {("/vane/kube-system/vane", "dev.vane.pod.bound")}


def test_a_receiver_that_hangs_costs_a_bounded_queue_and_no_bind(
    api: KubeApi, vane: VaneProcess, receiver: FakeApi
) -> None:
    receiver.script("POST", "/hook", hangs)
    assert len(place(api, "web", 1_200)) == 1_200
    vane.wait_for_metric('scheduler_schedule_attempts_total{profile="vane",result="scheduled"}', 1_200)

    def count(series: str) -> float:
        return vane.metric(series) or 0.0

    # Four requests at a time, each given up after 5 s and tried again: hardly any has come to its end so soon.
    wait_until(lambda: count('vane_notifications_total{result="dropped"}') >= 150, 15.0, "drops")
    assert 900 <= count("vane_notifications_pending") <= 1_000
    assert count('scheduler_schedule_attempts_total{profile="vane",result="error"}') == 0
