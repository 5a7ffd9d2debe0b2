"""fio's text: `--output-format=normal`.

Models: the report that fio prints when its jobs have ended.
Linux counterpart: fio stat.c (show_thread_status_normal, show_ddir_status, show_clat_percentiles,
 show_group_stats, print_disk_util), lib/num2str.c, 3.36; HOWTO "Normal output".
Invariants: the same figures as in the JSON, in fio's lines, units and widths.
Left out: the line of ETA, the lines that announce the jobs, error counts of continue_on_error.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Final

from sim.report.fio_figures import (
    BATCHES,
    DEPTHS,
    DIRECTION_NAMES,
    FIO_VERSION,
    LATENCIES,
    LATENCIES_MS,
    PERCENTILES,
    Row,
    bytes_per_s,
    clock,
    cpu_pct,
    ctime,
    group_bytes_per_s,
    operations,
    rows,
    runtime_ms,
    shares,
)
from sim.study.fio_run import DiskUse, FioResult
from sim.user.fio import DirectionStat, IoStat, percentiles

KIB: Final = 1024
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL: Final = ("", "k", "M", "G", "T", "P", "E")


def fio_text(result: FioResult) -> str:
    """Return the report of a run."""
    lines = [FIO_VERSION]
    for row in rows(result.jobs):
        if operations(row.stat) or row.stat.error:
            lines += _job(row, result)
    for group in dict.fromkeys(done.job.group for done in result.jobs):
        lines += _group(result, group)
    if result.disks:
        lines += ["", "Disk stats (read/write):", *map(_disk, result.disks)]
    return "\n".join(lines) + "\n"


def number(value: float, base: int, digits: int = 4) -> str:
    """Return a number with at most `digits` digits and a prefix of base 1000 or 1024 (num2str)."""
    prefixes = _BINARY if base == KIB else _DECIMAL
    power = 0
    while len(str(int(value))) > digits and power + 1 < len(prefixes):
        value /= base
        power += 1
    decimals = max(digits - len(str(int(value))) - 1, 0) if power else 0
    return f"{value:.{decimals}f}{prefixes[power]}"


def _job(row: Row, result: FioResult) -> Iterator[str]:
    stat, job = row.stat, row.job
    told = f" ({os.strerror(stat.error)})" if stat.error else ""
    yield (
        f"{job.name}: (groupid={job.group}, jobs={stat.members}): err={stat.error:2}{told}: "
        f"pid=0: {ctime(clock(result))}"
    )
    if job.description:
        yield f"  Description  : [{job.description}]"
    for index, name in enumerate(DIRECTION_NAMES):
        direction = stat.directions[index]
        if direction.total_ios:
            yield from _direction(name, direction, group_bytes_per_s(result, job.group, index))
    total = operations(stat)
    yield from _classes("nsec", LATENCIES, shares(stat.latency_ns, total, 0.01))
    yield from _classes("usec", LATENCIES, shares(stat.latency_us, total, 0.01))
    yield from _classes("msec", LATENCIES_MS, shares(stat.latency_ms, total, 0.01))
    if stat.sync.samples:
        yield "  fsync/fdatasync/sync_file_range:"
        yield _latency("sync", stat.sync)
        yield from _percentiles("sync", stat.sync_plat)
    yield (
        f"  cpu          : usr={cpu_pct(stat, stat.user_ns):3.2f}%, "
        f"sys={cpu_pct(stat, stat.system_ns):3.2f}%, ctx={stat.context_switches}, majf=0, minf=0"
    )
    yield _depths("  IO depths    : ", DEPTHS, shares(stat.depth, total, 0.1))
    yield _depths("     submit    : ", BATCHES, shares(stat.submit, sum(stat.submit), 0.1))
    yield _depths("     complete  : ", BATCHES, shares(stat.reaped, sum(stat.reaped), 0.1))
    issued = ",".join(str(direction.total_ios) for direction in stat.directions)
    yield (f"     issued rwts: total={issued},{stat.fsyncs} short=0,0,0,0 dropped=0,0,0,0")
    yield (f"     latency   : target=0ns, window=0ns, percentile=100.00%, depth={job.iodepth}")


def _direction(name: str, direction: DirectionStat, of_group: int) -> Iterator[str]:
    """Yield the block of reads or of writes."""
    ms = runtime_ms(direction)
    rate = bytes_per_s(direction)
    yield (
        f"  {name}: IOPS={number(1000 * direction.total_ios // ms, 1000)}, "
        f"BW={number(rate, KIB)}B/s ({number(rate, 1000)}B/s)"
        f"({number(direction.total_bytes, KIB)}B/{ms}msec)"
    )
    for label, stat in (
        ("slat", direction.slat),
        ("clat", direction.clat),
        (" lat", direction.lat),
    ):
        if stat.samples:
            yield _latency(label, stat)
    yield from _percentiles("clat", direction.plat)
    bw = direction.bw
    if bw.samples:
        unit, divisor = ("MiB", KIB) if bw.mean > KIB * KIB else ("KiB", 1)
        share = min(100.0, 100.0 * bw.mean * KIB / of_group) if of_group > KIB else 100.0
        yield (
            f"   bw ({unit:>5}/s): min={bw.smallest // divisor:5}, max={bw.largest // divisor:5}, "
            f"per={share:3.2f}%, avg={bw.mean / divisor:5.2f}, stdev={bw.stddev() / divisor:5.2f}, "
            f"samples={bw.samples}"
        )
    iops = direction.iops
    if iops.samples:
        yield (
            f"   iops        : min={iops.smallest:5}, max={iops.largest:5}, "
            f"avg={iops.mean:5.2f}, stdev={iops.stddev():5.2f}, samples={iops.samples}"
        )


def _latency(label: str, stat: IoStat) -> str:
    """Return a line of moments, in ms, us or ns as nsec_to_msec() and nsec_to_usec() choose."""
    unit, divisor = "nsec", 1
    if stat.smallest > 2_000_000 and stat.largest > 99_999_999 and stat.stddev() > 1_000_000:
        unit, divisor = "msec", 1_000_000
    elif stat.smallest > 2000 and stat.largest > 99_999 and stat.stddev() > 1000:
        unit, divisor = "usec", 1000
    return (
        f"    {label} ({unit}): min={number(stat.smallest // divisor, 1000, 6)}, "
        f"max={number(stat.largest // divisor, 1000, 6)}, avg={stat.mean / divisor:5.2f}, "
        f"stdev={stat.stddev() / divisor:5.2f}"
    )


def _percentiles(label: str, plat: Sequence[int]) -> Iterator[str]:
    """Yield the table of percentiles (show_clat_percentiles)."""
    values = percentiles(plat, PERCENTILES)
    if not values:
        return
    unit, divisor = "nsec", 1
    if values[0] > 2_000_000 and values[-1] > 99_999_999:
        unit, divisor = "msec", 1_000_000
    elif values[0] > 2000 and values[-1] > 99_999:
        unit, divisor = "usec", 1000
    width = max(5, len(str(values[-1] // divisor)))
    per_line = (80 - 7) // (2 + 10 + width)
    yield f"    {label} percentiles ({unit}):"
    cells = [
        f" {p:5.2f}th=[{-(-value // divisor):{width}}]"
        for p, value in zip(PERCENTILES, values, strict=True)
    ]
    for start in range(0, len(cells), per_line):
        more = "," if start + per_line < len(cells) else ""
        yield "     |" + ",".join(cells[start : start + per_line]) + more


def _classes(unit: str, names: Sequence[str], values: Sequence[float]) -> Iterator[str]:
    """Yield the classes of latency that are not empty, five a line (show_lat)."""
    shown = [
        f"{name}={value:3.2f}%" for name, value in zip(names, values, strict=True) if value > 0
    ]
    for start in range(0, len(shown), 5):
        yield f"  lat ({unit})   : {', '.join(shown[start : start + 5])}"


def _depths(label: str, names: Sequence[str], values: Sequence[float]) -> str:
    pairs = zip(names, values, strict=True)
    return label + ", ".join(f"{name}={value:3.1f}%" for name, value in pairs)


def _group(result: FioResult, group: int) -> Iterator[str]:
    """Yield the summary of a group (show_group_stats)."""
    yield ""
    yield f"Run status group {group} (all jobs):"
    jobs = [done.stat for done in result.jobs if done.job.group == group]
    for index, word in enumerate(("   READ", "  WRITE", "   TRIM")):
        used = [stat.directions[index] for stat in jobs if stat.directions[index].total_ios]
        if not used:
            continue
        rates = [bytes_per_s(direction) for direction in used]
        times = [runtime_ms(direction) for direction in used]
        low, high, whole = min(rates), max(rates), group_bytes_per_s(result, group, index)
        size = sum(direction.total_bytes for direction in used)
        yield (
            f"{word}: bw={_rate(whole)}, {_binary(low)}-{_binary(high)} "
            f"({_decimal(low)}-{_decimal(high)}), io={number(size, KIB)}B "
            f"({number(size, 1000)}B), run={min(times)}-{max(times)}msec"
        )


def _binary(rate: int) -> str:
    return f"{number(rate, KIB)}B/s"


def _decimal(rate: int) -> str:
    return f"{number(rate, 1000)}B/s"


def _rate(rate: int) -> str:
    return f"{_binary(rate)} ({_decimal(rate)})"


def _disk(disk: DiskUse) -> str:
    util = min(100.0, 100.0 * disk.busy_ms / max(disk.elapsed_ms, 1))
    return (
        f"  {disk.name}: ios={disk.reads}/{disk.writes}, "
        f"sectors={disk.read_sectors}/{disk.write_sectors}, "
        f"merge={disk.read_merges}/{disk.write_merges}, ticks={disk.read_ms}/{disk.write_ms}, "
        f"in_queue={disk.queue_ms}, util={util:3.2f}%"
    )
