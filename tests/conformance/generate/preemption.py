"""Parts about preemption: full nodes, priorities, budgets and nominations, those of gated Pods among them."""

from __future__ import annotations

from tests.conformance.generate.draw import APPS, Draw, Fields, moment, name_of

_PRIORITIES = (-10, 0, 0, 5, 100, 1000)


def full_nodes(draw: Draw) -> None:
    """Fill every node with Pods of many priorities, so that the target needs a place to be made."""
    draw.target["spec"]["priority"] = draw.pick((-5, 50, 500, 2000, 2000))
    wanted = {"cpu": draw.pick(("1", "1500m", "2", "3")), "memory": draw.pick(("512Mi", "1Gi", "3Gi"))}
    draw.target["spec"]["containers"] = [draw.container("main", wanted)]
    alike = draw.often(0.25)
    for node in draw.nodes:
        offered = {
            "cpu": "4" if alike else draw.pick(("2", "4")),
            "memory": "8Gi",
            "pods": draw.pick(("110", "110", "4")),
        }
        node["status"]["allocatable"] |= offered
        free = int(offered["cpu"]) * 1000
        while free > 0:
            size = min(free, 1000 if alike else draw.pick((250, 500, 1000, 1500)))
            free -= size
            pod = draw.pod(node=name_of(node), priority=draw.pick(_PRIORITIES), requests={"cpu": f"{size}m"})
            pod["status"]["startTime"] = moment(-3600 if alike else -60 * draw.count(1, 500))
            draw.add("pods", pod)
            if draw.often(0.05):
                del pod["spec"]["priority"]


def budgets(draw: Draw) -> None:
    """Add budgets; no two of a namespace choose a common Pod, since then Go's map order decides which is charged."""
    for namespace in ("default", "team-a"):
        for app in draw.some(APPS, 1, 3):
            status: Fields = {
                "disruptionsAllowed": draw.pick((0, 0, 1, 2)), "currentHealthy": 3, "desiredHealthy": 2,
                "expectedPods": 3,
            }  # fmt: skip
            if draw.often(0.2):
                status["disruptedPods"] = {name_of(pod): moment(0) for pod in draw.some(draw.placed, 0, 6)}
            draw.add(
                "poddisruptionbudgets",
                {
                    "metadata": {"name": f"pdb-{app}", "namespace": namespace},
                    "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": app}}},
                    "status": status,
                },
            )


def overlapping_budgets(draw: Draw) -> None:
    """Add budgets of every selector, several for one Pod: which of them is charged first is chance."""
    app = draw.pick(APPS)
    selectors: tuple[Fields, ...] = (
        {}, {"matchLabels": {"app": app}},
        {"matchExpressions": [{"key": "app", "operator": "In", "values": [app, "x"]}]},
        {"matchExpressions": [{"key": "app", "operator": "Exists"}]}, {"matchLabels": {"app": "nobody"}},
        {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]},
    )  # fmt: skip
    for i, selector in enumerate(draw.some(selectors, 1, 3)):
        allowed = draw.pick((0, 0, 1, 5, -1))
        status: Fields = {"disruptionsAllowed": allowed, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3}
        spec: Fields = {"minAvailable": 1} | ({"selector": selector} if draw.often(0.9) else {})
        metadata = {"name": f"pdb-{i}", "namespace": draw.pick(("default", "default", "team-a"))}
        draw.add("poddisruptionbudgets", {"metadata": metadata, "spec": spec, "status": status})


def plain_victims(draw: Draw) -> None:
    """Let some Pods have no start, no labels, the target's own priority, or the lowest and highest there are."""
    own = draw.target["spec"].get("priority", 0)
    for pod in draw.some(draw.placed):
        if draw.often(0.4):
            del pod["status"]["startTime"]
        if draw.often(0.3):
            del pod["metadata"]["labels"]
        if draw.often(0.5):
            pod["spec"]["priority"] = draw.pick((own, own - 1, own + 1, -(2**31), 2_000_001_000))
    if draw.often(0.2):
        draw.target["spec"]["priority"] = draw.pick((2_000_001_000, -(2**31), 0))
    elif draw.often(0.1):
        del draw.target["spec"]["priority"]


def terminating(draw: Draw) -> None:
    for pod in draw.some(draw.placed, 0, 6):
        pod["metadata"] |= {"deletionTimestamp": moment(0), "deletionGracePeriodSeconds": 30}
        if draw.often(0.8):
            reason = draw.pick(("PreemptionByScheduler", "PreemptionByScheduler", "EvictionByEvictionAPI"))
            status = draw.pick(("True", "True", "False"))
            pod["status"]["conditions"] = [{"type": "DisruptionTarget", "status": status, "reason": reason}]


def never(draw: Draw) -> None:
    draw.target["spec"]["preemptionPolicy"] = "Never"


def own_nomination(draw: Draw) -> None:
    """Nominate the target to a node: with room or full, cordoned, or gone; victims there may be on their way out."""
    name = draw.node_name() if draw.often(0.9) else "gone-node"
    draw.target["status"]["nominatedNodeName"] = name
    if draw.often(0.4):
        draw.target["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "10m"}}
    for node in draw.nodes:
        if name_of(node) == name and draw.often(0.2):
            node["spec"]["unschedulable"] = True
    for pod in draw.placed:
        if pod["spec"]["nodeName"] == name and draw.often(0.35):
            pod["metadata"]["deletionTimestamp"] = moment(0)
            reason = draw.pick(("PreemptionByScheduler", "TerminationByKubelet"))
            pod["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True", "reason": reason}]
            pod["spec"]["priority"] = draw.pick((-10, 0, 5000))


def other_nominations(draw: Draw) -> None:
    """Add pending Pods with a nomination, below and above the target's priority; a gated one counts like any."""
    priority = draw.target["spec"].get("priority", 0)
    for _ in range(draw.count(1, 4)):
        pod = draw.pod(
            namespace="default",
            priority=draw.pick((-20, 0, priority, priority + 1, 5000)),
            requests={"cpu": draw.pick(("500m", "1", "2"))},
        )
        pod["status"]["nominatedNodeName"] = draw.node_name()
        if draw.often(0.4):
            pod["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
            draw.tags.append("gated nomination")
        draw.add("pods", pod)


def some_free_nodes(draw: Draw) -> None:
    """Empty a few nodes, so that only nominations stand in the way there."""
    names = {name_of(node) for node in draw.some(draw.nodes, 1, 2)}
    draw.objects["pods"] = [pod for pod in draw.pods if pod["spec"].get("nodeName") not in names]
