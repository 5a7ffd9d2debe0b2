"""Record a live Linux host: /proc as text, every few seconds, and once what its devices are.

Models: an administrator who reads /proc and /sys and writes down what they say, word for word.
Linux counterpart: sysstat sadc.c; here the kernel's own text is kept instead of a binary record.
Invariants: needs no root and nothing but Python 3.7 and its standard library, so that this file may
be copied to a host alone (`python3 record.py DIR`); files only grow; a sample is one write(2) that
ends with its end line, so that a cut one is seen to be cut; a stop signal is taken between samples,
never inside one; a file that cannot be read is left out of the sample.
Left out: fsync after each sample (it would put a journal commit every few seconds on the disk that
is being watched; a crash of the host may cost its last half minute); /proc/PID/io, which only root
may read of others; the kernel's command line and environments, which may hold secrets.

A folder holds host.txt (what stays) and proc.txt (what changes), both in one grammar:

    === start 2026-11-21T07:36:12.120+0000 interval_s=5     it begins, or goes on after a gap
    === 2026-11-21T07:36:12.123+0000                        a sample; its time of day
    ==> /proc/uptime <==                                    then the file's text, as `head -v` shows
    ...
    === end                                                 the sample is whole
    === stop 2026-11-21T07:46:12.125+0000 samples=121 cpu_s=0.31 elapsed_s=600.0

A section may name a folder (slaves of a stacked device): then its text is the names in it. Those
in /proc/fs/jbd2 are the journals that are in use: "vda1-8" is that of the ext4 on vda1. An ext4
that has none there has no journal.

costs.txt holds what a few things cost on this host, measured once, in about a second: a line each,
name and nanoseconds, `#` before a remark. Each is the best of some rounds, what the interpreter
itself takes left out by a difference:

    syscall_ns         a null system call: getppid() less a call of the interpreter's own
    page_copy_hot_ns   4 KiB out of the page cache, that the processor's caches hold: reads of 1 MiB
                       less reads of 4 KiB, by the pages between
    page_copy_cold_ns  the same of a file larger than the caches, read through
    page_add_ns        a new page of the page cache: the file written first, less written again
    context_switch_ns  from one process to the other and back through pipes on one CPU, less the
                       calls of one that writes to itself; half of it
    fork_ns            fork() until it returns to the parent
    fork_child_ns      from there until the child that exits at once has been waited for
    process_kib        what the process that forked has in memory: fork() copies its page tables

The file lies in memory (memfd), no disk is touched. Host and clock are as busy as they are: who
wants the idle host's costs records them when it is idle.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import glob
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

SAMPLED = (
    "/proc/uptime",
    "/proc/stat",
    "/proc/diskstats",
    "/proc/loadavg",
    "/proc/vmstat",
    "/proc/meminfo",
    "/proc/swaps",
    "/proc/pressure/cpu",
    "/proc/pressure/io",
    "/proc/pressure/memory",
)
QUEUE = (
    "scheduler",
    "nr_requests",
    "rotational",
    "read_ahead_kb",
    "max_sectors_kb",
    "max_hw_sectors_kb",
    "write_cache",
    "logical_block_size",
    "physical_block_size",
    "nomerges",
    "wbt_lat_usec",
    "io_poll",
    "iostats",
    "fua",
    "discard_max_bytes",
)
VM = (
    "dirty_ratio",
    "dirty_bytes",
    "dirty_background_ratio",
    "dirty_background_bytes",
    "dirty_expire_centisecs",
    "dirty_writeback_centisecs",
    "swappiness",
    "vfs_cache_pressure",
    "min_free_kbytes",
    "watermark_scale_factor",
    "overcommit_memory",
    "overcommit_ratio",
    "laptop_mode",
    "page-cluster",
    "zone_reclaim_mode",
)
LASTING = (
    "/proc/version",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/hostname",
    "/etc/os-release",
    "/proc/cpuinfo",
    "/sys/devices/system/cpu/online",
    "/proc/uptime",
    "/proc/meminfo",
    "/proc/mounts",
    "/proc/fs/jbd2",
    "/proc/swaps",
    "/proc/partitions",
    "/proc/mdstat",
    *("/proc/sys/vm/" + name for name in VM),
    "/sys/block/*/size",
    "/sys/block/*/dev",
    "/sys/block/*/removable",
    "/sys/block/*/device/model",
    "/sys/block/*/device/vendor",
    "/sys/block/*/device/queue_depth",
    "/sys/block/*/dm/name",
    "/sys/block/*/loop/backing_file",
    "/sys/block/*/md/level",
    "/sys/block/*/md/chunk_size",
    "/sys/block/*/slaves",
    "/sys/block/*/holders",
    "/sys/block/*/*/partition",
    *("/sys/block/*/queue/" + name for name in QUEUE),
)
HOST, PROC, COSTS = "host.txt", "proc.txt", "costs.txt"
PAGE, MIB = 4096, 1 << 20
COLD_BYTES = 128 * MIB  # more than most processors' caches hold; less where memory is short
ROUNDS = 5
SAMPLE_END = b"=== end\n"
TASKS = "/proc/PID/task/TID/stat"  # the section's name: lines of the tasks that are in R or D
PROCESSES = "/proc/PID/stat"  # the same of main threads alone
THREADS_FIELD = 20  # of /proc/PID/stat, counted from 1
TASKS_MAX = 1000  # some 20 us of a CPU each, at every sample
SEEN_MIN = 0.9  # of the kernel's tasks; others' may be hidden (hidepid, a container)
STAMP = "%Y-%m-%dT%H:%M:%S.%f%z"  # of a sample
STOPS = (signal.SIGINT, signal.SIGTERM)
INTERVAL_MIN_S = 0.1
_SECONDS = {"": 1, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


class RecordError(Exception):
    """A recording that cannot be made, or not there; the message is for the user."""


@dataclass(frozen=True)
class Recorded:
    """What was done: samples, CPU seconds of this process, seconds that passed, bytes written."""

    samples: int
    cpu_s: float
    elapsed_s: float
    written_bytes: int

    @property
    def core_pct(self) -> float:
        """Return the share of one core that recording took, %."""
        return 100 * self.cpu_s / self.elapsed_s if self.elapsed_s else 0.0


@dataclass(frozen=True)
class Held:
    """What a folder holds: whole samples, and the times of the first and the last as they stand."""

    samples: int
    first: str
    last: str

    def __str__(self) -> str:
        """Return how many samples, and from when to when, with the length of that time."""
        text = f"{self.samples} sample{'' if self.samples == 1 else 's'}"
        try:
            begin, end = (datetime.strptime(one, STAMP) for one in (self.first, self.last))
        except ValueError:  # there is none, or somebody changed the file
            return text
        until = f"{end:%H:%M:%S}" if end.date() == begin.date() else f"{end:%Y-%m-%d %H:%M:%S}"
        length_s = (end - begin).total_seconds()
        return f"{text} from {begin:%Y-%m-%d %H:%M:%S} to {until} ({length_s:.0f} s)"


def record(
    folder: str,
    interval_s: float,
    duration_s: float | None,
    *,
    root: str = "/",
    tell: Callable[[int, int | None], None] | None = None,
    costs: Callable[[], dict[str, float]] | None = None,
) -> Recorded:
    """Record into a new folder until the time is over or a stop signal comes; RecordError.

    `costs` measures what things cost on the host, before the first sample: host_costs.
    """
    if os.path.exists(os.path.join(folder, PROC)):
        raise RecordError(
            f"{folder} holds a recording, {held(folder)}; go on with it (--resume) or name another"
        )
    if costs is not None:
        with _opened(folder, COSTS) as out:
            _append(out, costs_text(costs()).encode())
    return _record(folder, interval_s, duration_s, root, tell)


def resume(
    folder: str,
    interval_s: float,
    duration_s: float | None,
    *,
    root: str = "/",
    tell: Callable[[int, int | None], None] | None = None,
) -> Recorded:
    """Go on with a recording after a gap, for `duration_s` more; RecordError."""
    if not os.path.exists(os.path.join(folder, PROC)):
        raise RecordError(f"{folder} holds no recording to go on with")
    return _record(folder, interval_s, duration_s, root, tell)


def held(folder: str) -> Held:
    """Return what a folder holds of a recording; no sample if there is none."""
    samples, stamp, first, last = 0, "", "", ""
    with contextlib.suppress(FileNotFoundError), open(os.path.join(folder, PROC), "rb") as lines:
        for line in lines:
            if line == SAMPLE_END:
                samples += 1
                first, last = first or stamp, stamp
            elif line.startswith(b"=== 2"):
                stamp = line[4:].decode("ascii", "replace").strip()
    return Held(samples, first, last)


def parse_seconds(text: str) -> float:
    """Return the seconds of "5", "5s", "10m", "10 min", "1.5h"; ValueError."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)\s*", text)
    if found is None or found.group(2) not in _SECONDS:
        raise ValueError(f"{text!r} is no time (accepted: 5, 5s, 10m, 1.5h)")
    return float(found.group(1)) * _SECONDS[found.group(2)]


