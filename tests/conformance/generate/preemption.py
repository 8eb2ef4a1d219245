"""Parts about preemption: full nodes, priorities, budgets and nominations, those of gated Pods among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.conformance.generate.draw import APPS, Draw, Fields, moment, name_of
from tests.conformance.generate.volumes import DRIVER, bound_claim, ephemeral_claim, register, use

_PRIORITIES = (-10, 0, 0, 5, 100, 1000)
_LOWEST = -(2**31)


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


def close_calls(draw: Draw) -> None:
    """Let every node be a candidate that loses almost the same: which one loses least, one thing or two tell."""
    draw.objects["pods"] = []
    draw.target["spec"] |= {"priority": 3000, "containers": [draw.container("main", {"cpu": "4"})]}
    priorities = [draw.pick((0, 10)), *(draw.pick((-10, -5)) for _ in range(draw.count(1, 2)))]
    rivals = draw.pick(_RIVALS)
    all_protected = draw.often(0.4)
    for node in draw.nodes:
        node["status"]["allocatable"] |= {"cpu": "4", "memory": "8Gi", "pods": "110"}
        victims = [_victim(draw, node, priority) for priority in priorities]
        if all_protected:
            victims[0]["metadata"]["labels"]["protected"] = "yes"
        for change in draw.pick(rivals):
            change(draw, victims)
    protected = [name_of(pod) for pod in draw.placed if "protected" in pod["metadata"]["labels"]]
    disrupted = [name for name in protected if draw.often(0.4)]
    for i in range(draw.count(1, 2)):
        status: Fields = {"disruptionsAllowed": 0, "currentHealthy": 3, "desiredHealthy": 3, "expectedPods": 3}
        if i == 0 and draw.often(0.6):
            status["disruptedPods"] = dict.fromkeys(disrupted, moment(0))
        spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"protected": "yes"}}}
        metadata = {"name": f"protects-{i}", "namespace": "default"}
        draw.add("poddisruptionbudgets", {"metadata": metadata, "spec": spec, "status": status})


def _victim(draw: Draw, node: Fields, priority: int) -> Fields:
    pod = draw.pod(namespace="default", node=name_of(node), priority=priority, requests={"cpu": "100m"})
    pod["status"]["startTime"] = moment(-3600)
    return draw.add("pods", pod)


def _one_more(draw: Draw, victims: list[Fields]) -> None:
    """Add one to the number of victims and nothing to the sum of their priorities."""
    node = {"metadata": {"name": victims[0]["spec"]["nodeName"]}}
    victims.append(_victim(draw, node, _LOWEST))


def _one_above(_draw: Draw, victims: list[Fields]) -> None:
    victims[0]["spec"]["priority"] += 1


def _one_far_above(_draw: Draw, victims: list[Fields]) -> None:
    victims[0]["spec"]["priority"] += 2000


def _others_above(_draw: Draw, victims: list[Fields]) -> None:
    for victim in victims[1:]:
        victim["spec"]["priority"] = victims[0]["spec"]["priority"]


def _one_protected(draw: Draw, victims: list[Fields]) -> None:
    draw.pick(victims)["metadata"]["labels"]["protected"] = "yes"


def _one_later(draw: Draw, victims: list[Fields]) -> None:
    draw.pick(victims)["status"]["startTime"] = moment(-60 * draw.count(1, 59))


def _first_later(_draw: Draw, victims: list[Fields]) -> None:
    victims[0]["status"]["startTime"] = moment(-60)


def _all_later(_draw: Draw, victims: list[Fields]) -> None:
    for victim in victims:
        victim["status"]["startTime"] = moment(-1800)


_RIVALS: Sequence[Sequence[Sequence[Callable[[Draw, list[Fields]], None]]]] = (
    ((_one_protected,), (_one_far_above,)),
    ((_one_protected,), (_one_later,)),
    ((_one_above,), (_others_above,)),
    ((_one_more,), (_others_above,)),
    ((_one_more, _all_later), ()),
    ((_first_later,), (_all_later,)),
)
"""Ways to change the victims of a node, of which each node gets one; one loses more by this thing, another by that."""


def faults(draw: Draw) -> None:
    """Leave full nodes with volumes that cannot be told, of the target or of Pods that stay; the chain comes to them
    only once there is room.
    """
    everywhere, is_own = draw.often(0.5), draw.often(0.3)
    bound_claim(draw, "counted")
    use(draw.target, "counted")
    if is_own:
        odd = {"name": "odd", "azureDisk": {"diskName": "odd", "diskURI": "odd", "kind": "Dedicated"}}
        draw.target["spec"].setdefault("volumes", []).append(odd)
    for node in draw.nodes:
        if everywhere or draw.often(0.6):
            register(draw, node, [{"name": DRIVER, "nodeID": "x", "topologyKeys": None, "allocatable": {"count": 9}}])
            if not is_own:
                priority = draw.pick((5000, 5000, 5000, -10)) if not everywhere else 5000
                pod = draw.pod(node=name_of(node), priority=priority, requests={})
                ephemeral_claim(draw, draw.add("pods", pod), "foreign")


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
        if pod["spec"]["nodeName"] == name and draw.often(0.5):
            if draw.often(0.7):
                pod["metadata"]["deletionTimestamp"] = moment(0)
            kind = draw.pick(("DisruptionTarget", "DisruptionTarget", "PodReadyToStartContainers"))
            reason = draw.pick(("PreemptionByScheduler", "PreemptionByScheduler", "TerminationByKubelet"))
            status = draw.pick(("True", "True", "False"))
            pod["status"]["conditions"] = [{"type": kind, "status": status, "reason": reason}]
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
