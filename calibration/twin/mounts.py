"""What is mounted on a recorded device, and whether it has a journal.

Models: the lines of /proc/mounts, the stack of volumes, the names in /proc/fs/jbd2.
Linux counterpart: fs/proc_namespace.c; fs/jbd2/journal.c (jbd2_stats_proc_init).
Invariants: what was not recorded is None; an ext4 whose journals were not recorded has one, unless
its mounts were not recorded either, and its writes tell (calibration/twin/commits.py).
Left out: several file systems on one device: the one with the shortest path stands for them.
"""

from calibration.host import Host, Mount
from calibration.look import Look
from calibration.look.devices import DeviceLook
from calibration.twin.commits import moves_nothing


def journal_of(device: DeviceLook, seen: Look) -> bool | None:
    """Return whether the ext3 or ext4 on a device has a journal; None: unknown, or another one."""
    host = seen.source.host
    mount = mounted_on(device, volume_of(device, seen), host)
    if host is None or mount is None:
        return False if moves_nothing(device.row) else None
    if host.lacks_journal(mount):
        return False
    return True if host.has_journal(mount) else None


def file_system_of(device: DeviceLook, seen: Look) -> str | None:
    """Return the type of what is mounted on a device; None: it was not recorded."""
    mount = mounted_on(device, volume_of(device, seen), seen.source.host)
    return mount.type if mount is not None else None


def volume_of(device: DeviceLook, seen: Look) -> str | None:
    """Return the volume on a device that has most of its writes, if there is one."""
    stack = next((one for one in seen.stacks if one.disk == device.name), None)
    looks = {one.name: one for one in seen.devices}
    volumes = [looks[name] for name in stack.volumes if name in looks] if stack else []
    return max(volumes, key=lambda one: one.rate_per_s).name if volumes else None


def mounted_on(device: DeviceLook, volume: str | None, host: Host | None) -> Mount | None:
    """Return what is mounted on the volume, or on the device or a partition of it."""
    if host is None:
        return None
    block = host.devices.get(volume) if volume is not None else None
    named = block.volume if block is not None else None
    for mount in sorted(host.mounts, key=lambda one: len(one.place)):
        source = mount.source.removeprefix("/dev/")
        if volume is not None and source in (volume, f"mapper/{named}"):
            return mount
        if volume is None and _is_on(source, device.name):
            return mount
    return None


def _is_on(source: str, disk: str) -> bool:
    rest = source.removeprefix(disk)
    return rest != source and (rest == "" or rest.lstrip("p").isdigit())
