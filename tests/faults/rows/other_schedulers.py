"""A scheduler beside Vane that takes the same room."""

from __future__ import annotations

from collections.abc import Sequence

from tests.faults.bench.bench import Bench, Setting
from tests.faults.checker.evidence import Allowance
from tests.faults.row import Row
from tests.faults.rows import steps
from tests.support import manifests
from tests.support.manifests import Json

_STOCK, _SECOND, _OURS = "default-scheduler", "second-scheduler", "vane"
_OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "app", "uid": "00000000-0000-0000-0000-000000000001"}
_PODS = "/api/v1/namespaces/default/pods"


def one_room(bench: Bench) -> None:
    """Again and again two schedulers get a Pod at the same moment, with room for one of them."""
    n_trials = int(bench.seconds(100, 20))
    plane = bench.servers.control_plane
    for room in ("stock", "ours"):
        steps.create_room(bench, room, cpu="1")
    n_stock = n_ours = n_chosen_again = 0
    with plane.start_kube_scheduler(_named(_STOCK)), plane.start_kube_scheduler(_named(_SECOND)):
        for i in range(n_trials):
            n_stock += _collide(bench, f"stock-{i}", "stock", (_STOCK, _SECOND))
            steps.delete(bench, _of_trial(bench, f"stock-{i}"))
            has_collided = _collide(bench, f"ours-{i}", "ours", (_STOCK, _OURS))
            n_ours += has_collided
            n_chosen_again += has_collided and _is_chosen_again(bench, f"ours-{i}")
            steps.delete(bench, _of_trial(bench, f"ours-{i}"))
    bench.figure("trials of each pair", n_trials)
    # Told only: who gets a Pod in the same moment collides nearly always, whoever it is.
    bench.figure("collisions of two kube-schedulers, %", 100 * n_stock / n_trials)
    bench.figure("collisions of kube-scheduler and Vane, %", 100 * n_ours / n_trials)
    bench.figure("full nodes chosen again after one", n_chosen_again, at_most=0)
    bench.measure_recovery()


def _named(scheduler: str) -> Json:
    return {"profiles": [{"schedulerName": scheduler}]}


def _collide(bench: Bench, trial: str, room: str, schedulers: Sequence[str]) -> bool:
    """Give each scheduler a Pod that fills the room, and return whether more than one came into it."""
    bench.api.create_pods(_pod(f"{trial}-{scheduler}", room, scheduler) for scheduler in schedulers)

    def decided() -> list[Json]:
        pods = _of(bench, trial)
        return pods if all(pod["spec"].get("nodeName") or steps.refusal(pod) for pod in pods) else []

    pods = bench.until(decided, 20.0, f"decisions about {trial}")
    return sum("nodeName" in pod["spec"] for pod in pods) > 1


def _is_chosen_again(bench: Bench, trial: str) -> bool:
    """Refuse our Pod of a collision as a kubelet does, and return whether the next one of its owner comes there too."""
    failed = {"status": {"phase": "Failed", "reason": "OutOfcpu", "message": "Node didn't have enough resource: cpu"}}
    bench.api.patch(f"{_PODS}/{trial}-{_OURS}/status", failed)
    again = f"{trial}-again"
    bench.api.create_pods([_pod(again, "ours", _OURS)])

    def decided() -> Json | None:
        pod = bench.api.pod(again)
        return pod if pod["spec"].get("nodeName") or steps.refusal(pod) else None

    pod = bench.until(decided, 20.0, f"a decision about {again}")
    assert pod is not None
    return "nodeName" in pod["spec"]


def _pod(name: str, room: str, scheduler: str) -> Json:
    pod = manifests.pod(name, cpu="900m", scheduler_name=scheduler, grace=0, spec=steps.in_room(room))
    pod["metadata"]["ownerReferences"] = [_OWNER]
    return pod


def _of(bench: Bench, trial: str) -> list[Json]:
    return [pod for pod in bench.api.pods("default") if pod["metadata"]["name"].startswith(f"{trial}-")]


def _of_trial(bench: Bench, trial: str) -> list[str]:
    return [pod["metadata"]["name"] for pod in _of(bench, trial)]


ROWS = (Row("F02", "kube-scheduler bound for the same room", one_room, Setting(allowance=Allowance(stale_s=0.5))),)
