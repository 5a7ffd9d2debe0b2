"""From a run's description to a scenario: the same machine, the same disk, the same programs.

Models: a TOML scenario, built as text and read by the same reader as a user's.
Linux counterpart: none.
Invariants: everything comes from the description, from the rig's table of values (some of which
 were fitted to recordings, as their sources say), or from a condition that the caller names; what
 is not modelled yet raises Unsupported and says what it is.
Left out: what ran before the recording began (load averages start at 0).
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from calibration.validate.conditions import Condition
from calibration.validate.describe import Description, Disk, Unsupported
from calibration.validate.programs import CGROUP, pins_its_pages, programs
from calibration.validate.rigs import GUEST, LOOP, SLOWER_LOOP, Rig
from sim.scenario import Scenario
from sim.scenario.load import load_text
from sim.units import parse_quantity

# What a program's own memory makes of a request: BLK_MAX_SEGMENTS (128) pages that do not adjoin.
PINNED_KIB_MAX: Final = 512
FS_DIRECTORY: Final = "/mnt"  # where the file system under test is mounted
# model of the emulator -> registered device, {its key: (ours, unit)}
_ALL: Final = {
    "size_mb": ("capacity", "MiB"),
    "flush_us": ("flush", "us"),
    "spin_us": ("loop_spin", "us"),
}
_SLOTS: Final = {
    **_ALL,
    "slots": ("servers", ""),
    "read_us": ("read", "us"),
    "write_us": ("write", "us"),
    "sigma": ("sigma", ""),
    "slot_mbs": ("read_rate", "MB/s"),
    "write_slot_mbs": ("write_rate", "MB/s"),
}
_MODELS: Final[Mapping[str, tuple[str, Mapping[str, tuple[str, str]]]]] = {
    "hdd": (
        "slowdisk_arm",
        {
            **_ALL,
            "rpm": ("rpm", "rpm"),
            "seek_min_ms": ("seek_min", "ms"),
            "seek_max_ms": ("seek_max", "ms"),
            "seek_exp": ("seek_exponent", ""),
            "rate_mbs": ("rate", "MB/s"),
            "overhead_us": ("overhead", "us"),
            "seq_gap_us": ("sequential_gap", "us"),
            "full_span": ("stroke_share", ""),
            "rot": ("rotation", "text"),
            "queue": ("policy", "text"),
            "qdepth": ("policy_depth", ""),
            "iface_mbs": ("interface_rate", "MB/s"),
        },
    ),
    "slots": ("slowdisk_slots", _SLOTS),
    "ebs": (
        "slowdisk_volume",
        {
            **_SLOTS,
            "iops": ("base", "IOPS"),
            "burst_iops": ("burst", "IOPS"),
            "bucket": ("credits", ""),
            "mbs": ("pipe", "MB/s"),
            "unit_kb": ("unit", "KiB"),
        },
    ),
}
# What the emulator also knows and the model needs no key for, or another one.
_ELSEWHERE: Final = ("model", "seed", "wcache", "wcache_mb")
# Options of /proc/mounts -> what they set; those that set nothing of ours are None.
_MOUNT_OPTIONS: Final[Mapping[str, str | None]] = {
    "rw": None,
    "relatime": 'atime = "relatime"',
    "noatime": 'atime = "noatime"',
    "strictatime": 'atime = "strictatime"',
    "sync": "sync = true",
    "dirsync": "dirsync = true",
    "nobarrier": "barrier = false",
    "barrier=0": "barrier = false",
    "barrier=1": "barrier = true",
    "inode64": None,
    "attr2": None,
    "noquota": None,
    "logbufs=8": "logbufs = 8",
    "logbsize=32k": 'logbsize = "32 KiB"',
    "data=ordered": 'data = "ordered"',
    "data=writeback": 'data = "writeback"',
    "data=journal": 'data = "journal"',
}
# ext2fs_default_journal_size of e2fsprogs 1.43.2 and later: (below this size, journal), in MiB.
_JOURNALS: Final = (
    (128, 4),
    (1 << 10, 16),
    (2 << 10, 32),
    (16 << 10, 64),
    (32 << 10, 128),
    (1 << 60, 256),
)
# sysctl -> key below machine.vm
_SWAP_SYSCTLS: Final = {
    "swappiness": "swappiness",
    "page-cluster": "page_cluster",
    "overcommit_memory": "overcommit_memory",
}
_ON_THE_SLOWER: Final = ("i_fio", "p_pgbench")  # families
_FILE_SYSTEMS: Final = ("ext3", "ext4", "xfs")
_ELEVATORS: Final = ("none", "mq-deadline", "kyber", "bfq")


def rig_of(description: Description) -> Rig:
    """Return the kind of machine that the run was recorded on."""
    if description.kernel.is_guest:
        return GUEST
    return SLOWER_LOOP if description.family in _ON_THE_SLOWER else LOOP


def build(description: Description, seed: int, condition: Condition | None = None) -> Scenario:
    """Return the scenario of a run, within rig_parts(); raise Unsupported what is not modelled.

    A condition is what somebody claims of the run beyond its description (conditions.py).
    """
    text = "\n".join(_lines(description, condition)) + "\n"
    what_if = None if condition is None else condition.name
    return load_text(text, Path(f"{description.id}.toml"), what_if=what_if, seed=seed)


def simulated_text(description: Description, condition: Condition | None = None) -> str:
    """Return the scenario without its title: runs that have the same are simulated alike.

    Raise Unsupported if a part of the run is not modelled.
    """
    lines = _lines(description, condition)
    return "\n".join(line for line in lines if not line.startswith("title = "))


def _lines(description: Description, condition: Condition | None) -> Iterator[str]:
    """Yield the scenario's text."""
    rig = rig_of(description)
    kernel = description.kernel
    processes = programs(description, rig, FS_DIRECTORY)
    yield f'title = "{description.id}"'
    yield 'uses = ["sendmail/program.py"]'
    yield "[machine]"
    yield f'kernel = "{kernel.release}"'
    yield f"cpus = {kernel.cpus}"
    yield from _memory(description, rig)
    yield f"sched.hz = {kernel.hz}"
    yield from _costs(rig.costs)
    yield f'vm.dirty_expire = "{kernel.vm.get("dirty_expire_centisecs", 3000) * 10} ms"'
    yield f'vm.dirty_writeback = "{kernel.vm.get("dirty_writeback_centisecs", 500) * 10} ms"'
    yield from _dirty_limits(kernel.vm)
    if (
        not pins_its_pages(description, rig)
        and description.disk
        and description.disk.read_ahead_kib
    ):
        yield f'vm.read_ahead = "{description.disk.read_ahead_kib} KiB"'
    yield from _storage(description, rig)
    yield from processes
    yield "[run]"
    yield 'duration = "1 h"'
    if condition is not None:
        yield from condition.lines()


