"""The plugins that come with Vane: kube-scheduler's default chain in columns, and rules over live signals.

One plugin is one file, or a folder where it needs several; `DEFAULT_CHAIN` below is the list to read first. No plugin
knows another: what several need is in `shared/`. A plugin calls nothing but the snapshot it is handed.
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
# Of several filters that refuse a node the first is counted, and its code decides whether preemption tries the node.
# A refusal at PreFilter ends the attempt: plugins behind it are not asked. The order of score plugins changes no total.
DEFAULT_CHAIN: tuple[Link, ...] = (
    # PreEnqueue only, before DefaultPreemption: a gated Pod's condition names its gates.
    Link("SchedulingGates", SchedulingGates),
    # QueueSort only, of which there is one.
    Link("PrioritySort", PrioritySort),
    # First of the filters: where a Pod names its node, one look-up leaves the others a single node to look at.
    Link("NodeName", NodeName),
    # Before TaintToleration: a cordoned node has a taint for that too, and should be counted as cordoned.
    Link("NodeUnschedulable", NodeUnschedulable),
    # As the two before it and the next: preemption cannot cure it, so it goes before what preemption may cure.
    Link("TaintToleration", TaintToleration, 3),
    # Settled at PreFilter by labels alone; before all filters that look at what Pods occupy.
    Link("NodeAffinity", NodeAffinity, 2),
    # The first that preemption may cure, and the cheapest: one look-up per host port, nothing for most Pods.
    Link("NodePorts", NodePorts),
    # Compares columns of the node table; before volumes and domains, which need more than that.
    Link("NodeResourcesFit", NodeResourcesFit, 1),
    # First about volumes: at PreFilter it is the one to say that a claim which the Pod names is not there.
    Link("VolumeRestrictions", VolumeRestrictions),
    # It fails the attempt where a volume on the node cannot be counted, so nodes without room are sorted out before.
    Link("NodeVolumeLimits", NodeVolumeLimits),
    # Finds volumes for all claims on all nodes: more work than the two before it.
    Link("VolumeBinding", VolumeBinding, 1),
    # Looks at bound volumes only: it is VolumeBinding that says at PreFilter that an immediate claim is not bound yet.
    Link("VolumeZone", VolumeZone),
    # Sums Pods over whole domains: more work than anything that looks at a node by itself.
    Link("PodTopologySpread", PodTopologySpread, 2),
    # Sums over domains too, and asks besides what the Pods there say about others.
    Link("InterPodAffinity", InterPodAffinity, 2),
    # Cheap, but behind all others in 1.37: its reason is reported only where there is no other.
    Link("NodeDeclaredFeatures", NodeDeclaredFeatures),
    # Runs at PostFilter, when all filters have spoken, wherever it stands.
    Link("DefaultPreemption", DefaultPreemption),
    # Scores only, so it could stand anywhere.
    Link("NodeResourcesBalancedAllocation", NodeResourcesBalancedAllocation, 1),
    # Scores only.
    Link("ImageLocality", ImageLocality, 1),
    # Behind kube-scheduler's filters, so that nodes are counted as there; preemption may cure it, SignalFilter's never.
    Link("TenantOvercommit", TenantOvercommit),
    # Last of the filters: it refuses only nodes that could have taken the Pod, and preemption cannot cure it.
    Link("SignalFilter", SignalFilter),
    # Scores only; each rule brings its own weight, capped as a share of all others together.
    Link("SignalScore", SignalScore),
    # Last at Bind: it takes every Pod, so a Bind plugin behind it would never be asked.
    Link("DefaultBinder", DefaultBinder),
)
"""What a profile runs unless its configuration says otherwise."""

OPTIONAL: tuple[type[Plugin], ...] = (AnnotationBinder, DelayedBinder, RemoteBinder, WebhookNotifier)
"""What else comes with Vane: a profile runs it only where its configuration enables it by name."""


def default_chain() -> tuple[Enabled, ...]:
    """Return the default chain, built afresh."""
    return tuple(Enabled(link.factory(), link.weight) for link in DEFAULT_CHAIN)
