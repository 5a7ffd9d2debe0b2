"""mpstat: the time of each CPU, and its interrupts, in each interval.

Models: `mpstat [-Au] [-P CPUS] [-I SUM,CPU,SCPU|ALL] [INTERVAL [COUNT]]` of sysstat 12: since boot
without an interval, else a report an interval and the averages at the end.
Linux counterpart: sysstat 12.6.1 mpstat.c (main, rw_mpstat_loop, get_global_cpu_mpstats,
write_plain_cpu_stats, write_plain_isumcpu_stats, write_plain_irqcpu_stats, read_interrupts_stat),
common.c (get_per_cpu_interval, parse_values); compared with the tool itself.
Invariants: with D(x) the increase of a counter of one CPU, T the D of all its states, and t the
interval in seconds (from /proc/uptime)

    %usr = 100 D(user - guest) / T     %nice = 100 D(nice - guest_nice) / T     others 100 D(x) / T
    intr/s = D(interrupts) / t

"all" is the sum over the CPUs, T too; its intr/s is the total of /proc/stat. With -I SUM and SCPU
together (-A) the intr/s of a single CPU are its soft interrupts: the real tool adds both files up
in one place. A CPU that counted nothing is idle. iowait that goes backwards counts as 0, and idle
that does from 0.
Left out: -n, -N, -T, -o, -V, --dec: refused with what is allowed. Sysstat 9 and older, whose
columns differ. The real tool takes a CPU whose counters are all 0 for one that is off; here it is
one that has just booted, as no real server can be read in that moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from sim.tools.clock import Wall
from sim.tools.iostat import IostatLayout, TimeFormat, rate, render_title
from sim.tools.parse import (
    CpuTicks,
    InterruptCounts,
    parse_interrupts,
)
from sim.tools.reading import Reading
from sim.tools.snapshot import Snapshot
from sim.tools.usage import Sampling, ToolUsageError, parse_sampling

AVERAGE = "Average:"
STAMP_WIDTH = 11
COLUMN_MIN = 10  # of an interrupt, with "/s"
ALL_CPUS = "ALL"
SUMMED = -1  # the row "all"
_U32 = 0xFFFFFFFF
_STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_COLUMNS = ("usr", "nice", "sys", "iowait", "irq", "soft", "steal", "guest", "gnice", "idle")


class CpuReading(Reading):
    """One reading of /proc, parsed as far as it is asked for."""

    @cached_property
    def interrupts(self) -> InterruptCounts:
        """Return /proc/interrupts."""
        return parse_interrupts("interrupts", self._snapshot.text("interrupts"))

    @cached_property
    def softirqs(self) -> InterruptCounts:
        """Return /proc/softirqs, which kernels before 2.6.31 do not have: nothing then."""
        text = self._snapshot.files.get("softirqs", "")
        return parse_interrupts("softirqs", text) if text else InterruptCounts((), {})


@dataclass(frozen=True, slots=True)
class Spent:
    """The ticks of one CPU in an interval, and their total."""

    ticks: CpuTicks
    total: int

    @property
    def percents(self) -> tuple[float, ...]:
        """Return the columns of -u; a CPU that counted nothing was idle."""
        if not self.total:
            return (*(0.0 for _ in _COLUMNS[:-1]), 100.0)
        ticks = self.ticks
        shown = (
            ticks.user,  # without guests
            ticks.nice,
            ticks.system,
            ticks.iowait,
            ticks.irq,
            ticks.softirq,
            ticks.steal,
            ticks.guest,
            ticks.guest_nice,
            ticks.idle,
        )
        return tuple(n / self.total * 100 for n in shown)


@dataclass(frozen=True, slots=True)
class Interval:
    """From one reading to another; from boot where there is none before."""

    prev: CpuReading | None
    cur: CpuReading

    @property
    def length_cs(self) -> int:
        """Return the length in 1/100 s, at least 1."""
        before = self.prev.uptime_cs if self.prev is not None else 0
        return max(self.cur.uptime_cs - before, 1)

    def per_s(self, before: int, now: int) -> float:
        """Return the increase of a counter per second."""
        return rate(now - before, self.length_cs)

    def cpus(self) -> dict[int, Spent]:
        """Return what each CPU spent that is on at both ends, and of all together (SUMMED)."""
        earlier = self.prev.stat.cpus if self.prev is not None else None
        single = {
            number: spent(earlier[number] if earlier is not None else CpuTicks(), now)
            for number, now in self.cur.stat.cpus.items()
            if earlier is None or number in earlier
        }
        ticks = [each.ticks for each in single.values()]
        summed = CpuTicks(
            **{name: sum(getattr(t, name) for t in ticks) for name in CpuTicks.__slots__}
        )
        total = sum(each.total for each in single.values())
        return {SUMMED: Spent(summed, max(total, 1)), **single}


def spent(before: CpuTicks, now: CpuTicks) -> Spent:
    """Return the ticks of one CPU between two readings; user and nice without guests' (ms_cpu)."""
    iowait = before.iowait
    if now.iowait < iowait:
        # An inaccurate account of the kernel, or a CPU that was off and counts from 0.
        iowait = now.iowait if now.idle > before.idle else 0
    idle = before.idle if now.idle >= before.idle else 0
    counted = replace(before, iowait=iowait, idle=idle)
    total = sum(getattr(now, name) - getattr(counted, name) for name in _STATES)
    own = now - counted
    user = (now.user - now.guest) - (before.user - before.guest)
    nice = (now.nice - now.guest_nice) - (before.nice - before.guest_nice)
    total += max(-user, 0) + max(-nice, 0)
    return Spent(replace(own, user=max(user, 0), nice=max(nice, 0)), total)


