"""The rows of the exercise tables: array layouts, instance types, EBS volumes, kinds of devices.

Models: what an administrator would try one after the other.
Linux counterpart: none; mdadm(8) for the layouts.
Invariants: names are those of profiles, levels and instance types; each row stands for itself.
Left out: layouts of the device mapper, which `[machine.array]` has too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from sim.drivers.disk import profile_names
from sim.drivers.ec2 import EBS_PATHS, INSTANCE_STORES, OPTIMIZED
from sim.drivers.md.md import Array
from sim.registry import lookup
from sim.study.exercise import ACCESS_LOADS, CPUS, KERNEL, Exercise, Fact, Subject

LEVELS: Final = ("raid0", "raid1", "raid5", "raid10")
DEVICES: Final = tuple(range(2, 9))
FAMILIES: Final = ("c3", "r3", "i2")
EBS_FAMILIES: Final = ("m3", *FAMILIES)
PROFILE: Final = "ec2/m3.xlarge"
GIGA: Final = 1e9
_LETTERS: Final = "bcdefghi"
_SECONDS: Final = 0.5
_ARM_SECONDS: Final = 8.0
_NETWORK_SECONDS: Final = 3.0  # what is asked for at first is ahead of all other traffic
_GUEST: Final = 'frontend = "xen-blkfront"\nscheduler = "deadline"\n'
# A TB of the class of 2014: 3 operations a second for each GiB, and no more than 3000.
_EBS: Final = (
    '[machine.disk.xvdb]\ndevice = "ebs-gp2"\ncapacity = "1 TB"\nbase_max = "3000 IOPS"\n'
    'throughput = "160 MiB/s"\ninstance = "{path}"\ncard_traffic = "{traffic} B/s"\n'
)
_CARD_SHARE: Final = 0.5  # assumed: a server whose volume and network are used alike
_EBS_CLASSES: Final = ("ebs-standard", "ebs-gp2")


def raid(
    levels: Sequence[str] = LEVELS, counts: Sequence[int] = DEVICES, profile: str = PROFILE
) -> Exercise:
    """Return arrays of so many disks of a profile, one disk alone first."""
    subjects = [_array(None, 1, profile)]
    for level in levels:
        # Who asks for one number of disks alone is told where a level cannot have it.
        least = 0 if len(counts) == 1 else _level(level).min_devices
        subjects += [_array(level, n, profile) for n in counts if n >= least]
    headings = {
        "level": "level",
        "disks": "disks",
        "capacity_gb": "capacity GB",
        "may_lose": "may lose",
    }
    title = f"Arrays of {profile} ({_machine_text()}, chunks of 512 KiB)"
    return Exercise(name="raid", title=title, headings=headings, subjects=tuple(subjects))


def instances(families: Iterable[str] = FAMILIES) -> Exercise:
    """Return the instance stores of all types, one disk and all of them as RAID 0."""
    subjects = []
    for family in families:
        for name in _types(family):
            subjects += [_stores(name, count) for count in sorted({1, INSTANCE_STORES[name]})]
    headings = {"type": "type", "disks": "disks", "capacity_gb": "capacity GB"}
    title = f"Instance stores, all disks as RAID 0 ({_machine_text()})"
    return Exercise(name="instances", title=title, headings=headings, subjects=tuple(subjects))


def ebs(families: Iterable[str] = EBS_FAMILIES) -> Exercise:
    """Return a volume of 1 TB at each instance type.

    Over its network card alone, with as much other traffic as half the card, and over a path of its
    own, which other traffic does not touch.
    """
    subjects = []
    for name in (name for family in families for name in _types(family)):
        busy = round(_CARD_SHARE * EBS_PATHS[name])
        subjects += [
            _volume(name, name, "shared", 0),
            _volume(name, name, "shared, half busy", busy),
        ]
        if name + OPTIMIZED in EBS_PATHS:
            subjects.append(_volume(name, name + OPTIMIZED, "EBS-optimized", busy))
    title = f"A gp2 volume of 1 TB, as in 2014 ({_machine_text()})"
    headings = {"type": "type", "path": "path"}
    return Exercise(name="ebs", title=title, headings=headings, subjects=tuple(subjects))


def _volume(name: str, path: str, label: str, traffic: int) -> Subject:
    """Return a volume over a path; `traffic` is what else the network card carries, bytes/s."""
    return Subject(
        facts={"type": name, "path": label},
        devices=_EBS.format(path=path, traffic=traffic) + _GUEST,
        device="xvdb",
        seconds=_NETWORK_SECONDS if traffic else _SECONDS,
    )


def access() -> Exercise:
    """Return devices of all kinds, in order and at random."""
    profiles = [name for name in profile_names() if "/" not in name]
    subjects = [_device(name, f'profile = "{name}"\n') for name in profiles]
    subjects.append(_device("ec2/m3.xlarge", f'profile = "ec2/m3.xlarge"\n{_GUEST}'))
    subjects += [
        _device(name, f'device = "{name}"\ncapacity = "1 TB"\n{_GUEST}') for name in _EBS_CLASSES
    ]
    title = "In order (1 MiB) and at random (4 KiB, one or 32 at a time), all in MB/s"
    return Exercise(
        name="access",
        title=title,
        headings={"device": "device"},
        subjects=tuple(subjects),
        loads=ACCESS_LOADS,
    )


def _machine_text() -> str:
    return f"kernel {KERNEL}, {CPUS} CPUs, xen-blkfront"


def _types(family: str) -> list[str]:
    """Return the types of a family, smallest first, as the table has them."""
    return [name for name in INSTANCE_STORES if name.startswith(f"{family}.")]


def _array(level: str | None, count: int, profile: str) -> Subject:
    """Return an array of equal disks, or one disk; raise ScenarioError for an impossible one."""
    arm = _has_arm(profile)
    named: dict[str, Fact] = {"level": level or "-", "disks": count}
    subject = Subject(
        facts=named,
        devices=_disks(profile, count) + _md(level, count),
        device="md0" if level else "xvdb",
        disks=count,
        seconds=_ARM_SECONDS if arm else _SECONDS,
    )
    return _with_capacity(subject, {"may_lose": _may_lose(subject, level, count)})


def _stores(name: str, count: int) -> Subject:
    """Return one instance store of a type, or all of them as RAID 0."""
    level = "raid0" if count > 1 else None
    subject = Subject(
        facts={"type": name, "disks": count},
        devices=_disks(f"ec2/{name}", count) + _md(level, count),
        device="md0" if level else "xvdb",
        disks=count,
    )
    return _with_capacity(subject, {})


def _device(name: str, described: str) -> Subject:
    seconds = _ARM_SECONDS if _has_arm(name) else _SECONDS
    return Subject(
        facts={"device": name},
        devices=f"[machine.disk.xvdb]\n{described}",
        device="xvdb",
        seconds=seconds,
    )


def _disks(profile: str, count: int) -> str:
    return "".join(
        f'[machine.disk.xvd{letter}]\nprofile = "{profile}"\n{_GUEST}'
        for letter in _LETTERS[:count]
    )


def _md(level: str | None, count: int) -> str:
    if level is None:
        return ""
    members = ", ".join(f'"xvd{letter}"' for letter in _LETTERS[:count])
    return f'[machine.array.md0]\nlevel = "{level}"\ndevices = [{members}]\n'


def _with_capacity(subject: Subject, more: dict[str, Fact]) -> Subject:
    """Return the subject with the capacity that its scenario lists."""
    path = f"machine.{'array' if subject.device == 'md0' else 'disk'}.{subject.device}.capacity"
    parameters = {one.path: one.value for one in subject.scenario(0).parameters}
    capacity = parameters[path]
    assert isinstance(capacity, int)
    return replace(subject, facts=dict(subject.facts) | {"capacity_gb": capacity / GIGA} | more)


def _may_lose(subject: Subject, level: str | None, count: int) -> int:
    if level is None:
        return 0
    return _level(level).may_lose(subject.scenario(0).server.all("array")["md0"].params, count)


def _level(level: str) -> type[Array]:
    cls: type[Array] = lookup("array", level).cls
    return cls


def _has_arm(profile: str) -> bool:
    return profile.startswith(("sata-", "sas-", "ebs-standard"))
