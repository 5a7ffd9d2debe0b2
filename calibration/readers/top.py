"""The head of top: load, tasks, CPU, memory; of the tasks below only that they are tasks.

Models: `top -b -d 5`, or the screen pasted.
Linux counterpart: procps 2.0 to 3.2 top.c:summary_show, procps-ng 3.3 to 4.0 (top/top.c).
Invariants: figures are found by the words beside them, glued or not ("0.0 ni,100.0 id"); a line of
the head that holds anything else is reported.
Left out: the tasks; the table of CPU states of Red Hat's procps 2.0.11 on. System time is without
interrupts here, which stand beside it.

Rule for what the text does not say: with procps 3.2 ("10.6%us") the first of several screens is
since boot; a lone screen is taken for one that has been on for an interval, and procps-ng ("10.6
us") measures a moment before its first screen. With procps 2.0, whose first line is uptime's and is
taken as that, a screen begins with the line of processes below it; the first is as with 3.2.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from calibration.readers.line import CUT, Line, Sink, number
from calibration.readers.stamp import Pace
from calibration.readers.uptime import add_uptime, parse_uptime_row

CPU_WORDS: Final[Mapping[str, str]] = {
    "us": "user_pct",
    "sy": "system_pct",
    "ni": "nice_pct",
    "id": "idle_pct",
    "wa": "iowait_pct",
    "hi": "irq_pct",
    "si": "soft_pct",
    "st": "steal_pct",
    # procps 2.0
    "user": "user_pct",
    "system": "system_pct",
    "nice": "nice_pct",
    "idle": "idle_pct",
    "iowait": "iowait_pct",
    "irq": "irq_pct",
    "softirq": "soft_pct",
}
MEMORY_WORDS: Final[Mapping[tuple[str, str], str]] = {
    ("Mem", "total"): "mem_total_bytes",
    ("Mem", "av"): "mem_total_bytes",
    ("Mem", "used"): "mem_used_bytes",
    ("Mem", "free"): "mem_free_bytes",
    ("Mem", "shrd"): "mem_shared_bytes",
    ("Mem", "buff"): "mem_buffers_bytes",
    ("Mem", "buffers"): "mem_buffers_bytes",
    ("Mem", "buff/cache"): "mem_buffcache_bytes",
    ("Swap", "total"): "swap_total_bytes",
    ("Swap", "av"): "swap_total_bytes",
    ("Swap", "used"): "swap_used_bytes",
    ("Swap", "free"): "swap_free_bytes",
    # The page cache and what is available stand in the line of swap for want of room.
    ("Swap", "cached"): "mem_cached_bytes",
    ("Swap", "cached Mem"): "mem_cached_bytes",
    ("Swap", "avail Mem"): "mem_available_bytes",
}
SCALES: Final[Mapping[str, int]] = {letter: 1024**power for power, letter in enumerate("BKMGTPE")}
_TASKS: Final = re.compile(
    r"(?:Tasks|Threads):\s*(?P<total>\d+) total,\s*(?P<running>\d+) running,"
    r"\s*\d+ sleeping,\s*\d+ stopped,\s*\d+ zombie\s*"
)
_PROCESSES: Final = re.compile(
    r"(?P<total>\d+) processes: \d+ sleeping, (?P<running>\d+) running, \d+ zombie, \d+ stopped\s*"
)
_CPU: Final = re.compile(
    r"%?Cpu(?P<cpu>\(s\)|\d+)\s*:(?P<rest>.*)|CPU(?P<old>\d*) states:(?P<states>.*)"
)
_CPU_ITEM: Final = re.compile(r"\s*(\d+(?:[.,]\d+)?)\s*%?\s*([a-z]+)\s*(?:,|$|\s)")
_MEMORY: Final = re.compile(r"(?:(?P<unit>[KMGTPE])iB )?(?P<what>Mem|Swap)\s*:(?P<rest>.*)")
_MEMORY_ITEM: Final = re.compile(
    r"\s*(\d+(?:[.,]\d+)?)([kKmMgGtT])?\+?\s+(buff/cache|avail Mem|cached Mem|[a-z]+)"
    r"(?:\s*[,.]|\s*$|\s+(?=\d))"
)
_TASK_TITLES: Final = re.compile(r"\s*PID\s+.*\b(COMMAND|Command)\b.*")
_OLD_CPU: Final = re.compile(r"Cpu.*%us.*|CPU\d* states:.*")


@dataclass
class TopReader:
    """Takes screens of top."""

    sink: Sink
    format: ClassVar[str] = "top"
    pace: Pace = field(init=False)
    time_s: float | None = None
    in_tasks: bool = False
    first: list[tuple[Line, str, dict[str, float]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin before the first screen."""
        self.pace = Pace(self.sink)

    def feed(self, line: Line) -> bool:
        """Take a line of the head, or of the tasks below."""
        if line.text.startswith("top - "):
            return self._begin(line)
        if _PROCESSES.fullmatch(line.text):
            return self._begin_below_uptime(line)
        if self.pace.report < 0:
            return False
        return self._tasks(line) or self._cpu(line) or self._memory(line) or self._task(line)

    def close(self) -> None:
        """Add the CPU of the first screen, known now to be the only one or not."""
        self._add_first(since_boot=False)
        self.pace.close()

    def _begin(self, line: Line) -> bool:
        row = parse_uptime_row(line.text)
        if row is None:
            return False
        self._add_first(since_boot=True)
        self.time_s = add_uptime(self.sink, line, row, self.pace)
        self.in_tasks = False
        self.sink.learn("tool", "top")
        return True

    def _begin_below_uptime(self, line: Line) -> bool:
        """Begin a screen of procps 2.0: what its first line said is in the table already."""
        if self.sink.uptime is None or self.sink.uptime[0].number != line.number - 1:
            return False
        self._add_first(since_boot=True)
        _line, self.pace.report, self.time_s = self.sink.uptime
        self.pace.at(self.time_s)
        self.in_tasks = False
        return self._tasks(line)

    def _add_first(self, *, since_boot: bool) -> None:
        for line, name, values in self.first:
            self.sink.add(
                line,
                "cpu",
                name,
                values,
                time_s=self.pace.times[0],
                since_boot=since_boot,
                report=0,
            )
        self.first.clear()

    def _add(self, line: Line, values: dict[str, float]) -> None:
        self.sink.add(
            line,
            "system",
            "",
            values,
            time_s=self.time_s,
            since_boot=False,
            report=self.pace.report,
        )

    def _tasks(self, line: Line) -> bool:
        found = _TASKS.fullmatch(line.text) or _PROCESSES.fullmatch(line.text)
        if found is not None:
            self._add(
                line,
                {"procs_total": int(found["total"]), "procs_running": int(found["running"])},
            )
        return found is not None

    def _cpu(self, line: Line) -> bool:
        found = _CPU.fullmatch(line.text)
        if found is None:
            return False
        text = found["rest"] if found["rest"] is not None else found["states"]
        items = _items(_CPU_ITEM, text)
        if not items or any(word not in CPU_WORDS for _value, word in items):
            self.sink.skip(line, "not all of it is understood")
            return True
        number_of = found["cpu"] or found["old"] or ""
        name = number_of if number_of.isdecimal() else "all"
        values = {CPU_WORDS[word]: number(value) for value, word in items}
        if self.pace.report == 0 and _OLD_CPU.match(line.text):
            self.first.append((line, name, values))
        else:
            self.sink.add(
                line,
                "cpu",
                name,
                values,
                time_s=self.time_s,
                since_boot=False,
                report=self.pace.report,
            )
        return True

    def _memory(self, line: Line) -> bool:
        found = _MEMORY.fullmatch(line.text)
        if found is None:
            return False
        if not line.ended:
            self.sink.skip(line, CUT)
            return True
        items = _items(_MEMORY_ITEM, found["rest"])
        columns = [MEMORY_WORDS.get((found["what"], word)) for *_numbers, word in items]
        if not items or None in columns:
            self.sink.skip(line, "not all of it is understood")
            return True
        values = {
            column: number(value) * SCALES[(letter or found["unit"] or "K").upper()]
            for column, (value, letter, _word) in zip(columns, items, strict=True)
            if column is not None
        }
        self._add(line, values)
        if "mem_total_bytes" in values:
            self.sink.learn("memory_bytes", f"{values['mem_total_bytes']:.0f}")
        return True

    def _task(self, line: Line) -> bool:
        """Take the titles of the tasks, and what begins with a PID below them."""
        if _TASK_TITLES.fullmatch(line.text):
            self.in_tasks = True
            return True
        words = line.fields
        is_task = len(words) >= 8 and words[0].isdecimal() and not words[1].isdecimal()
        return self.in_tasks and is_task


def _items(pattern: re.Pattern[str], text: str) -> list[tuple[str, ...]]:
    """Return the groups of a pattern that, repeated, is all of the text; [] if it is not."""
    found, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = pattern.match(text, at)
        if match is None:
            return []
        found.append(match.groups(""))
        at = match.end()
    return found
