"""Parts about room: requests of every kind, and what the API says of running Pods that are being resized."""

from __future__ import annotations

from tests.conformance.generate.draw import GPU, Draw, Fields

_HUGE = "hugepages-2Mi"
_POD_CPU = ("250m", "1", "1500m", "3")
_POD_MEMORY = ("256Mi", "1Gi", "2Gi", "3G")


def fuller(draw: Draw) -> None:
    """Fill the nodes so that requests begin to matter."""
    draw.add_pods(draw.count(len(draw.nodes), 4 * len(draw.nodes)))
    draw.target["spec"]["containers"][0]["resources"] = {"requests": draw.requests(big=True)}


def scalars(draw: Draw) -> None:
    for node in draw.nodes:
        offered = node["status"]["allocatable"]
        if draw.often(0.6):
            offered[GPU] = str(draw.count(0, 4))
        if draw.often(0.4):
            offered[_HUGE] = draw.pick(("0", "64Mi", "1Gi"))
        if draw.often(0.1):
            offered["pods"] = str(draw.count(0, 3))
        if draw.often(0.05):
            del offered[draw.pick(("cpu", "memory"))]
    for pod in draw.some(draw.placed, 0, 5):
        _request(pod["spec"]["containers"][0], {GPU: "1"})
    wanted = draw.some(
        ((GPU, "1"), (GPU, "2"), (_HUGE, "64Mi"), ("example.com/none", "0"), ("example.com/no", "1")), 1, 2
    )
    _request(draw.target["spec"]["containers"][0], dict(wanted))
    if draw.often(0.2):
        _request(draw.target["spec"]["containers"][0], {"ephemeral-storage": "60Gi"})


def _request(container: Fields, more: dict[str, str]) -> None:
    """Ask for more, with limits as the API server wants them: no overcommitment, hugepages not alone."""
    requests = container.setdefault("resources", {}).setdefault("requests", {})
    requests |= more
    if _HUGE in more:
        requests.setdefault("memory", "64Mi")
    container["resources"].setdefault("limits", {}).update(more)


def many_containers(draw: Draw) -> None:
    spec = draw.target["spec"]
    spec["containers"] += [draw.container(f"c{i}", draw.requests()) for i in range(draw.count(0, 2))]
    spec["initContainers"] = [draw.container(f"i{i}", draw.requests(big=True)) for i in range(draw.count(1, 3))]
    for container in spec["initContainers"]:
        if draw.often(0.5):
            container["restartPolicy"] = "Always"


def overhead(draw: Draw) -> None:
    draw.target["spec"] |= {"overhead": {"cpu": "300m", "memory": "500Mi"}, "runtimeClassName": "kata"}


def pod_level(draw: Draw) -> None:
    for pod in [draw.target, *draw.some(draw.placed, 0, 4)]:
        for container in [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]:
            if draw.often(0.7):
                container["resources"] = {"requests": {"cpu": "50m", "memory": "32Mi"}} if draw.often(0.7) else {}
        pod["spec"]["resources"] = {"requests": _amounts(draw)}
    for pod in draw.some([pod for pod in draw.placed if "resources" in pod["spec"]]):
        pod["status"] |= {"resources": {"requests": _amounts(draw)}, "allocatedResources": _amounts(draw)}


def _amounts(draw: Draw) -> Fields:
    return {"cpu": draw.pick(_POD_CPU), "memory": draw.pick(_POD_MEMORY)}


def resized(draw: Draw) -> None:
    """Let running Pods hold more, or less, than their specs say."""
    for pod in draw.some(draw.placed, 1):
        status: Fields = {"name": "main", "ready": True, "restartCount": 0, "image": "x", "imageID": "y"}
        if draw.often(0.8):
            status["resources"] = {"requests": _amounts(draw)}
        if draw.often(0.7):
            status["allocatedResources"] = _amounts(draw)
        pod["status"]["containerStatuses"] = [status]
        if draw.often(0.5):
            reason = draw.pick(("Infeasible", "Deferred"))
            pod["status"]["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]


def nothing(draw: Draw) -> None:
    """Ask for nothing, or for zero."""
    requests = draw.pick(({}, {"cpu": "0", "memory": "0"}, {"ephemeral-storage": "1Gi"}))
    draw.target["spec"]["containers"] = [draw.container("main", dict(requests))]


def far_too_much(draw: Draw) -> None:
    draw.target["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": "1000", "memory": draw.pick(("1Gi", "9Ti")), "ephemeral-storage": "9Ti"}
    }
