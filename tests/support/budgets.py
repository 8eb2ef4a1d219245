"""PodDisruptionBudgets with the status that their controller would give them."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.kubeapi import KubeApi

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def create_budget(api: KubeApi, name: str, labels: Mapping[str, str], allowed: int) -> None:
    """Create a PodDisruptionBudget that lets so many of these Pods go."""
    spec = {"minAvailable": 1, "selector": {"matchLabels": dict(labels)}}
    api.post(
        BUDGETS, {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}
    )
    counts = {"currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1, "disruptionsAllowed": allowed}
    api.patch(f"{BUDGETS}/{name}/status", {"status": counts})
