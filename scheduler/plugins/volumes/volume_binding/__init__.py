"""VolumeBinding: a Pod goes where its volumes can be used, found or made.

Read in the order of the extension points: `plugin`; at PreFilter `bound_claims`, for the claims that have a volume, and
`binding_plan`, for those that wait for a node; below both `reachable_nodes` (where a volume can be used) and
`free_storage` (what there is for claims), which keeps a `storage_table` per storage class; at Score `capacity_score`;
once a node is chosen `reserve_and_prebind`. `hints` says which events may help a Pod that was refused.
"""

from __future__ import annotations

from scheduler.plugins.volumes.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