def _record(
    folder: str,
    interval_s: float,
    duration_s: float | None,
    root: str,
    tell: Callable[[int, int | None], None] | None,
) -> Recorded:
    if not os.path.exists(_below(root, "/proc/stat")):
        raise RecordError(f"no {_below(root, '/proc/stat')}: only a Linux host can be recorded")
    if interval_s < INTERVAL_MIN_S:
        raise RecordError(
            f"an interval of {interval_s:g} s is too short (at least {INTERVAL_MIN_S} s)"
        )
    with _opened(folder, PROC) as out, _stops_wait():
        with _opened(folder, HOST) as host:
            _begin(host, interval_s)
            _append(host, b"".join(_sample(lasting(root))))
        _begin(out, interval_s)
        return _loop(out, interval_s, duration_s, root, tell)


def _loop(
    out: int,
    interval_s: float,
    duration_s: float | None,
    root: str,
    tell: Callable[[int, int | None], None] | None,
) -> Recorded:
    """Take a sample at each multiple of the interval; those that were slept through are lost."""
    total = None if duration_s is None else int(duration_s / interval_s + 1e-9) + 1
    begin_s, cpu_s = time.monotonic(), time.process_time()
    samples = written = tick = 0
    while True:
        written += _append(out, b"".join(_sample(changing(root))))
        samples += 1
        if tell is not None:
            tell(samples, total)
        tick = max(tick + 1, int((time.monotonic() - begin_s) / interval_s))
        if (total is not None and tick >= total) or _wait_until(begin_s + tick * interval_s):
            break
    done = Recorded(samples, time.process_time() - cpu_s, time.monotonic() - begin_s, written)
    line = f"samples={done.samples} cpu_s={done.cpu_s:.3f} elapsed_s={done.elapsed_s:.3f}"
    _append(out, f"=== stop {_now()} {line}\n".encode())
    return done


