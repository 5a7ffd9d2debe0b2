"""dd: copy a file, a device or zeroes, record by record.

Models: one process that reads a record and writes it, until the count is reached or the input ends;
with conv=fsync or fdatasync the output is durable before it ends;
iflag=nocache (8.11) drops what it has read. `blocks` is dd's count=. When it ends it prints what
print_stats() prints: records in and out, bytes, seconds, rate, in the wordings of its releases.
Counterpart: coreutils src/dd.c (dd_copy, iread, iwrite, finish_up, print_stats), gnulib lib/human.c
 (human_autoscale, human_round_to_nearest): 5.2, 5.97, 6.10, 8.24.
Invariants: bytes out = bytes in; the elapsed time includes fsync and close, as dd's does; records:
 "dd_begin" and "dd_done" (bytes) its ends, "stdout" has the lines it prints, "dd_failed" an errno
 that ended it, "dd_ns", "dd_user_ns", "dd_system_ns" its times. The rate is bytes through elapsed
 time, the seconds are printed with %g; an exact amount below ten of its unit has a decimal, a rate
 below a hundred.
Left out: conversions, ibs and obs, pipes; a last record that is no multiple of 512 bytes past the
 page cache (dd would write that one through it); translations; truncated records; errors of
 reading, which no device here has.

Estimate: through the page cache while memory lasts: size x (zeroing + copying), then the disk's
sequential rate; direct: for each record the disk's overhead and the record at its rate, in turns.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from sim.observation import Family, Metric, Observation, mean, mean_of
from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.sched.version import kernel_version
from sim.syscall import (
    O_CREAT,
    O_DIRECT,
    O_DSYNC,
    O_RDONLY,
    O_SYNC,
    O_TRUNC,
    O_WRONLY,
    POSIX_FADV_DONTNEED,
    Sys,
)
from sim.units import NS_PER_S, Value
from sim.user.program import ServerProgram

SI_UNITS: Final = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
IEC_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def final_lines(
    full_in: int,
    partial_in: int,
    full_out: int,
    partial_out: int,
    size: int,
    elapsed_ns: int,
    wording: str,
) -> str:
    """Return dd's three lines for `size` bytes copied in `elapsed_ns`."""
    last = WORDINGS[wording](size, max(elapsed_ns, 1) / NS_PER_S)
    return f"{full_in}+{partial_in} records in\n{full_out}+{partial_out} records out\n{last}\n"


def amount(size: int, base: int, units: tuple[str, ...]) -> str:
    """Return bytes with a unit; below ten of it with one decimal ("2.1 GB", "11 GB")."""
    if size < base:
        return f"{size} {units[0]}"
    power = 1
    while power + 1 < len(units) and size >= base ** (power + 1):
        power += 1
    value = size / base**power
    if round(value, 1) < 10:
        return f"{value:.1f} {units[power]}"
    if round(value) < base:
        return f"{value:.0f} {units[power]}"
    return f"1.0 {units[power + 1]}"


def rate(bytes_per_s: float) -> str:
    """Return a rate in decimal units; below a hundred of one with one decimal ("62.7 MB")."""
    power = 0
    while power + 1 < len(SI_UNITS) and bytes_per_s >= 999.5 * 1000.0**power:
        power += 1
    value = bytes_per_s / 1000.0**power
    digits = 1 if round(value, 1) < 100 else 0
    return f"{value:.{digits}f} {SI_UNITS[power]}"


def _transferred(size: int, seconds: float) -> str:
    return f"{size} bytes transferred in {seconds:.6f} seconds ({size / seconds:.0f} bytes/sec)"


def _seconds(size: int, seconds: float) -> str:
    shown = amount(size, 1000, SI_UNITS)
    return f"{size} bytes ({shown}) copied, {seconds:g} seconds, {rate(size / seconds)}/s"


def _si(size: int, seconds: float) -> str:
    shown = amount(size, 1000, SI_UNITS)
    return f"{size} bytes ({shown}) copied, {seconds:g} s, {rate(size / seconds)}/s"


def _both(size: int, seconds: float) -> str:
    """From 8.24: units only where they say something."""
    parts = [amount(size, 1000, SI_UNITS)] if size >= 1000 else []
    parts += [amount(size, 1024, IEC_UNITS)] if size >= 1024 else []
    shown = f" ({', '.join(parts)})" if parts else ""
    return f"{size} bytes{shown} copied, {seconds:g} s, {rate(size / seconds)}/s"


def trouble(path: str, was_open: bool, reason: str, wording: str) -> str:
    """Return what dd says when it cannot open a file, or go on with one that is open."""
    if wording == "8.24":
        doing, quoted = ("error writing" if was_open else "failed to open"), f"'{path}'"
    else:
        doing, quoted = ("writing" if was_open else "opening"), f"`{path}'"
    return f"dd: {doing} {quoted}: {reason}\n"


