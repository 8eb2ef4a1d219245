"""An API server inside the process: what `vane run` and kubectl ask of a cluster, without the cluster.

Served are Namespaces, Nodes, Pods (with binding and status), Events in both groups and Leases, with the verbs that
`resources.py` names, Tables and discovery. One contract suite holds it and the real API server to the same answers.

Otherwise than there: nobody is asked who they are; what is deleted is gone at once (`store.py`), but Namespaces cannot
be; there are no managed fields, so no server-side apply; JSON patches, dry runs, protobuf bodies, logs, exec and other
resources are refused by name.
"""

from scheduler.sim.apiserver.failures import StatusError
from scheduler.sim.apiserver.resources import EVENTS, LEASES, NAMESPACES, NODES, PODS, RESOURCES
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
    "StatusError",
    "kubeconfig",
]
