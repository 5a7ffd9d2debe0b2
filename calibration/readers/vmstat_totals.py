"""vmstat's tables of totals since boot: -d by disk, -s and -D as a list, -p of a partition.

Models: what `vmstat -d [-w] [-t]`, `-s`, `-D` and `-p PARTITION` printed.
Linux counterpart: procps 3.2 vmstat.c:diskformat, sum_format, disksum_format, diskpartition_format;
procps-ng 4.0 src/vmstat.c.
Invariants: all is since boot, each table again; sectors are 512 B, ticks 1/100 s. "pages paged in"
of 3.x counts KiB, as /proc/vmstat's pgpgin does, in spite of its name.
Left out: the column cur of -d, which is the requests in flight divided by 1000: 0; "boot time";
differences between two tables (their busy time is whole seconds); slabs (-m).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from calibration.readers.line import CUT, Line, Sink
from calibration.readers.stamp import Pace, learn_stamp, parse_stamp
from calibration.readers.vmstat import KIB, UNITS, Cell

SECTOR_BYTES: Final = 512.0
TICK_MS: Final = 10.0  # USER_HZ is 100 on all that runs vmstat

_FLOW = ("total", "merged", "sectors", "ms")
DISK_TITLES: Final = (*_FLOW, *_FLOW, "cur", "sec")
DISK_CELLS: Final[tuple[Cell | None, ...]] = (
    Cell("device", "reads_total"),
    Cell("device", "read_merges_total"),
    Cell("device", "read_bytes_total", SECTOR_BYTES),
    Cell("device", "read_ms_total"),
    Cell("device", "writes_total"),
    Cell("device", "write_merges_total"),
    Cell("device", "write_bytes_total", SECTOR_BYTES),
    Cell("device", "write_ms_total"),
    None,
    Cell("device", "io_ticks_ms_total", 1000.0),
)
PARTITION_TITLES: Final = ("reads", "read", "sectors", "writes", "requested", "writes")
PARTITION_CELLS: Final[tuple[Cell | None, ...]] = (
    Cell("device", "reads_total"),
    Cell("device", "read_bytes_total", SECTOR_BYTES),
    Cell("device", "writes_total"),
    Cell("device", "write_bytes_total", SECTOR_BYTES),
)
# What stands before a label of memory is a unit of -S; factor 0 marks those.
MEMORY_LABELS: Final[Mapping[str, str]] = {
    "total memory": "mem_total_bytes",
    "used memory": "mem_used_bytes",
    "active memory": "mem_active_bytes",
    "inactive memory": "mem_inactive_bytes",
    "free memory": "mem_free_bytes",
    "buffer memory": "mem_buffers_bytes",
    "swap cache": "mem_cached_bytes",  # prints the page cache, whatever the label says
    "total swap": "swap_total_bytes",
    "used swap": "swap_used_bytes",
    "free swap": "swap_free_bytes",
}
SUM_LABELS: Final[Mapping[str, Cell | None]] = {
    "non-nice user cpu ticks": Cell("cpu", "user_ms_total", TICK_MS),
    "nice user cpu ticks": Cell("cpu", "nice_ms_total", TICK_MS),
    "system cpu ticks": Cell("cpu", "system_ms_total", TICK_MS),
    "idle cpu ticks": Cell("cpu", "idle_ms_total", TICK_MS),
    "IO-wait cpu ticks": Cell("cpu", "iowait_ms_total", TICK_MS),
    "IRQ cpu ticks": Cell("cpu", "irq_ms_total", TICK_MS),
    "softirq cpu ticks": Cell("cpu", "soft_ms_total", TICK_MS),
    "stolen cpu ticks": Cell("cpu", "steal_ms_total", TICK_MS),
    "non-nice guest cpu ticks": Cell("cpu", "guest_ms_total", TICK_MS),
    "nice guest cpu ticks": Cell("cpu", "gnice_ms_total", TICK_MS),
    "pages paged in": Cell("system", "pgin_bytes_total", KIB),
    "pages paged out": Cell("system", "pgout_bytes_total", KIB),
    "paged in": Cell("system", "pgin_bytes_total", KIB),  # 4.0: "K paged in"
    "paged out": Cell("system", "pgout_bytes_total", KIB),
    "pages swapped in": Cell("system", "swapin_pages_total"),
    "pages swapped out": Cell("system", "swapout_pages_total"),
    "interrupts": Cell("system", "intr_total"),
    "CPU context switches": Cell("system", "ctxt_total"),
    "boot time": None,
    "forks": Cell("system", "forks_total"),
    "disks": None,
    "partitions": None,
    "total reads": Cell("device", "reads_total"),
    "merged reads": Cell("device", "read_merges_total"),
    "read sectors": Cell("device", "read_bytes_total", SECTOR_BYTES),
    "milli reading": Cell("device", "read_ms_total"),
    "writes": Cell("device", "writes_total"),
    "merged writes": Cell("device", "write_merges_total"),
    "written sectors": Cell("device", "write_bytes_total", SECTOR_BYTES),
    "milli writing": Cell("device", "write_ms_total"),
    "inprogress IO": None,
    "in progress IO": None,
    "milli spent IO": Cell("device", "io_ticks_ms_total", 1000.0),
    "milli weighted IO": None,
    "weighted milli spent IO": None,
}
SUM_BEGINS: Final = frozenset({"total memory", "disks"})
# Lines of /proc/stat look like rows of disks.
_NOT_A_DISK: Final = re.compile(r"\d+|cpu\d*|intr|softirq")
_SUM: Final = re.compile(r"\s*(?P<value>\d+)\s+(?:(?P<unit>[bBkKmM])\s+)?(?P<label>[A-Za-z].*?)\s*")


@dataclass
class VmstatDiskReader:
    """Takes the tables of -d and -p: a name, and the counters under their titles."""

    sink: Sink
    format: ClassVar[str] = "vmstat-disk"
    pace: Pace = field(init=False)
    cells: tuple[Cell | None, ...] = ()
    partition: str = ""
    seen: list[str] = field(default_factory=list)
    time_s: float | None = None

    def __post_init__(self) -> None:
        """Begin at report 0."""
        self.pace = Pace(self.sink)

    def feed(self, line: Line) -> bool:
        """Take the header and the rows below it."""
        if line.text.startswith("disk- -"):
            return True
        words = line.fields
        if tuple(words[: len(DISK_TITLES)]) == DISK_TITLES:
            self.cells, self.partition = DISK_CELLS, ""
            return True
        if tuple(words[1:]) == PARTITION_TITLES:
            self.cells, self.partition = PARTITION_CELLS, words[0]
            return True
        name, numbers = self._split(words)
        if not self.cells or not name or not all(word.isdecimal() for word in numbers):
            return False
        if line.may_be_cut and not words[1 + len(numbers) :]:
            self.sink.skip(line, CUT)
        else:
            self._row(line, name, [int(word) for word in numbers], words[1 + len(numbers) :])
        return True

    def close(self) -> None:
        """Keep the interval as a fact."""
        self.pace.close()

    def _split(self, words: list[str]) -> tuple[str, list[str]]:
        """Return the device and the words that should be its numbers; no name if it is no row."""
        count = len(self.cells)
        if self.partition:
            return (self.partition, words) if len(words) == count else ("", [])
        after = " ".join(words[1 + count :])
        if (
            len(words) <= count
            or _NOT_A_DISK.fullmatch(words[0])
            or (after and parse_stamp(after) is None)
        ):
            return "", []
        return words[0], words[1 : 1 + count]

    def _row(self, line: Line, name: str, numbers: list[int], after: list[str]) -> None:
        if not self.seen or name in self.seen:
            self.seen.clear()
            self.time_s = self.pace.step()
        self.seen.append(name)
        stamp = parse_stamp(" ".join(after))
        if stamp is not None:
            self.time_s = self.pace.at(learn_stamp(self.sink, stamp))
        self.sink.learn("tool", "vmstat")
        values = {
            cell.column: number * cell.factor
            for cell, number in zip(self.cells, numbers, strict=True)
            if cell is not None
        }
        self.sink.add(
            line,
            "device",
            name,
            values,
            time_s=self.time_s,
            since_boot=True,
            report=self.pace.report,
        )


@dataclass
class VmstatSumReader:
    """Takes the lists of -s and -D: a number, a unit for memory, a label."""

    sink: Sink
    format: ClassVar[str] = "vmstat-sum"
    pace: Pace = field(init=False)
    time_s: float | None = None

    def __post_init__(self) -> None:
        """Begin at report 0."""
        self.pace = Pace(self.sink)

    def feed(self, line: Line) -> bool:
        """Take a line with a known label."""
        found = _SUM.fullmatch(line.text)
        label = found["label"] if found else ""
        if found is None or (label not in SUM_LABELS and label not in MEMORY_LABELS):
            return False
        if label in SUM_BEGINS or self.pace.report < 0:
            self.time_s = self.pace.step()
        cell = SUM_LABELS.get(label)
        if label in MEMORY_LABELS:
            cell = Cell("system", MEMORY_LABELS[label], UNITS[found["unit"] or "K"].memory)
        if cell is not None:
            self._add(line, cell, int(found["value"]))
        return True

    def close(self) -> None:
        """Keep the interval as a fact."""
        self.pace.close()

    def _add(self, line: Line, cell: Cell, value: int) -> None:
        self.sink.learn("tool", "vmstat")
        self.sink.add(
            line,
            cell.kind,
            "" if cell.kind == "system" else "all",
            {cell.column: value * cell.factor},
            time_s=self.time_s,
            since_boot=cell.column.endswith("_total"),
            report=self.pace.report,
        )
