"""An API server inside the process: what `vane run` and kubectl ask of a cluster, without the cluster."""

from scheduler.sim.apiserver.failures import StatusError
from scheduler.sim.apiserver.resources import EVENTS, LEASES, NAMESPACES, NODES, PODS, RESOURCES, Resource
from scheduler.sim.apiserver.server import ApiServer, kubeconfig
from scheduler.sim.apiserver.store import ObjectStore

__all__ = [
    "EVENTS",
    "LEASES",
    "NAMESPACES",
    "NODES",
    "PODS",
    "RESOURCES",
    "ApiServer",
    "ObjectStore",
    "Resource",
    "StatusError",
    "kubeconfig",
]
