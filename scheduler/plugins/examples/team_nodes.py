"""TeamNodes: keeps teams on nodes of their own. The example node by node."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.framework.events import Action, EventInterest, Resource
from scheduler.framework.per_node import NodeInfo, PerNodeFilter, PerNodeScore
from scheduler.model.pods import PodInfo

TEAM = "example.com/team"


class TeamNodes(PerNodeFilter, PerNodeScore):
    """Refuses nodes where another team's Pods run, and fills a team's nodes before it takes a new one."""

    def filter_node(self, pod: PodInfo, node: NodeInfo) -> str | None:
        team = pod.labels.get(TEAM)
        others = {other.labels.get(TEAM) for other in node.pods} - {team, None}
        return "node(s) belonged to another team" if team and others else None

    def score_node(self, pod: PodInfo, node: NodeInfo) -> float:
        team = pod.labels.get(TEAM)
        mates = [other for other in node.pods if team and other.labels.get(TEAM) == team]
        return min(100, 10 * len(mates))

    def events(self) -> Sequence[EventInterest]:
        return (
            EventInterest(Resource.NODE, Action.ADD),
            EventInterest(Resource.ASSIGNED_POD, Action.DELETE | Action.UPDATE_POD_LABEL),
            EventInterest(Resource.TARGET_POD, Action.UPDATE_POD_LABEL),
        )