def costs_text(costs: dict[str, float]) -> str:
    """Return costs.txt."""
    lines = [f"{name} {value:.1f}\n" for name, value in costs.items()]
    return f"# {_now()} best of {ROUNDS} rounds\n" + "".join(lines)


def host_costs() -> dict[str, float]:
    """Measure what a few things cost on this host, ns; those that it does not let be measured lack.

    Takes about a second of one CPU, and up to 128 MiB of memory for a moment.
    """
    found: dict[str, float] = {}
    for measure in (_syscall_cost, _page_costs, _switch_cost, _fork_costs):
        with contextlib.suppress(OSError, AttributeError):  # refused here, or an older Python
            found.update(measure())
    return {name: max(value, 0.0) for name, value in found.items()}


def _best_ns(call: Callable[[], object], count: int) -> float:
    """Return the time of a call, ns: the best round's mean."""
    best = float("inf")
    for _ in range(ROUNDS):
        begin = time.perf_counter_ns()
        for _ in range(count):
            call()
        best = min(best, (time.perf_counter_ns() - begin) / count)
    return best


def _syscall_cost() -> dict[str, float]:
    return {"syscall_ns": _best_ns(os.getppid, 50_000) - _best_ns(sys.getrecursionlimit, 50_000)}


def _page_costs() -> dict[str, float]:
    """Read and write a file in memory; what a page takes is a difference of two such times."""
    buffer = bytearray(MIB)
    page = memoryview(buffer)[:PAGE]
    pieces = max(_cold_bytes() // MIB, 1)
    fd = os.memfd_create("iotwin-costs")
    try:
        added_ns = _pass_ns(os.pwritev, fd, buffer, pieces)
        written_ns = min(_pass_ns(os.pwritev, fd, buffer, pieces) for _ in range(2))
        cold_ns = min(_pass_ns(os.preadv, fd, buffer, pieces) for _ in range(2))
        large_ns = _best_ns(lambda: os.preadv(fd, [buffer], 0), 100)
        small_ns = _best_ns(lambda: os.preadv(fd, [page], 0), 10_000)
    finally:
        os.close(fd)
    return {
        "page_copy_hot_ns": (large_ns - small_ns) / (MIB // PAGE - 1),
        "page_copy_cold_ns": cold_ns,
        "page_add_ns": added_ns - written_ns,
    }


def _cold_bytes() -> int:
    """Return how much to read through: no more than an eighth of what memory has to spare."""
    with open("/proc/meminfo", encoding="ascii") as lines:
        kib = [int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    return min(COLD_BYTES, kib[0] * 1024 // 8) if kib else MIB


def _pass_ns(call: Callable[..., int], fd: int, buffer: bytearray, pieces: int) -> float:
    """Return what a page takes in one pass through a file by pieces of 1 MiB."""
    begin = time.perf_counter_ns()
    for number in range(pieces):
        call(fd, [buffer], number * MIB)
    return (time.perf_counter_ns() - begin) / (pieces * (MIB // PAGE))


def _switch_cost() -> dict[str, float]:
    """Send a byte to a child on the same CPU and back."""
    there, back, own = os.pipe(), os.pipe(), os.pipe()
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cpus)})
    try:
        child = os.fork()
        if child == 0:
            _echo(there, back)
        trip_ns = _best_ns(lambda: (os.write(there[1], b"x"), os.read(back[0], 1)), 2_000)
        alone_ns = _best_ns(lambda: (os.write(own[1], b"x"), os.read(own[0], 1)), 2_000)
    finally:
        os.sched_setaffinity(0, cpus)
        for fd in (*there, *back, *own):
            os.close(fd)
    os.waitpid(child, 0)
    return {"context_switch_ns": (trip_ns - 2 * alone_ns) / 2}


def _echo(there: tuple[int, int], back: tuple[int, int]) -> None:
    """Be the child: send each byte back until the parent has closed its end."""
    try:
        os.close(there[1])
        while os.read(there[0], 1):
            os.write(back[1], b"x")
    finally:
        os._exit(0)


def _fork_costs() -> dict[str, float]:
    fork_ns = whole_ns = float("inf")
    for _ in range(10 * ROUNDS):
        begin = time.perf_counter_ns()
        child = os.fork()
        if child == 0:
            os._exit(0)
        returned = time.perf_counter_ns()
        os.waitpid(child, 0)
        fork_ns = min(fork_ns, returned - begin)
        whole_ns = min(whole_ns, time.perf_counter_ns() - begin)
    with open("/proc/self/statm", encoding="ascii") as text:
        kib = int(text.read().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024
    return {"fork_ns": fork_ns, "fork_child_ns": whole_ns - fork_ns, "process_kib": kib}


def lasting(root: str) -> Iterator[tuple[str, bytes]]:
    """Yield name and text of what does not change while the host is up."""
    yield "uname -m", os.uname().machine.encode() + b"\n"
    yield (
        "getconf CLK_TCK PAGESIZE",
        b"%d %d\n" % (os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGESIZE")),
    )
    for pattern in LASTING:
        for path in sorted(glob.glob(_below(root, pattern))):
            yield from _readable(path, root)


def changing(root: str) -> Iterator[tuple[str, bytes]]:
    """Yield name and text of each file of a sample, then the tasks that run or wait."""
    yield from counters(root)
    with contextlib.suppress(OSError):  # A tree that is just being changed.
        yield _active_tasks(root)


def counters(root: str) -> Iterator[tuple[str, bytes]]:
    """Yield name and text of each file of a sample: what the whole host counts."""
    for name in SAMPLED:
        yield from _readable(_below(root, name), root)


def _active_tasks(root: str) -> tuple[str, bytes]:
    """Return name and text of the tasks in R or D, but for this process.

    They are the threads of all processes; of more than TASKS_MAX, or where not all of them may be
    seen, each process's main thread alone.
    """
    proc = _below(root, "/proc")
    total = task_count(root)
    lines, several, seen = [], [], 0
    for pid in os.listdir(proc):
        if pid.isdigit():
            with contextlib.suppress(OSError):  # It has ended meanwhile.
                line = _read(f"{proc}/{pid}/stat")
                fields = _after_name(line)[THREADS_FIELD - 3 : THREADS_FIELD - 2]
                threads = int(fields[0]) if fields else 1
                seen += threads
                if int(pid) != os.getpid():
                    lines.append((pid, line))
                    several += [pid] if threads > 1 else []
    if total is not None and not SEEN_MIN * total <= seen <= TASKS_MAX:
        return PROCESSES, b"".join(line for _pid, line in lines if _is_active(line))
    tasks = [line for pid, line in lines if pid not in set(several)]
    for pid in several:
        with contextlib.suppress(OSError):
            for tid in os.listdir(f"{proc}/{pid}/task"):
                with contextlib.suppress(OSError):
                    tasks.append(_read(f"{proc}/{pid}/task/{tid}/stat"))
    return TASKS, b"".join(line for line in tasks if _is_active(line))


def task_count(root: str) -> int | None:
    """Return how many tasks the kernel has, by /proc/loadavg; None if it does not say."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(_read(_below(root, "/proc/loadavg")).split()[3].partition(b"/")[2])
    return None


def _is_active(line: bytes) -> bool:
    return _after_name(line)[:1] in ([b"R"], [b"D"])


def _after_name(line: bytes) -> list[bytes]:
    """Return the fields behind the name; that is in brackets and may hold anything, these too."""
    return line[line.rfind(b")") + 1 :].split()


def _readable(path: str, root: str) -> Iterator[tuple[str, bytes]]:
    name = "/" + os.path.relpath(path, root)
    with contextlib.suppress(OSError):  # Not on this kernel, or not for this user.
        if os.path.isdir(path):
            yield name, "".join(f"{entry}\n" for entry in sorted(os.listdir(path))).encode()
        else:
            yield name, _read(path)


def _sample(sections: Iterator[tuple[str, bytes]]) -> Iterator[bytes]:
    """Yield the pieces of one sample."""
    yield f"=== {_now()}\n".encode()
    for name, text in sections:
        yield f"==> {name} <==\n".encode()
        yield text if text.endswith(b"\n") or not text else text + b"\n"
    yield SAMPLE_END


def _begin(out: int, interval_s: float) -> None:
    """Write the start line; on a line of its own, even behind a sample that was cut."""
    size = os.fstat(out).st_size
    if size and os.pread(out, 1, size - 1) != b"\n":
        _append(out, b"\n")
    _append(out, f"=== start {_now()} interval_s={interval_s:g}\n".encode())


def _append(out: int, data: bytes) -> int:
    """Write all; return how many bytes that were."""
    done = 0
    while done < len(data):
        done += os.write(out, data[done:])
    return done


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY)
    try:
        pieces: list[bytes] = []
        while True:
            piece = os.read(fd, 1 << 16)
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)
    finally:
        os.close(fd)


def _below(root: str, path: str) -> str:
    return os.path.join(root, path.lstrip("/"))


@contextlib.contextmanager
def _opened(folder: str, name: str) -> Iterator[int]:
    """Open a file of the folder for appending, for one recorder at a time."""
    try:
        os.makedirs(folder, exist_ok=True)
        fd = os.open(os.path.join(folder, name), os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
    except OSError as error:
        raise RecordError(f"cannot write {folder}/{name}: {error.strerror}") from None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield fd
    except BlockingIOError:
        raise RecordError(f"{folder} is being recorded into by another process") from None
    finally:
        os.close(fd)


@contextlib.contextmanager
def _stops_wait() -> Iterator[None]:
    """Keep stop signals waiting, to be taken between samples."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _wait_until(deadline_s: float) -> bool:
    """Sleep; return whether a stop signal came."""
    left_s = max(deadline_s - time.monotonic(), 0)
    return signal.sigtimedwait(STOPS, left_s) is not None


def _now() -> str:
    """Return local time to the millisecond with its zone, ISO 8601."""
    now_ms = time.time_ns() // 1_000_000
    local = time.localtime(now_ms // 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', local)}.{now_ms % 1000:03d}" + time.strftime(
        "%z", local
    )


def summary(folder: str, done: Recorded) -> str:
    """Return what was recorded and what it cost, a line."""
    return (
        f"{folder}: {done.samples} samples in {done.elapsed_s:.0f} s,"
        f" {done.written_bytes / 1e6:.2f} MB, {done.core_pct:.2f} % of one core"
    )


def main() -> int:
    """Run as a program of its own; return the exit code."""
    parser = argparse.ArgumentParser(description="Record /proc and /sys of this host.")
    parser.add_argument("folder", metavar="DIR")
    parser.add_argument("--interval", default="5", metavar="TIME", help="5s unless given")
    parser.add_argument("--duration", metavar="TIME", help="10m, 1h; until Ctrl-C unless given")
    parser.add_argument("--resume", action="store_true", help="go on with the recording in DIR")
    parser.add_argument("--no-costs", action="store_true", help="do not measure what calls cost")
    asked = parser.parse_args()
    try:
        interval_s = parse_seconds(asked.interval)
        duration_s = parse_seconds(asked.duration) if asked.duration else None
        if asked.resume:
            done = resume(asked.folder, interval_s, duration_s)
        else:
            costs = None if asked.no_costs else host_costs
            done = record(asked.folder, interval_s, duration_s, costs=costs)
        print(summary(asked.folder, done))
    except (RecordError, ValueError) as error:
        print(f"record: error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"record: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
