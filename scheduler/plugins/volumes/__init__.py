"""The plugins of volumes: VolumeBinding, VolumeRestrictions, VolumeZone, NodeVolumeLimits, and what they share."""
