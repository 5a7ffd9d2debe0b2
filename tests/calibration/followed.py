"""Servers that are known, as a follower reads them: samples of a run, and what may befall them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from calibration.record import TASKS
from calibration.record_text import TextSample
from sim.machine import simulate
from sim.scenario.load import load_text

SERVER = """\
title = "A server whose load doubles"
[machine]
kernel = "6.1"
hostname = "known"
cpus = 2
memory = "1 GiB"
[machine.disk.sda]
device = "multiserver"
capacity = "20 GiB"
servers = 2
read = "1.5 ms"
write = "0.8 ms"
read_rate = "0 B/s"
write_rate = "0 B/s"
scheduler = "none"
[machine.mount."/"]
type = "ext3"
device = "sda"
{processes}
[run]
duration = "{duration} s"
[measure]
interval = "{every} s"
"""
READS = """\
[process.reads]
program = "transactions"
arrivals = "open"
rate = "40 /s"
concurrency = 64
reads = 1
read_size = "8 KiB"
read_file = "/table"
working_set = "2 GiB"
direct = true
user = "3 ms"
system = "0.5 ms"
variation = "exponential"
"""
MORE = """\
[process.more]
program = "fio"
rw = "randread"
filename = "/more"
size = "2 GiB"
block_size = "8 KiB"
direct = true
read_iops = "40 /s"
start = "{start} s"
runtime = "10 min"
"""
ORDERS = """\
[process.orders]
program = "transactions"
arrivals = "open"
rate = "8 /s"
concurrency = 64
writes = 1
write_size = "16 KiB"
fsyncs = 1
user = "3 ms"
system = "0.5 ms"
variation = "exponential"
"""
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@cache
def series(
    seed: int,
    duration_s: int,
    doubles_s: int | None = None,
    every_s: int = 5,
    *,
    is_counted: bool = False,
) -> tuple[TextSample, ...]:
    """Return samples of a server whose reads double at a time, if at all.

    If `is_counted`, each has who sleeps uninterruptibly then.
    """
    processes = READS + ORDERS
    if doubles_s is not None:
        processes += MORE.format(start=doubles_s)
    text = SERVER.format(processes=processes, duration=duration_s, every=every_s)
    result = simulate(load_text(text, Path("followed.toml")), seed)
    asleep = {one.t_ns: int(one.value) for one in result.marks("tasks_uninterruptible")}
    return tuple(
        TextSample(
            at=BEGIN + timedelta(seconds=one.t_ns / 1e9),
            line=0,
            texts={f"/proc/{name}": body for name, body in one.files.items()}
            | ({TASKS: "77 (reads) D 1 77\n" * asleep[one.t_ns]} if is_counted else {}),
            begins=False,
            interval_s=float(every_s),
        )
        for one in result.samples[10 // every_s :]  # its first seconds are not those followed
    )


def slower(samples: tuple[TextSample, ...], first: int, factor: float) -> list[TextSample]:
    """Return the samples as if a read took so many times as long from number `first` on."""
    at_change = _read_ms(samples[first])
    found = list(samples[: first + 1])
    for sample in samples[first + 1 :]:
        read_ms = round(at_change + factor * (_read_ms(sample) - at_change))
        words = sample.texts["/proc/diskstats"].split()
        words[_READ_MS] = str(read_ms)
        found.append(changed(sample, "/proc/diskstats", f"{' '.join(words)}\n"))
    return found


def _read_ms(sample: TextSample) -> int:
    """Return the counter of the only device: Documentation/admin-guide/iostats.rst, field 4."""
    return int(sample.texts["/proc/diskstats"].split()[_READ_MS])


_READ_MS = 6


def changed(sample: TextSample, name: str, text: str) -> TextSample:
    """Return a sample with another text in a file."""
    return replace(sample, texts={**sample.texts, name: text})
