"""Which taints a Pod's tolerations cover, for the plugins that look at taints."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.model.objects import Taint, Toleration

REFUSING_EFFECTS = ("NoSchedule", "NoExecute")
"""The effects of taints that keep Pods away; others only ask them to avoid the node."""


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Return whether any toleration covers the taint; Lt and Gt never do (their gate is off in 1.37).

    Source: k8s.io/api core/v1/toleration.go ToleratesTaint (behaviour).
    """
    return any(_covers(toleration, taint) for toleration in tolerations)


def _covers(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        # Also without a key: kube-scheduler compares the value even then.
        return toleration.value == taint.value
    return toleration.operator == "Exists"