# First release of coreutils with a wording -> it.
WORDINGS: Final[Mapping[str, Callable[[int, float], str]]] = {
    "5.0": _transferred,
    "5.91": _seconds,
    "6.10": _si,
    "8.24": _both,
}


ZERO: Final = "/dev/zero"
NULL: Final = "/dev/null"
# First kernel of the distributions that came with a wording (coreutils 5.97, 6.10, 8.24).
_WORDING_SINCE: Final = (((4, 2), "8.24"), ((2, 6, 24), "6.10"), ((0,), "5.91"))


@dataclass(frozen=True, kw_only=True)
class DdParams:
    """A command line of dd."""

    input: str = param(ZERO, dim="text", key="if", source="scenario", doc="what is read")
    output: str = param(NULL, dim="text", key="of", source="scenario", doc="what is written")
    bs_bytes: int = param(
        "512 B", dim="bytes", minimum=1, source="dd: bs=512", doc="bytes of a record"
    )
    blocks: int = param(
        0, dim="count", minimum=0, source="scenario", doc="dd's count=; 0 = to the end of the input"
    )
    skip: int = param(
        0, dim="count", minimum=0, source="scenario", doc="records of the input passed over"
    )
    seek: int = param(
        0, dim="count", minimum=0, source="scenario", doc="records of the output passed over"
    )
    input_direct: bool = param(False, dim="bool", source="scenario", doc="iflag=direct")
    input_nocache: bool = param(
        False, dim="bool", source="scenario", doc="iflag=nocache: what was read leaves the cache"
    )
    output_direct: bool = param(False, dim="bool", source="scenario", doc="oflag=direct")
    output_sync: bool = param(False, dim="bool", source="scenario", doc="oflag=sync")
    output_dsync: bool = param(False, dim="bool", source="scenario", doc="oflag=dsync")
    fsync: bool = param(False, dim="bool", source="scenario", doc="conv=fsync")
    fdatasync: bool = param(False, dim="bool", source="scenario", doc="conv=fdatasync")
    notrunc: bool = param(False, dim="bool", source="scenario", doc="conv=notrunc")
    input_size_bytes: int = param(
        0,
        dim="bytes",
        minimum=0,
        source="scenario",
        doc="the input file exists beforehand with this size; 0 = whatever is there",
    )
    output_size_bytes: int = param(
        0,
        dim="bytes",
        minimum=0,
        source="scenario",
        doc="the output file exists beforehand with this size; 0 = whatever is there",
    )
    start_ns: int = param(0, dim="time_ns", minimum=0, source="scenario", doc="when it is typed")
    record_user_ns: int = param(
        "2 us",
        dim="time_ns",
        minimum=0,
        source="assumed: bookkeeping around two system calls",
        doc="user CPU of a record",
    )
    wording: str = param(
        "8.24",
        dim="text",
        choices=tuple(WORDINGS),
        source="coreutils of the kernel's days",
        doc="how the result is printed: that of coreutils from this release on",
    )

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return the wording of the distributions that had this kernel."""
        version = kernel_version(kernel)
        wording = next(name for since, name in _WORDING_SINCE if version >= since)
        return {"wording": (wording, "coreutils src/dd.c: that of the kernel's days")}


class Tally:
    """Records and bytes of one side."""

    def __init__(self) -> None:
        self.full: int = 0
        self.partial: int = 0
        self.size: int = 0

    def count(self, size: int, bs: int) -> None:
        """Note a record."""
        self.size += size
        if size == bs:
            self.full += 1
        else:
            self.partial += 1


def _bytes_per_s(seen: Observation) -> float | None:
    """Return what dd's last line says, mean over all dd of the run."""
    marks = seen.result.marks
    pairs = zip(marks("dd_done"), marks("dd_ns"), strict=True)
    return mean(
        float(size.value) * NS_PER_S / float(took.value) for size, took in pairs if took.value
    )


# Means over all dd of the run; times are from its start to its last line, and getrusage's.
FIGURES: Final = Family(
    "dd",
    (
        Metric("dd_real_s", "s", mean_of("dd_ns", per=NS_PER_S)),
        Metric("dd_user_s", "s", mean_of("dd_user_ns", per=NS_PER_S)),
        Metric("dd_system_s", "s", mean_of("dd_system_ns", per=NS_PER_S)),
        Metric("dd_bytes", "B", mean_of("dd_done")),
        Metric("dd_bytes_per_s", "B/s", _bytes_per_s),
    ),
)


