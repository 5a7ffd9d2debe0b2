"""What a job of fio is told: the section of a job file, as parameters.

Models: the options that the program `fio` does, under fio's names where a scenario can use them.
Counterpart: fio options.c, HOWTO, 3.36.
Invariants: a default is what fio's recorded runs of this project use; who reads a job file gives
 every value (sim/scenario/fio_options.py), fio's own defaults included.
Left out: all options that mean nothing here; the reader of job files names them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sim.param import param
from sim.syscall import O_DSYNC, O_SYNC
from sim.user.fio_stat import READ, TRIM, WRITE

RANDREAD: Final = "randread"
KINDS: Final = ("read", "write", RANDREAD, "randwrite", "rw", "randrw", "trim", "randtrim")
DIRECTIONS: Final[Mapping[str, tuple[int, ...]]] = {
    "read": (READ,), RANDREAD: (READ,), "write": (WRITE,), "randwrite": (WRITE,),
    "rw": (READ, WRITE), "randrw": (READ, WRITE), "trim": (TRIM,), "randtrim": (TRIM,),
}  # fmt: skip
PSYNC: Final = "psync"
SYNCHRONOUS: Final = ("psync", "sync", "pvsync", "pvsync2", "vsync")
ENGINES: Final = (*SYNCHRONOUS, "libaio", "io_uring")
SYNC_FLAGS: Final[Mapping[str, int]] = {"none": 0, "sync": O_SYNC, "dsync": O_DSYNC}


@dataclass(frozen=True, kw_only=True)
class FioParams:
    """A section of a job file."""

    filename: str = param("/data", dim="text", source="scenario", doc="file or device")
    rw: str = param(RANDREAD, dim="text", choices=KINDS, source="scenario", doc="what is done")
    rwmixread: float = param(
        50.0, dim="percent", minimum=0, maximum=100, source="fio: rwmixread=50",
        doc="share of reads in a mixture",
    )  # fmt: skip
    ioengine: str = param(
        PSYNC, dim="text", choices=ENGINES, source="fio: psync", doc="how it is done"
    )
    iodepth: int = param(
        1, dim="count", minimum=1, source="fio: iodepth=1", doc="operations in flight, libaio"
    )
    block_size_bytes: int = param(
        "4 KiB", dim="bytes", minimum=512, source="scenario", doc="bytes of one operation"
    )
    size_bytes: int = param(
        "1 GiB", dim="bytes", minimum=0, source="scenario",
        doc="the part of the file that is used; a file that is read exists with this size; 0 = all"
        " of a file that is there",
    )  # fmt: skip
    offset_bytes: int = param(
        0, dim="bytes", minimum=0, source="fio: offset=0", doc="where that part begins"
    )
    loops: int = param(1, dim="count", minimum=1, source="fio: loops=1", doc="times through it")
    direct: bool = param(True, dim="bool", source="scenario", doc="O_DIRECT")
    sync: str = param(
        "none", dim="text", choices=tuple(SYNC_FLAGS), source="fio: sync=none",
        doc="O_SYNC or O_DSYNC",
    )  # fmt: skip
    fsync: int = param(0, dim="count", minimum=0, source="fio: 0", doc="fsync after so many writes")
    fdatasync: int = param(
        0, dim="count", minimum=0, source="fio: 0", doc="fdatasync after so many writes"
    )
    end_fsync: bool = param(False, dim="bool", source="fio: 0", doc="fsync at the end")
    invalidate: bool = param(
        True, dim="bool", source="fio: invalidate=1", doc="drop the file's cached pages first"
    )
    laid_out: bool = param(
        True, dim="bool", source="fio: create_on_open=0", doc="what is read is there beforehand"
    )
    norandommap: bool = param(
        True, dim="bool", source="scenario", doc="random places again and again; false: once each"
    )
    random_distribution: str = param(
        "random", dim="text", choices=("random", "zipf", "pareto"), source="fio: random",
        doc="law of random places",
    )  # fmt: skip
    theta: float = param(
        1.1, dim="number", minimum=0.0, source="fio: zipf:1.1", doc="exponent of zipf, h of pareto"
    )
    runtime_ns: int = param(
        0, dim="time_ns", minimum=0, source="scenario", doc="time at most; 0 = until all is done"
    )
    time_based: bool = param(
        True, dim="bool", source="scenario", doc="with a runtime: go on until it is over"
    )
    ramp_ns: int = param(
        0, dim="time_ns", minimum=0, source="fio: ramp_time=0", doc="time before anything counts"
    )
    read_iops: float = param(
        0.0,
        dim="rate_per_s",
        minimum=0,
        source="fio: rate_iops",
        doc="most reads a second; 0 = any",
    )
    write_iops: float = param(
        0.0, dim="rate_per_s", minimum=0, source="fio: rate_iops", doc="the same of writes"
    )
    read_rate_bytes_per_s: float = param(
        0.0, dim="bytes_per_s", minimum=0, source="fio: rate", doc="most bytes read; 0 = any"
    )
    write_rate_bytes_per_s: float = param(
        0.0, dim="bytes_per_s", minimum=0, source="fio: rate", doc="the same of writes"
    )
    think_ns: int = param(
        0, dim="time_ns", minimum=0, source="fio: thinktime=0", doc="pause after operations"
    )
    think_blocks: int = param(
        1, dim="count", minimum=1, source="fio: thinktime_blocks=1", doc="after so many"
    )
    start_ns: int = param(
        0, dim="time_ns", minimum=0, source="scenario", doc="fio's own start, before the job"
    )
    start_user_ns: int = param(
        0, dim="time_ns", minimum=0, source="scenario", doc="user CPU of fio's own start"
    )
    operation_user_ns: int = param(
        "2 us", dim="time_ns", minimum=0,
        source="assumed: fio's own code for an operation, 3 GHz", doc="user CPU of an operation",
    )  # fmt: skip
    latency_log: bool = param(
        True, dim="bool", source="scenario", doc="a record for each operation"
    )
    # What a job file says that no single value can: sizes with weights, a stream of one's own.
    read_split: tuple[tuple[int, float], ...] = ()
    write_split: tuple[tuple[int, float], ...] = ()
    stream: str = ""

    def splits(self) -> tuple[tuple[tuple[int, float], ...], ...]:
        """Return the sizes of reads, writes and trims (as those of writes), with their weights."""
        plain = ((self.block_size_bytes, 100.0),)
        writes = self.write_split or plain
        return self.read_split or plain, writes, writes