# -- Tables


def cpu_table(asked: Asked, interval: Interval, header: str | None, stamp: str) -> str:
    """Return -u: percent of each CPU's time."""
    titles = "".join(f" {f'%{name}':>7}" for name in _COLUMNS)
    text = f"\n{header:<{STAMP_WIDTH}}  CPU{titles}\n" if header is not None else ""
    for number, own in interval.cpus().items():
        if asked.shows(number):
            cells = "".join(f" {value:7.2f}" for value in own.percents)
            text += f"{stamp:<{STAMP_WIDTH}} {_name(number)}{cells}\n"
    return text


def sum_table(asked: Asked, interval: Interval, header: str | None, stamp: str) -> str:
    """Return -I SUM: interrupts per second of all CPUs and of each."""
    text = f"\n{header:<{STAMP_WIDTH}}  CPU    intr/s\n" if header is not None else ""
    prev, cur = interval.prev, interval.cur
    for number, own in interval.cpus().items():
        if not asked.shows(number):
            continue
        if number == SUMMED:
            # The tool keeps this total in 32 bits.
            before = prev.stat.intr & _U32 if prev is not None else 0
            per_s = interval.per_s(before, cur.stat.intr & _U32)
        elif own.total:
            before = asked.counts(prev).of_cpu(number) if prev is not None else 0
            per_s = interval.per_s(before, asked.counts(cur).of_cpu(number))
        else:
            per_s = 0.0
        text += f"{stamp:<{STAMP_WIDTH}} {_name(number)} {per_s:9.2f}\n"
    return text


def irq_table(asked: Asked, interval: Interval, header: str | None, stamp: str) -> str:
    """Return -I CPU: each interrupt per second on each CPU."""
    before = interval.prev.interrupts if interval.prev is not None else None
    return _each(asked, interval, before, interval.cur.interrupts, header, stamp)


def softirq_table(asked: Asked, interval: Interval, header: str | None, stamp: str) -> str:
    """Return -I SCPU: each soft interrupt per second on each CPU."""
    before = interval.prev.softirqs if interval.prev is not None else None
    return _each(asked, interval, before, interval.cur.softirqs, header, stamp)


def _each(
    asked: Asked,
    interval: Interval,
    before: InterruptCounts | None,
    now: InterruptCounts,
    header: str | None,
    stamp: str,
) -> str:
    text = ""
    if header is not None:
        titles = "".join(f" {name:>8}/s" for name in now.counts)
        text = f"\n{header:<{STAMP_WIDTH}}  CPU{titles}\n"
    for number in interval.cpus():
        if number == SUMMED or (asked.cpus is not None and not asked.shows(number)):
            continue
        text += f"{stamp:<{STAMP_WIDTH}}  {number:3d}"
        for name in now.counts:
            earlier = before.count(name, number) if before is not None else 0
            width = max(len(name) + 2, COLUMN_MIN)
            text += f" {interval.per_s(earlier, now.count(name, number)):{width}.2f}"
        text += "\n"
    return text


def _name(number: int) -> str:
    return " all" if number == SUMMED else f"{number:4d}"


# -- The command line

TABLES = {"u": cpu_table, "SUM": sum_table, "CPU": irq_table, "SCPU": softirq_table}
_ALLOWED = "-u, -P ALL|all|N,N-N, -I SUM,CPU,SCPU|ALL, -A, INTERVAL, COUNT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A command line of mpstat, understood."""

    tables: tuple[str, ...]  # of TABLES
    cpus: frozenset[int] | None  # None: all together; an empty set: each, and all together
    sampling: Sampling

    def shows(self, number: int) -> bool:
        """Tell whether a CPU, or SUMMED, has a row."""
        if self.cpus is None:
            return number == SUMMED
        return not self.cpus or number in self.cpus

    def counts(self, reading: CpuReading) -> InterruptCounts:
        """Return what the intr/s of a single CPU counts."""
        softirqs = reading.softirqs
        return softirqs if "SCPU" in self.tables and softirqs.cpus else reading.interrupts

    @property
    def repeats_header(self) -> bool:
        """Tell whether each report has its header."""
        return self.cpus is not None or len(self.tables) > 1


