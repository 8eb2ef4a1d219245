"""PodTopologySpread: Pods that match are spread over the domains of a node label.

Read `plugin` first, then `constraints` (which ones hold for a Pod) and `domains` (which nodes count, and how many Pods
match in each domain). `hints` says which events may help a Pod that was refused.
"""

from __future__ import annotations

from scheduler.plugins.pod_topology_spread.plugin import PodTopologySpread

__all__ = ["PodTopologySpread"]
