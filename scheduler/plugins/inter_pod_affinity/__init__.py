"""InterPodAffinity: nodes chosen by the Pods that run there, and by what those Pods say.

Read `plugin` first, then `own_terms` (which placed Pods the Pod to place means), `domains` (Pods summed by topology
key) and `carried_terms` (what placed Pods say about others, counted as they come and go) on its `term_table`. `hints`
says which events may help a Pod that was refused.
"""

from __future__ import annotations

from scheduler.plugins.inter_pod_affinity.plugin import InterPodAffinity

__all__ = ["InterPodAffinity"]