def parse_options(arguments: Sequence[str]) -> Asked:
    """Return what the arguments (without the tool's name) ask; raise ToolUsageError."""
    words = list(arguments)
    tables: set[str] = set()
    cpus: frozenset[int] | None = None
    numbers: list[str] = []
    while words:
        word = words.pop(0)
        if word == "-P":
            cpus = _cpus(words.pop(0) if words else "")
        elif word == "-I":
            tables |= _kinds(words.pop(0) if words else "")
        elif word.startswith("-") and len(word) > 1 and set(word[1:]) <= {"u", "A"}:
            tables.add("u")
            if "A" in word:
                tables |= TABLES.keys()
                cpus = frozenset() if cpus is None else cpus
        elif word.startswith("-"):
            raise ToolUsageError("mpstat", f"unknown option {word!r}", _ALLOWED)
        else:
            numbers.append(word)
    sampling = parse_sampling("mpstat", numbers, _ALLOWED)
    if sampling.interval_s is not None and sampling.count is not None:
        sampling = replace(sampling, count=sampling.count + 1)
    chosen = tuple(name for name in TABLES if name in (tables or {"u"}))
    return Asked(tables=chosen, cpus=cpus, sampling=sampling)


def _kinds(word: str) -> set[str]:
    """Return the tables that the word after -I names."""
    kinds = set(word.split(","))
    if not kinds <= {"SUM", "CPU", "SCPU", "ALL"}:
        raise ToolUsageError("mpstat", f"-I needs SUM, CPU, SCPU or ALL, not {word!r}", _ALLOWED)
    return {"SUM", "CPU", "SCPU"} if "ALL" in kinds else kinds


def _cpus(word: str) -> frozenset[int]:
    """Return the CPUs that the word after -P names; the empty set for ALL."""
    if word == ALL_CPUS:
        return frozenset()
    found: set[int] = set()
    for part in word.split(","):
        first, dash, last = part.partition("-")
        if part == "all":
            found.add(SUMMED)
        elif (
            first.isdecimal()
            and (last.isdecimal() or not dash)
            and int(last or first) >= int(first)
        ):
            found |= set(range(int(first), int(last or first) + 1))
        else:
            raise ToolUsageError("mpstat", f"-P needs ALL, all or numbers, not {part!r}", _ALLOWED)
    return frozenset(found)


def run_mpstat(
    asked: Asked,
    snapshots: Iterable[Snapshot],
    *,
    title: IostatLayout,
    hostname: str,
    release: str,
    machine: str,
    wall: Wall,
    times: TimeFormat,
) -> Iterator[str]:
    """Yield the title, one text per report, and the averages, taking snapshots as they come."""
    readings = (CpuReading(snapshot) for snapshot in snapshots)
    first = next(readings, None)
    if first is None:
        return
    _check_cpus(asked, first.stat.cpus)
    yield render_title(
        title,
        release=release,
        hostname=hostname,
        machine=machine,
        cpus=len(first.stat.cpus),
        wall=wall.at(first.t_ns),
        times=times,
    ).removesuffix("\n")
    if asked.sampling.interval_s is None:
        stamp = wall.at(first.t_ns).strftime(times.clock)
        yield _report(asked, Interval(None, first), stamp, stamp, always=True)
        return
    prev, reports = first, 0
    for cur in readings:
        before, stamp = (wall.at(reading.t_ns).strftime(times.clock) for reading in (prev, cur))
        always = asked.repeats_header or not reports
        yield _report(asked, Interval(prev, cur), before, stamp, always=always)
        prev, reports = cur, reports + 1
        if asked.sampling.count == reports + 1:
            break
    if reports:
        interval = Interval(first, prev)
        yield _report(asked, interval, AVERAGE, AVERAGE, always=asked.repeats_header)


def _check_cpus(asked: Asked, there: Mapping[int, CpuTicks]) -> None:
    """Refuse a CPU that the server does not have."""
    missing = sorted((asked.cpus or frozenset()) - there.keys() - {SUMMED})
    if missing:
        raise ToolUsageError("mpstat", f"no CPU {missing[0]}; there are {len(there)}", _ALLOWED)


def _report(asked: Asked, interval: Interval, before: str, stamp: str, *, always: bool) -> str:
    """Return the tables of a report; a changed list of interrupts has its header again."""
    text = ""
    for name in asked.tables:
        is_new = always or _has_changed(name, interval)
        text += TABLES[name](asked, interval, before if is_new else None, stamp)
    return text


def _has_changed(table: str, interval: Interval) -> bool:
    """Return whether the columns of a table are others than in the reading before."""
    prev, cur = interval.prev, interval.cur
    if prev is None or table not in ("CPU", "SCPU"):
        return False
    if table == "CPU":
        return list(prev.interrupts.counts) != list(cur.interrupts.counts)
    return list(prev.softirqs.counts) != list(cur.softirqs.counts)
