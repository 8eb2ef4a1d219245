"""A /sys for node_exporter's hwmon collector: machines without sensors, virtual ones among them, run the tests too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

INTEL = "devices/platform/coretemp.0"
AMD = "devices/pci0000:00/0000:00:18.3"
DISK = "devices/pci0000:00/0000:01:00.0/nvme/nvme0"


def make_sys(folder: Path, degrees: Mapping[str, tuple[str, float]]) -> Path:
    """Return a folder to give as --path.sysfs, this machine's but for sensors at these devices: name, °C."""
    classes = folder / "class" / "hwmon"
    classes.mkdir(parents=True)
    (folder / "devices").mkdir()
    (folder / "devices" / "system").symlink_to("/sys/devices/system")  # the CPU collector looks up what is online
    for i, (device, (chip, value)) in enumerate(degrees.items()):
        sensor = folder / device / "hwmon" / f"hwmon{i}"
        sensor.mkdir(parents=True)
        (sensor / "name").write_text(f"{chip}\n")
        (sensor / "temp1_input").write_text(f"{value * 1000:.0f}\n")
        (sensor / "device").symlink_to(Path("../.."))
        (classes / f"hwmon{i}").symlink_to(Path("../..") / sensor.relative_to(folder))
    return folder
