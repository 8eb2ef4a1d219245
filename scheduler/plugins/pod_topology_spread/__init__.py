"""PodTopologySpread: Pods that match are spread over the domains of a node label."""

from __future__ import annotations

from scheduler.plugins.pod_topology_spread.plugin import PodTopologySpread

__all__ = ["PodTopologySpread"]
