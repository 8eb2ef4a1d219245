"""What the line survives: lost watch events, processes that end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import StartVane
from tests.e2e.world import refuse_above, replace_file, rules
from tests.support import manifests
from tests.support.controlplane import ControlPlane
from tests.support.kubeapi import KubeApi
from tests.support.vane import VaneProcess
from tests.support.waiting import wait_until
from tests.support.watch_proxy import WatchProxy


@pytest.fixture
def proxy(control_plane: ControlPlane) -> Iterator[WatchProxy]:
    proxy = WatchProxy(control_plane)
    proxy.start()
    yield proxy
    proxy.stop()


def test_after_410_in_the_stream_nothing_is_lost_and_what_is_gone_is_gone(
    api: KubeApi, proxy: WatchProxy, start_vane: StartVane, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        api.create_node(name, cpu="2")
    vane = start_vane(kubeconfig=proxy.write_kubeconfig(tmp_path / "kubeconfig"))
    for i in range(4):
        api.create_pod(f"old-{i}", cpu="1", scheduler_name="vane")
        api.wait_bound(f"old-{i}")
    n_lists = len(proxy.lists)

    proxy.drop_watch_events()
    on_a = [f"old-{i}" for i in range(4) if api.placements()[f"old-{i}"] == "a"]
    for name in on_a:
        api.delete_pod(name, grace=0)
    api.delete("/api/v1/nodes/a")
    api.create_node("a", cpu="3")
    api.create_node("c", cpu="1")
    api.create_pods(manifests.pod(f"new-{i}", cpu="1", scheduler_name="vane") for i in range(4))
    proxy.expire_watches()

    placed = [api.wait_bound(f"new-{i}") for i in range(4)]
    assert sorted(placed) == ["a", "a", "a", "c"]
    vane.wait_for_metric('scheduler_cache_size{type="nodes"}', 3)
    vane.wait_for_metric('scheduler_cache_size{type="pods"}', 6)
    # One list of each kind: an expiry costs one, not a storm of them.
    assert sorted(proxy.lists[n_lists:]) == ["/api/v1/nodes", "/api/v1/pods"]


def test_sigterm_ends_all_processes_with_exit_code_0(api: KubeApi, start_vane: StartVane) -> None:
    api.create_node("a")
    vane = start_vane()
    children = _children(vane.process.pid)
    assert len(children) == 2

    vane.process.signal(signal.SIGTERM)

    assert vane.process.wait(15.0) == 0
    wait_until(lambda: not any(_is_alive(pid) for pid in children), 5.0, "the end of the children")


def test_children_do_not_outlive_a_killed_parent(api: KubeApi, start_vane: StartVane) -> None:
    api.create_node("a")
    vane = start_vane()
    children = _children(vane.process.pid)

    vane.process.signal(signal.SIGKILL)

    wait_until(lambda: not any(_is_alive(pid) for pid in children), 5.0, "the end of the children")


def test_without_its_binder_it_cannot_go_on(api: KubeApi, start_vane: StartVane) -> None:
    api.create_node("a")
    vane = start_vane()

    os.kill(_child(vane, "binder.process"), signal.SIGKILL)

    assert vane.process.wait(15.0) == 1
    assert "the binder process ended by itself" in vane.process.log_text()


def test_without_its_refresher_it_schedules_on_and_gets_a_new_one(
    api: KubeApi, start_vane: StartVane, tmp_path: Path
) -> None:
    api.create_node("a")
    rule_file = tmp_path / "rules.yaml"
    rule_file.write_text(rules())
    vane = start_vane(rules=[rule_file])
    replace_file(rule_file, rules(refuse_above(0.8)))
    vane.wait_for_metric("vane_rules_loaded", 1)
    refresher = _child(vane, "refresher_process")

    os.kill(refresher, signal.SIGKILL)

    api.create_pod("meanwhile", scheduler_name="vane")
    assert api.wait_bound("meanwhile") == "a"
    wait_until(vane.is_ready, 15.0, "the pages of the new refresher")
    assert _child(vane, "refresher_process") != refresher
    # It goes on from the rules in force: an edit is found, and nothing else is taken for one.
    replace_file(rule_file, rules(refuse_above(0.8), refuse_above(0.9, "second")))
    vane.wait_for_metric("vane_rules_loaded", 2)
    assert vane.process.log_text().count("rules are in force") == 2


def _children(pid: int) -> list[int]:
    return [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]


def _child(vane: VaneProcess, module: str) -> int:
    return next(pid for pid in _children(vane.process.pid) if module in Path(f"/proc/{pid}/cmdline").read_text())


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
