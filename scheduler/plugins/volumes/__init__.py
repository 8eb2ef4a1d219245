"""The four plugins about volumes, and what they share.

Read first what they share: `claims` (the claims behind a Pod's volumes), `volumes_in_use` (which volumes the Pods of
each node use), `csi_migration` (disks of the sources built into Kubernetes, as CSI drivers know them) and `csi_nodes`
(what the CSINodes say, as columns).

Then the plugins, in the order of the chain; none knows another: `volume_restrictions` (disks and claims that only one
Pod may use), `node_volume_limits/` (how many volumes a node may have attached), `volume_binding/` (where volumes can be
used, found or made) and `volume_zone` (zones in the labels of bound volumes).
"""

from __future__ import annotations

from scheduler.plugins.volumes.node_volume_limits import NodeVolumeLimits
from scheduler.plugins.volumes.volume_binding import VolumeBinding
from scheduler.plugins.volumes.volume_restrictions import VolumeRestrictions
from scheduler.plugins.volumes.volume_zone import VolumeZone

__all__ = ["NodeVolumeLimits", "VolumeBinding", "VolumeRestrictions", "VolumeZone"]