def _memory(description: Description, rig: Rig) -> Iterator[str]:
    """Yield how much memory there is; a memory cgroup is a machine of its limit.

    What a cgroup's programs share with nobody is their pages; the kernel's own are not in it.
    """
    if description.kind == "memtouch":
        yield from _memory_of_programs(description, rig)
        return
    if description.kind != "pcread":
        yield f'memory = "{description.kernel.memory_kib} KiB"'
        return
    kernel_mib, source = rig.kernel_mib
    if description.kernel.is_guest:
        yield f'memory = "{description.kernel.memory_kib} KiB"'
        yield f'vm.min_free = "{description.kernel.vm["min_free_kbytes"]} KiB"'
    else:
        limit = int(description.workload["memcg_limit_mib"])
        yield f'memory = "{limit + kernel_mib} MiB"'
        yield 'vm.min_free = "128 KiB"'
    yield f'vm.kernel = {{ value = "{kernel_mib} MiB", source = "{source}" }}'


def _memory_of_programs(description: Description, rig: Rig) -> Iterator[str]:
    """Yield memory and what swapping depends on; a limit is that of a group, see _group_lines()."""
    kernel = description.kernel
    yield f'memory = "{kernel.memory_kib} KiB"'
    if kernel.is_guest:
        beside_kib, source = rig.beside_programs_kib
        yield f'vm.min_free = "{kernel.vm.get("min_free_kbytes", 0)} KiB"'
        yield f'vm.kernel = {{ value = "{beside_kib} KiB", source = "{source}" }}'
    for key, name in _SWAP_SYSCTLS.items():
        if key in kernel.vm:
            yield f"vm.{name} = {kernel.vm[key]}"


def _group_lines(description: Description, rig: Rig) -> Iterator[str]:
    """Yield the swap area and the memory cgroup of a run of programs' own memory."""
    swap = description.workload.get("swap")
    if swap not in (None, "none"):
        if description.disk is None:
            raise Unsupported("swap in a run without a disk")
        yield f'[machine.swap.swap]\ndevice = "{rig.disk}"'
    limit = description.workload.get("memcg_limit_mib")
    if limit:
        beside_kib, source = rig.beside_programs_kib
        yield f"[machine.cgroup.{CGROUP}]\nversion = 1"
        left_kib = int(limit) * 1024 - beside_kib
        yield f'memory = {{ value = "{left_kib} KiB", source = "derived: limit - {source}" }}'


def _dirty_limits(vm: Mapping[str, int]) -> Iterator[str]:
    """Yield the sysctls of dirty memory: of each pair, ratio or bytes, the one that is not 0."""
    for name in ("dirty_background", "dirty"):
        if vm.get(f"{name}_bytes"):
            yield f'vm.{name}_limit = "{vm[f"{name}_bytes"]} B"'
        elif vm.get(f"{name}_ratio"):
            yield f'vm.{name}_ratio = "{vm[f"{name}_ratio"]} %"'


