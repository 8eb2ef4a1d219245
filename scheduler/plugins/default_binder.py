"""DefaultBinder: binds through the `pods/binding` subresource."""

from __future__ import annotations

from scheduler.framework.instructions import Bind
from scheduler.framework.plugin import BindPlugin
from scheduler.model.pods import PodInfo


class DefaultBinder(BindPlugin):
    """Takes every Pod.

    Source: kube-scheduler v1.37 defaultbinder/default_binder.go (behaviour).
    """

    def bind(self, state: object, pod: PodInfo, node_name: str) -> Bind:
        return Bind.of(pod, node_name)
