"""Per device: means, derived figures, and what kind of device it probably is.

Models: reading a row of iostat as somebody who knows disks.
Linux counterpart: Documentation/admin-guide/devices.txt (names), block/blk-sysfs.c (rotational).
Invariants: a guess names its reason; no guess is made of a device without load.
Left out: telling SSDs apart; volumes with a burst credit, which a mean does not show.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from calibration.host import BlockDevice
from calibration.look.intervals import (
    COUNTED,
    Interval,
    Row,
    await_of,
    bytes_of,
    mean_row,
    queue_of,
    rate_of,
)
from calibration.look.laws import requests_in_system, service_ms

STACKED: Final = ("dm-", "md")
# Names that say what a device is, longest first: (prefix, what it is).
NAMES: Final[Sequence[tuple[str, str]]] = (
    ("zram", "RAM, compressed"),
    ("ram", "RAM"),
    ("nvme", "NVMe SSD"),
    ("mmcblk", "flash card"),
    ("nbd", "network block device"),
    ("drbd", "replicated device"),
    ("rbd", "network volume"),
    ("sr", "optical drive"),
    ("fd", "floppy disk"),
)
VIRTUAL: Final = ("xvd", "vd", "ubd", "loop")
# Random access: average seek + half a revolution + 0.1 ms, from data sheets (Seagate Cheetah 15K.5:
# 3.5 ms; Savvio 10K.3: 4.1 to 4.7 ms; Barracuda 7200.10: 8.5 ms; Momentus 5400.3: 12 ms).
ACCESS_MS: Final[Mapping[int, float]] = {15000: 5.6, 10000: 7.6, 7200: 12.8, 5400: 17.7}
SEEK_MS: Final = 2.5  # no disk seeks and turns in less on average, unless the head hardly moves
FLASH_MS: Final = 0.35  # a local SSD answers a small read in 0.05 to 0.3 ms (data sheets)
LARGE_BYTES: Final = 256 * 1024  # from here on transfer, not access, makes the time
READS_MIN: Final = 0.1  # share of reads from which on response times tell; writes may be cached
RATE_MIN_PER_S: Final = 10.0  # fewer requests say little about a device


@dataclass(frozen=True, kw_only=True)
class DeviceLook:
    """A device over the intervals used: rates per second, times ms, sizes bytes, shares %."""

    name: str
    row: Row
    rate_per_s: float
    bytes_per_s: float | None
    util_pct: float | None
    service_ms: float | None
    size_bytes: float | None
    merges_per_s: float
    is_stacked: bool
    guess: str
    reason: str

    @property
    def busy_pct(self) -> float:
        """Return how busy it is, %, as far as is known: see `busy_pct`."""
        return busy_pct(self.row, self.guess)

    @property
    def serves_singly(self) -> bool:
        """Whether it is as slow as one with an arm, which serves one request at a time."""
        return self.guess.startswith("disk")

    @property
    def entered_per_s(self) -> float:
        """Return the requests that entered its queue per second, before merging."""
        return self.rate_per_s + self.merges_per_s

    @property
    def merge_ratio(self) -> float:
        """Return how many requests entered for each that was completed."""
        return self.entered_per_s / self.rate_per_s if self.rate_per_s else 1.0


def look_at_devices(
    intervals: Sequence[Interval], blocks: Mapping[str, BlockDevice]
) -> list[DeviceLook]:
    """Return every device that had requests, in the order recorded."""
    rows: dict[str, list[Row]] = {}
    for one in intervals:
        for name, row in one.devices.items():
            rows.setdefault(name, []).append(row)
    looks = [device_look(name, mean_row(own), blocks.get(name)) for name, own in rows.items()]
    return [one for one in looks if one.rate_per_s > 0]


def device_look(name: str, row: Row, block: BlockDevice | None) -> DeviceLook:
    """Return the derived figures of one row."""
    rate, util = rate_of(row), row.get("util_pct")
    moved = bytes_of(row)
    service = service_ms(util / 100, rate) if util is not None else row.get("svctm_ms")
    size = _size(row, moved, rate)
    guess, reason = guess_class(name, row, service, size, block)
    return DeviceLook(
        name=name,
        row=row,
        rate_per_s=rate,
        bytes_per_s=moved,
        util_pct=util,
        service_ms=service,
        size_bytes=size,
        merges_per_s=sum(row.get(f"{letter}rqm_per_s", 0.0) for letter in "rwd"),
        is_stacked=is_stacked(name, block),
        guess=guess,
        reason=reason,
    )


def busy_pct(row: Row, guess: str) -> float:
    """Return how busy a device was, %; 0 if util was not recorded.

    Linux 5.0 to 6.9 counts whole jiffies. There util is no more than X R, the requests with the
    device, and a device that serves side by side is taken to be as busy as a stream keeps it: 1 -
    exp(-X R). By hand: 925 requests a second of 1.05 ms are 97 % at most, and 62 % as a stream.
    """
    util, await_ms = row.get("util_pct", 0.0), await_of(row)
    if COUNTED not in row or guess.startswith("disk") or await_ms is None:
        return util
    return min(util, -100 * math.expm1(-requests_in_system(rate_of(row), await_ms)))


def _size(row: Row, moved: float | None, rate: float) -> float | None:
    """Return the mean size of a request that moves something.

    The printed size first: bytes per second may be printed in hundredths of a MB. That is of
    discards too, which move nothing and may be of gigabytes.
    """
    transfers = rate - row.get("d_per_s", 0.0)
    if moved is not None and transfers and (row.get("d_per_s") or "areq_bytes" not in row):
        return moved / transfers
    return row.get("areq_bytes")


def lowest(devices: Sequence[DeviceLook]) -> list[DeviceLook]:
    """Return the devices below all volumes; the volumes where nothing below was recorded."""
    return [one for one in devices if not one.is_stacked] or list(devices)


def queues_of(devices: Sequence[DeviceLook]) -> dict[str, float]:
    """Return the requests in the queue and in service of each device below all volumes."""
    return {one.name: queue_of(one.row) for one in lowest(devices)}


def is_stacked(name: str, block: BlockDevice | None) -> bool:
    """Return whether a device hands its requests to others."""
    return bool(block and block.slaves) or name.startswith(STACKED)


def guess_class(
    name: str, row: Row, service: float | None, size: float | None, block: BlockDevice | None
) -> tuple[str, str]:
    """Return what a device probably is, and why."""
    if is_stacked(name, block):
        return "volume on other devices", "its name" if not (block and block.slaves) else "/sys"
    named = next((what for prefix, what in NAMES if name.startswith(prefix)), None)
    if named is not None:
        return named, "its name"
    # What a virtual device says of itself nobody told it: loop devices on a file of FUSE turn not,
    # virtio disks turn, whatever is below. So its time tells: from SEEK_MS on an arm may make it.
    is_virtual = name.startswith(VIRTUAL)
    is_small = size is None or size < LARGE_BYTES
    is_slow = service is not None and service >= SEEK_MS and is_small
    if block is not None and block.is_rotational is False and not (is_virtual and is_slow):
        return _flash(name, row, "/sys says that nothing turns")
    if service is None or rate_of(row) == 0:
        return "unknown", "nothing recorded that tells"
    if size is not None and not is_small:
        return "unknown", f"requests of {size / 1024:.0f} KiB: transfer hides the access time"
    turns = block is not None and block.is_rotational and not is_virtual
    if is_slow or turns:
        return _disk(service, rate_of(row))
    if row.get("r_per_s", 0.0) < READS_MIN * rate_of(row):
        reason = f"{service:.2f} ms busy a request, and hardly a read"
        return "SSD, or a disk that caches writes or has them in sequence", reason
    return _flash(name, row, f"{service:.2f} ms busy a request: no head moves for each")


def _disk(service: float, rate: float) -> tuple[str, str]:
    if service < SEEK_MS:
        return "disk", f"/sys says that it turns; {service:.2f} ms busy a request: in sequence"
    reason = f"{service:.1f} ms busy a request: a head moves"
    if rate < RATE_MIN_PER_S:
        return "disk", f"{reason}; too few requests to tell its speed"
    rpm = min(ACCESS_MS, key=lambda rpm: abs(math.log(service / ACCESS_MS[rpm])))
    more = f"{reason}; random access takes {ACCESS_MS[rpm]} ms at {rpm} rpm"
    return f"disk, like {rpm} rpm", f"{more}; short ways make a slower disk look like it"


def _flash(name: str, row: Row, reason: str) -> tuple[str, str]:
    """Tell local flash from what is behind a network, by the answer to reads (else to all)."""
    answer = row.get("r_await_ms") if row.get("r_per_s") else await_of(row)
    if answer is None:
        return "SSD or volume", reason
    told = f"{reason}; answers in {answer:.2f} ms"
    if name.startswith(VIRTUAL):
        return "virtual device: SSD or network volume", told
    return ("SSD" if answer <= FLASH_MS else "SSD, or a disk with a cache"), told