@register("program", "dd", params=DdParams, doc="dd: copies a file, a device or zeroes")
class Dd(ServerProgram):
    """One process."""

    figures: ClassVar[tuple[Family, ...]] = (FIGURES,)
    marks: ClassVar[tuple[str, ...]] = (
        "dd_begin",
        "dd_done",
        "dd_failed",
        "dd_ns",
        "dd_system_ns",
        "dd_user_ns",
    )

    def __init__(self, params: DdParams) -> None:
        self.params = params
        self.read = Tally()
        self.written = Tally()
        self.is_open: bool = False

    def files(self) -> Mapping[str, int]:
        params = self.params
        sizes = {params.input: params.input_size_bytes, params.output: params.output_size_bytes}
        return {path: size for path, size in sizes.items() if size}

    def main(self, sys: Sys) -> Blocking[None]:
        """Copy; print the result, or what went wrong and the result so far."""
        params = self.params
        if params.start_ns:
            yield from sys.sleep(params.start_ns)
        sys.trace_marker("dd_begin", 0)
        begun_ns = sys.clock_ns()
        user_ns, system_ns = sys.getrusage()
        try:
            yield from self._run(sys)
        except OSError as error:
            number = error.errno or 0
            path = params.output if self.is_open else str(error.filename)
            sys.print_text(trouble(path, self.is_open, os.strerror(number), params.wording))
            sys.trace_marker("dd_failed", number)
        elapsed_ns = sys.clock_ns() - begun_ns
        now_user_ns, now_system_ns = sys.getrusage()
        if self.is_open:  # Without both files there is nothing to report (finish_up).
            self._report(sys, elapsed_ns)
        sys.trace_marker("dd_ns", elapsed_ns)
        sys.trace_marker("dd_user_ns", now_user_ns - user_ns)
        sys.trace_marker("dd_system_ns", now_system_ns - system_ns)
        sys.trace_marker("dd_done", self.written.size)

    def _report(self, sys: Sys, elapsed_ns: int) -> None:
        """Print the final lines (print_stats)."""
        read, written = self.read, self.written
        sys.print_text(
            final_lines(
                read.full,
                read.partial,
                written.full,
                written.partial,
                written.size,
                elapsed_ns,
                self.params.wording,
            )
        )

    def _run(self, sys: Sys) -> Blocking[None]:
        """Open both sides, copy, make durable, close."""
        params = self.params
        source = yield from self._open_input(sys)
        target = yield from self._open_output(sys)
        self.is_open = True
        yield from self._copy(sys, source, target)
        if target >= 0:
            if params.fsync:
                yield from sys.fsync(target)
            elif params.fdatasync:
                yield from sys.fdatasync(target)
            yield from sys.close(target)
        if source >= 0:
            yield from sys.close(source)
        yield  # The CPU time still owed passes before the clock is read.

    def _open_input(self, sys: Sys) -> Blocking[int]:
        """Open what is read; -1 for zeroes."""
        params = self.params
        if params.input == ZERO:
            return -1
        direct = O_DIRECT if params.input_direct else 0
        fd = yield from sys.open(params.input, O_RDONLY | direct)
        if params.skip:
            sys.lseek(fd, params.skip * params.bs_bytes)
        return fd

    def _open_output(self, sys: Sys) -> Blocking[int]:
        """Open what is written; -1 for nowhere. Cut it to what `seek` passes over."""
        params = self.params
        if params.output == NULL:
            return -1
        flags = O_WRONLY | O_CREAT
        for chosen, flag in (
            (params.output_direct, O_DIRECT),
            (params.output_sync, O_SYNC),
            (params.output_dsync, O_DSYNC),
            (not params.notrunc and not params.seek, O_TRUNC),
        ):
            flags |= flag if chosen else 0
        on_device = params.output.startswith("/dev/")
        if on_device:
            flags &= ~(O_CREAT | O_TRUNC)
        fd = yield from sys.open(params.output, flags)
        if params.seek:
            position = params.seek * params.bs_bytes
            if not params.notrunc and not on_device:
                yield from sys.ftruncate(fd, position)
            sys.lseek(fd, position)
        return fd

    def _copy(self, sys: Sys, source: int, target: int) -> Blocking[None]:
        """Read and write in turns (dd_copy)."""
        params = self.params
        bs = params.bs_bytes
        left = params.blocks if params.blocks else -1
        while left:
            left -= 1
            sys.compute(params.record_user_ns)
            size = bs
            if source < 0:
                yield from sys.read_zero(bs)
            else:
                size = yield from sys.read(source, bs)
                if not size:
                    return
                if params.input_nocache:
                    yield from sys.fadvise(source, POSIX_FADV_DONTNEED)
            self.read.count(size, bs)
            if params.output_direct:
                yield  # The record is filled before the device hears of it.
            if target < 0:
                yield from sys.write_null(size)
            else:
                written = 0
                while written < size:
                    written += yield from sys.write(target, size - written)
            self.written.count(size, bs)
