"""iostat: CPU and device statistics, first since boot, then per interval.

Models: `iostat [-cdkmptxyz] [DEVICE ...] [INTERVAL [COUNT]]` of the layouts in `iostat_layout`.
Linux counterpart: sysstat iostat.c:main, rw_io_stat_loop, write_stats.
Invariants: the first report covers boot to now and needs counters since boot; a device that never
did I/O is left out unless named; partitions are left out unless asked by -p or by name.
Left out: -g -H -h -j -N -o -s -V, --human, --pretty, --dec: refused with what is allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sim.tools.clock import Wall
from sim.tools.iostat_layout import (
    UNITS,
    IostatLayout,
    TimeFormat,
    Unit,
    render_cpu,
    render_devices,
    render_time,
    render_title,
)
from sim.tools.iostat_report import DeviceReport, IostatReport, compute_iostat
from sim.tools.parse import parse_stat
from sim.tools.snapshot import Snapshot
from sim.tools.usage import Sampling, ToolUsageError, parse_sampling, split_clusters

_MEANING = {
    "c": "-c CPU only",
    "d": "-d devices only",
    "k": "-k kilobytes",
    "m": "-m megabytes",
    "p": "-p [DEVICE|ALL] partitions",
    "t": "-t time",
    "x": "-x extended",
    "y": "-y without the report since boot",
    "z": "-z without idle devices",
}
ALL = "ALL"  # -p ALL: every row of diskstats
USED = "*"  # -p alone: every row that ever did I/O
_EXCLUSIVE = (("k", "m"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class IostatOptions:
    """A command line of iostat, understood."""

    letters: frozenset[str]
    devices: tuple[str, ...]  # named on the command line
    partitions_of: tuple[str, ...]  # disks after -p, or ALL, or USED
    sampling: Sampling
    unit: Unit

    @property
    def shows_cpu(self) -> bool:
        """Tell whether the CPU block is printed (-d alone hides it)."""
        return "c" in self.letters or "d" not in self.letters

    @property
    def shows_devices(self) -> bool:
        """Tell whether the device table is printed: -c hides it unless more asks for it."""
        return "c" not in self.letters or bool(self.letters & {"d", "p", "x"} or self.devices)


def parse_options(arguments: Sequence[str], layout: IostatLayout) -> IostatOptions:
    """Return what the arguments (without the tool's name) ask; raise ToolUsageError."""
    allowed = f"{', '.join(_MEANING[letter] for letter in layout.options)}, DEVICE, INTERVAL, COUNT"
    letters: set[str] = set()
    named: list[str] = []
    partitions: list[str] = []
    numbers: list[str] = []
    words = split_clusters(arguments)
    while words:
        word = words.pop(0)
        if word.isdecimal():
            numbers.append(word)
        elif not word.startswith("-"):
            named.append(word.removeprefix("/dev/"))
        elif len(word) != 2 or word[1] not in layout.options:
            raise ToolUsageError("iostat", f"unknown option {word!r}", allowed)
        else:
            letters.add(word[1])
            if word == "-p":
                partitions.append(_partition_argument(words))
    for one, other in _EXCLUSIVE:
        if one in letters and other in letters:
            raise ToolUsageError("iostat", f"-{one} and -{other} exclude each other", allowed)
    unit = next((letter for letter in "km" if letter in letters), layout.default_unit)
    return IostatOptions(
        letters=frozenset(letters),
        devices=tuple(named),
        partitions_of=tuple(partitions),
        sampling=parse_sampling("iostat", numbers, allowed),
        unit=UNITS[unit],
    )


def run_iostat(
    options: IostatOptions,
    snapshots: Iterable[Snapshot],
    *,
    layout: IostatLayout,
    hostname: str,
    release: str,
    machine: str,
    wall: Wall,
    times: TimeFormat,
) -> Iterator[str]:
    """Yield the title, then one text per report, taking snapshots as they come."""
    prev: Snapshot | None = None
    skip = "y" in options.letters and options.sampling.interval_s is not None
    left = options.sampling.count
    for number, cur in enumerate(snapshots):
        if number == 0:
            cpus = len(parse_stat(cur.text("stat")).cpus)
            yield render_title(
                layout,
                release=release,
                hostname=hostname,
                machine=machine,
                cpus=cpus,
                wall=wall.at(cur.t_ns),
                times=times,
            )
        if skip:
            skip = False
            yield layout.after_skipped
        else:
            yield render_report(compute_iostat(prev, cur), options, layout, wall, times)
            left = None if left is None else left - 1
        if left == 0:
            return
        prev = cur


def render_report(
    report: IostatReport,
    options: IostatOptions,
    layout: IostatLayout,
    wall: Wall,
    times: TimeFormat,
) -> str:
    """Return the text of one report, with what separates it from the next."""
    text = render_time(layout, wall.at(report.t_ns), times) if "t" in options.letters else ""
    if options.shows_cpu:
        text += render_cpu(report, layout)
    if options.shows_devices:
        columns = layout.extended if "x" in options.letters else layout.basic
        text += render_devices(shown(report, options, layout), layout, columns, options.unit)
    return text + layout.after_report


def shown(report: IostatReport, options: IostatOptions, layout: IostatLayout) -> list[DeviceReport]:
    """Return the devices that the options let through, in the order of print."""
    devices = [d for d in report.devices if _is_asked(d, options)]
    if "x" in options.letters:
        devices = [d for d in devices if not d.is_short]  # They lack most of the columns.
    if "z" in options.letters:
        devices = [d for d in devices if not d.is_idle]
    in_file_order = not layout.sorts_devices or {ALL, USED} & set(options.partitions_of)
    return devices if in_file_order else sorted(devices, key=lambda d: d.name)


def _is_asked(device: DeviceReport, options: IostatOptions) -> bool:
    if device.name in (*options.devices, *options.partitions_of) or ALL in options.partitions_of:
        return True
    if device.is_unused:
        return False
    if not options.partitions_of:
        return not options.devices and not device.disk
    return USED in options.partitions_of or device.disk in options.partitions_of


def _partition_argument(words: list[str]) -> str:
    """Take the optional argument of -p from the words."""
    if words and not words[0].startswith("-") and not words[0].isdecimal():
        return words.pop(0).removeprefix("/dev/")
    return USED
