"""The likely bottleneck, in a sentence with its reason.

Models: the conclusion that somebody draws from utilisation, iowait and swap.
Linux counterpart: none.
Invariants: rules are tried in the order of RULES; the first that applies is the answer, and what it
says is made of the numbers it looked at.
Left out: locks, networks, limits of programs: where none of the recorded resources is full and the
CPUs are idle, that is what is left, and it is said.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from calibration.look.cpus import CpuLook
from calibration.look.devices import DeviceLook, busy_pct, lowest
from calibration.look.intervals import Interval, queue_of

FULL: Final = 0.9  # from here on a queue in front of one server is ten times the service time
SWAP_SHARE: Final = 0.2
WAITING: Final = 0.5
AT_TIMES: Final = 0.05


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What the rules look at; `swap_used_bytes` None where it was not recorded."""

    cpu: CpuLook
    devices: Sequence[DeviceLook]
    swap_used_bytes: float | None
    swap_devices: tuple[str, ...]
    load: float | None
    intervals: Sequence[Interval] = ()

    @property
    def disks(self) -> list[DeviceLook]:
        """Return the devices below all volumes, busiest first."""
        return sorted(lowest(self.devices), key=lambda one: -one.busy_pct)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The resource ("" if none) and the sentence."""

    resource: str
    sentence: str


def bottleneck(seen: Seen) -> Verdict:
    """Return what the first rule that applies says."""
    verdicts = (rule(seen) for rule in RULES)
    return next((one for one in verdicts if one is not None), _nothing(seen))


def _disk_full(seen: Seen) -> Verdict | None:
    disk = next(iter(seen.disks), None)
    if disk is None or disk.busy_pct < 100 * FULL:
        return None
    told = "aqu_sz" in disk.row
    waiting = f" with {queue_of(disk.row):.1f} requests in queue and service" if told else ""
    idle = (
        f" while {100 * (1 - seen.cpu.busy):.0f} % of the CPU time is not used"
        if (seen.cpu.busy is not None and seen.cpu.busy < FULL)
        else ""
    )
    doubt = (
        ""
        if disk.guess.startswith("disk")
        else ("; if it serves several requests at a time it may take more")
    )
    return Verdict(
        resource=disk.name,
        sentence=f"{disk.name} is full: {disk.busy_pct:.0f} % busy at {disk.rate_per_s:.0f}"
        f" requests/s of {disk.service_ms or 0:.1f} ms{waiting}{idle}{doubt}.",
    )


def _memory(seen: Seen) -> Verdict | None:
    rate = sum(one.rate_per_s for one in seen.disks)
    swapping = [one for one in seen.disks if one.name in seen.swap_devices]
    share = sum(one.rate_per_s for one in swapping) / rate if rate else 0.0
    if share < SWAP_SHARE or seen.cpu.shares_pct.get("iowait_pct", 0.0) < 100 * WAITING / 2:
        return None
    names = ", ".join(one.name for one in swapping)
    used = f"{seen.swap_used_bytes / 2**20:.0f} MiB" if seen.swap_used_bytes else "some"
    return Verdict(
        resource="memory",
        sentence=f"memory is short: {used} of swap are in use, and {100 * share:.0f} % of all"
        f" requests go to {names}, which holds it; no device is full"
        f" ({_most(seen)}), yet the CPUs wait {seen.cpu.shares_pct['iowait_pct']:.0f} % of their"
        " time: tasks wait for one page after the other.",
    )


def _cpu_full(seen: Seen) -> Verdict | None:
    if seen.cpu.busy is None or seen.cpu.busy < FULL:
        return None
    steal = seen.cpu.shares_pct.get("steal_pct", 0.0)
    stolen = f", {steal:.0f} % of it taken by the hypervisor" if steal >= 5 else ""
    return Verdict(
        resource="CPU",
        sentence=f"the CPUs are full: {100 * seen.cpu.busy:.0f} % busy{stolen}.",
    )


def _at_times(seen: Seen) -> Verdict | None:
    """A resource that is full in a part of the intervals: the mean hides it."""
    busy = {
        disk.name: [
            busy_pct(one.devices[disk.name], disk.guess) / 100
            for one in seen.intervals
            if disk.name in one.devices
        ]
        for disk in seen.disks
    }
    busy["CPU"] = [one.busy for one in seen.intervals if one.busy is not None]
    full = {name: sum(share >= FULL for share in shares) for name, shares in busy.items()}
    name = max(full, key=lambda name: full[name])
    if full[name] < max(2, AT_TIMES * len(busy[name])):
        return None
    what = "the CPUs are" if name == "CPU" else f"{name} is"
    return Verdict(
        resource=name,
        sentence=f"{what} full (at least {100 * FULL:.0f} % busy) in {full[name]} of"
        f" {len(busy[name])} intervals; over all of them nothing is ({_most(seen)}).",
    )


def _waiting(seen: Seen) -> Verdict | None:
    iowait = seen.cpu.shares_pct.get("iowait_pct", 0.0)
    one_waiter = 100 / (seen.cpu.cpus or 1)
    if iowait < WAITING * min(one_waiter, 100 * WAITING) or not (seen.disks or iowait >= 25):
        return None
    used = f"{100 * (seen.cpu.busy or 0):.0f} % of the CPU time is used"
    if not seen.disks:
        return Verdict(
            resource="I/O",
            sentence=f"I/O: {used}, and {iowait:.0f} % is iowait. No device was recorded: one may"
            " be full, or few tasks wait for one request after the other (iostat -x tells).",
        )
    return Verdict(
        resource="response time",
        sentence=f"waiting, not throughput: no device is full ({_most(seen)}) and {used}, but"
        f" {iowait:.0f} % is iowait: few tasks wait for one request after the other, so that the"
        " response time of the devices sets the pace.",
    )


def _one_cpu_loaded(seen: Seen) -> Verdict | None:
    if seen.load is None or seen.cpu.cpus is None or seen.load <= 2 * seen.cpu.cpus:
        return None
    return Verdict(
        resource="",
        sentence=f"nothing that was recorded is full ({_most(seen)}), yet the load average is"
        f" {seen.load:.1f} on {seen.cpu.cpus} CPUs: tasks sleep uninterruptibly for something"
        " else (a lock, a journal, a network file system).",
    )


RULES: Final[Sequence[Callable[[Seen], Verdict | None]]] = (
    _disk_full,
    _memory,
    _cpu_full,
    _at_times,
    _waiting,
    _one_cpu_loaded,
)


def _nothing(seen: Seen) -> Verdict:
    if seen.cpu.busy is None and not seen.disks:
        return Verdict(resource="", sentence="nothing was recorded that tells: no CPU, no device.")
    return Verdict(resource="", sentence=f"nothing that was recorded is full ({_most(seen)}).")


def _most(seen: Seen) -> str:
    """Return the utilisation of the busiest device and of the CPUs."""
    parts = [f"{one.name} {one.busy_pct:.0f} % busy" for one in seen.disks[:1] if one.util_pct]
    if seen.cpu.busy is not None:
        parts.append(f"CPUs {100 * seen.cpu.busy:.0f} % busy")
    return ", ".join(parts) or "utilisation not recorded"
