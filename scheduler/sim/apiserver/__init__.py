"""An API server inside the process: what `vane run` and kubectl ask of a cluster, without the cluster.

It serves Namespaces, Nodes, Pods (with binding and status), Events in both groups and Leases, with the verbs that
`resources.py` names, Tables and discovery. One contract suite holds it and the real API server to the same answers.

Unlike the real one it asks nobody who they are. It deletes at once (`store.py`), and Namespaces never. It has no
managed fields, so no server-side apply. It refuses JSON patches, dry runs, protobuf bodies, logs, exec and other
resources by name.
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
