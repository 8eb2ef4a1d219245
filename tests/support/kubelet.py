from __future__ import annotations

import datetime
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tests.support.kubeapi import STRATEGIC_MERGE_PATCH, ApiError, KubeApi, Watch
from tests.support.manifests import Json


class TestKubelet:
    """Stands in for the kubelets of all nodes: runs bound Pods and finishes their graceful deletion.

    Parameters
    ----------
    termination_delay
        How long a Pod keeps running after its deletion was asked for; may be changed at any time.
    """

    __test__ = False

    def __init__(self, api: KubeApi, termination_delay: float = 0.0, threads: int = 4) -> None:
        self.termination_delay = termination_delay
        self.errors: list[str] = []
        self._api = api
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="kubelet")
        self._stopping = threading.Event()
        self._watch: Watch | None = None
        self._started: set[str] = set()
        self._terminating: set[str] = set()
        self._timers: list[threading.Timer] = []
        self._thread = threading.Thread(target=self._run, name="kubelet-watch", daemon=True)

    def start(self) -> None:
        listed = self._api.get("/api/v1/pods")
        self._watch = self._api.watch("/api/v1/pods", listed["metadata"]["resourceVersion"])
        for pod in listed["items"]:
            self._sync(pod)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._watch is not None:
            self._watch.close()
        if self._thread.ident is not None:
            self._thread.join(timeout=10)
        for timer in self._timers:
            timer.cancel()
        for timer in self._timers:
            timer.join()
        self._executor.shutdown(cancel_futures=True)

    def _run(self) -> None:
        assert self._watch is not None
        for event in self._watch:
            if event["type"] in ("ADDED", "MODIFIED"):
                self._sync(event["object"])
            elif event["type"] == "ERROR":
                self.errors.append(f"watch: {event['object']}")
        if not self._stopping.is_set():
            self.errors.append("the watch of Pods ended")

    def _sync(self, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        if not pod["spec"].get("nodeName"):
            return
        if "deletionTimestamp" in pod["metadata"]:
            if uid not in self._terminating:
                self._terminating.add(uid)
                self._terminate(pod)
        elif pod.get("status", {}).get("phase") == "Pending" and uid not in self._started:
            self._started.add(uid)
            self._executor.submit(self._do, self._report_running, pod)

    def _terminate(self, pod: Json) -> None:
        if self.termination_delay <= 0:
            self._executor.submit(self._do, self._finish_deletion, pod)
            return
        timer = threading.Timer(self.termination_delay, self._do, (self._finish_deletion, pod))
        timer.daemon = True
        self._timers.append(timer)
        timer.start()

    def _do(self, action: Callable[[Json], None], pod: Json) -> None:
        try:
            action(pod)
        except ApiError as error:
            # Gone, or another Pod of that name: nothing of this one is left to do.
            if error.status not in (404, 409):
                self.errors.append(str(error))
        except Exception:  # noqa: BLE001 - a thread of the pool has nobody above it; the fixture reports these
            self.errors.append(traceback.format_exc())

    def _report_running(self, pod: Json) -> None:
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        containers = [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "containerID": f"test://{pod['metadata']['uid']}/{container['name']}",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": now}},
            }
            for container in pod["spec"]["containers"]
        ]
        conditions = [
            {"type": type_, "status": "True", "lastTransitionTime": now}
            for type_ in ("Initialized", "ContainersReady", "Ready")
        ]
        status = {"phase": "Running", "startTime": now, "containerStatuses": containers, "conditions": conditions}
        patch = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        self._api.patch(f"{_path(pod)}/status", patch, STRATEGIC_MERGE_PATCH)

    def _finish_deletion(self, pod: Json) -> None:
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
        self._api.delete(_path(pod), {"apiVersion": "v1", "kind": "DeleteOptions", **options})


def _path(pod: Json) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
