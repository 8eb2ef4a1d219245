"""The plugins that come with Vane: kube-scheduler's default chain in columns, and rules over live signals.

No plugin knows another; modules are shared only where a pre-computation is. A plugin calls nothing but the
snapshot it is handed.
"""

from __future__ import annotations

from typing import NamedTuple

from scheduler.framework.plugin import Plugin
from scheduler.framework.profile import Enabled
from scheduler.plugins.annotation_binder import AnnotationBinder
from scheduler.plugins.default_binder import DefaultBinder
from scheduler.plugins.default_preemption import DefaultPreemption
from scheduler.plugins.delayed_binder import DelayedBinder
from scheduler.plugins.image_locality import ImageLocality
from scheduler.plugins.inter_pod_affinity import InterPodAffinity
from scheduler.plugins.node_affinity import NodeAffinity
from scheduler.plugins.node_declared_features import NodeDeclaredFeatures
from scheduler.plugins.node_name import NodeName
from scheduler.plugins.node_ports import NodePorts
from scheduler.plugins.node_resources_balanced import NodeResourcesBalancedAllocation
from scheduler.plugins.node_resources_fit import NodeResourcesFit
from scheduler.plugins.pod_topology_spread import PodTopologySpread
from scheduler.plugins.queue_order import PrioritySort, SchedulingGates
from scheduler.plugins.remote_binder import RemoteBinder
from scheduler.plugins.signals import SignalFilter, SignalScore
from scheduler.plugins.taints import NodeUnschedulable, TaintToleration
from scheduler.plugins.tenant_overcommit import TenantOvercommit
from scheduler.plugins.volumes import NodeVolumeLimits, VolumeBinding, VolumeRestrictions, VolumeZone
from scheduler.plugins.webhook_notifier import WebhookNotifier


class Link(NamedTuple):
    """One line of the default chain; the weight matters only for plugins that score."""

    name: str
    factory: type[Plugin]
    weight: int = 1


# The order of the lines is the order at every extension point: that of kube-scheduler 1.37, then tenants and signals.
DEFAULT_CHAIN: tuple[Link, ...] = (
    Link("SchedulingGates", SchedulingGates),
    Link("PrioritySort", PrioritySort),
    Link("NodeName", NodeName),
    Link("NodeUnschedulable", NodeUnschedulable),
    Link("TaintToleration", TaintToleration, 3),
    Link("NodeAffinity", NodeAffinity, 2),
    Link("NodePorts", NodePorts),
    Link("NodeResourcesFit", NodeResourcesFit, 1),
    Link("VolumeRestrictions", VolumeRestrictions),
    Link("NodeVolumeLimits", NodeVolumeLimits),
    Link("VolumeBinding", VolumeBinding, 1),
    Link("VolumeZone", VolumeZone),
    Link("PodTopologySpread", PodTopologySpread, 2),
    Link("InterPodAffinity", InterPodAffinity, 2),
    Link("NodeDeclaredFeatures", NodeDeclaredFeatures),
    Link("DefaultPreemption", DefaultPreemption),
    Link("NodeResourcesBalancedAllocation", NodeResourcesBalancedAllocation, 1),
    Link("ImageLocality", ImageLocality, 1),
    Link("TenantOvercommit", TenantOvercommit),
    Link("SignalFilter", SignalFilter),
    Link("SignalScore", SignalScore),
    Link("DefaultBinder", DefaultBinder),
)
"""What a profile runs unless its configuration says otherwise. A rule brings its own weight."""

OPTIONAL: tuple[type[Plugin], ...] = (AnnotationBinder, DelayedBinder, RemoteBinder, WebhookNotifier)
"""What else comes with Vane: a profile runs it only where its configuration enables it by name."""


def default_chain() -> tuple[Enabled, ...]:
    """Return the default chain, built afresh."""
    return tuple(Enabled(link.factory(), link.weight) for link in DEFAULT_CHAIN)
