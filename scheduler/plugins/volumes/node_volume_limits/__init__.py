"""NodeVolumeLimits: a CSI driver attaches only so many volumes to a node.

Read `plugin` first, then `attached_volumes`, the counts that it compares with the limits.
"""

from __future__ import annotations

from scheduler.plugins.volumes.node_volume_limits.plugin import NodeVolumeLimits

__all__ = ["NodeVolumeLimits"]
