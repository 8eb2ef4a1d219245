"""DefaultPreemption: Pods of lower priority that have to go so that a Pod fits on a node.

Read `plugin` first, then `disruption_budgets`, which says whose eviction breaks a PodDisruptionBudget.
"""

from __future__ import annotations

from scheduler.plugins.default_preemption.plugin import DefaultPreemption

__all__ = ["DefaultPreemption"]