def _costs(costs: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    """Yield values with their sources."""
    for key, (value, source) in costs.items():
        shown = value if value == "true" else f'"{value}"'
        yield f'{key} = {{ value = {shown}, source = "{source}" }}'


def _storage(description: Description, rig: Rig) -> Iterator[str]:
    """Yield disk and mounts."""
    disk, plain = description.disk, description.fs_plain
    yield '[machine.mount."/"]\ntype = "tmpfs"'
    if disk is not None:
        yield from _disk_lines(description, disk, rig)
        if disk.fs is not None:
            yield from _mount_lines(disk, rig)
            if description.kind in (
                "fio",
                "mailq",
                "pg_test_fsync",
            ):  # A mail server has made its queue directory before.
                yield 'metadata_cached = { value = false, source = "manual: a new file system" }'
    if plain is not None:
        yield from _plain_mount(plain, rig)
    if description.kind == "memtouch":
        yield from _group_lines(description, rig)


def _disk_lines(description: Description, disk: Disk, rig: Rig) -> Iterator[str]:
    model = str(disk.params.get("model"))
    if model not in _MODELS:
        raise Unsupported(f"the emulator's model '{model}' (known: {', '.join(_MODELS)})")
    device, keys = _MODELS[model]
    yield f"[machine.disk.{rig.disk}]"
    yield f'device = "{device}"'
    yield f'under = "{rig.under}"'
    if disk.elevator not in _ELEVATORS:
        raise Unsupported(f"the elevator {disk.elevator} (known: {', '.join(_ELEVATORS)})")
    yield f'scheduler = "{disk.elevator}"'
    yield f"queue.nr_requests = {disk.nr_requests}"
    largest = disk.max_sectors_kib
    if pins_its_pages(description, rig):
        largest = min(largest, PINNED_KIB_MAX)
    yield f'queue.max = "{largest} KiB"'
    if disk.rotational is not None:
        yield f"queue.rotational = {str(disk.rotational).lower()}"
    if disk.wbt_lat_us is not None:
        yield f'queue.wbt_lat = "{disk.wbt_lat_us} us"'
    for key, value in disk.params.items():
        if key in keys:
            name, unit = keys[key]
            if key == "rot":  # slowdisk.c knows "uniform"; whatever else is half a turn.
                value = value if value == "uniform" else "half"
            yield f"{name} = {_quantity(value, unit)}"
        elif key not in _ELSEWHERE:
            raise Unsupported(f"the emulator's parameter '{key}' with its model '{model}'")
    if disk.params.get("wcache"):
        megabytes = disk.params.get("wcache_mb", 16)
        yield f'write_cache = "{megabytes} MB"'


def _quantity(value: Any, unit: str) -> str:
    """Return a TOML value with its unit."""
    if unit == "text":
        return f'"{value}"'
    return f'"{value} {unit}"' if unit else str(value)


def _mount_lines(disk: Disk, rig: Rig) -> Iterator[str]:
    if disk.fs not in _FILE_SYSTEMS:
        raise Unsupported(f"the file system {disk.fs}")
    yield f'[machine.mount."{FS_DIRECTORY}"]\ntype = "{disk.fs}"\ndevice = "{rig.disk}"'
    if disk.fs == "ext3":
        yield from _ext3_journal(disk)
    yield from _costs(rig.xfs if disk.fs == "xfs" else rig.ext3)
    for option in disk.mount_options:
        if option not in _MOUNT_OPTIONS:
            raise Unsupported(f"the mount option '{option}'")
        setting = _MOUNT_OPTIONS[option]
        if setting:
            yield setting


def _ext3_journal(disk: Disk) -> Iterator[str]:
    """Yield what mke2fs of today makes of an ext3's journal."""
    size = int(disk.params.get("size_mb", 0))
    journal = next(mib for limit, mib in _JOURNALS if size < limit)
    yield f'journal = {{ value = "{journal} MiB", source = "e2fsprogs 1.47 mkfs of a new disk" }}'
    traces = "result: disk traces of c_mailq: the log lies in the first group, before the data"
    yield f'journal_in_middle = {{ value = false, source = "{traces}" }}'


def _plain_mount(plain: str, rig: Rig) -> Iterator[str]:
    """Yield the mount of "tmpfs size=2g"."""
    kind, _, options = plain.partition(" ")
    if kind != "tmpfs":
        raise Unsupported(f"the file system {kind} without a disk")
    yield f'[machine.mount."{FS_DIRECTORY}"]\ntype = "tmpfs"'
    yield from _costs(rig.tmpfs)
    for option in options.split(","):
        key, _, value = option.partition("=")
        if key == "size":
            yield f'size = "{parse_quantity(_with_unit(value), "bytes")} B"'
        elif key:
            raise Unsupported(f"the tmpfs option '{option}'")


def _with_unit(size: str) -> str:
    """Return mount's "2g" as "2 GiB"."""
    suffixes = {"k": "KiB", "m": "MiB", "g": "GiB"}
    last = size[-1:].lower()
    return f"{size[:-1]} {suffixes[last]}" if last in suffixes else f"{size} B"
