"""Which of fio's options a job file may have, what each sets, and why others are refused.

Models: fio's table of options as far as it concerns I/O of files and devices on one server.
Linux counterpart: fio options.c (fio_options), HOWTO, 3.36.
Invariants: a name is in exactly one of OPTIONS, ALIASES, REFUSED, or fio has no such option; an
 option of OPTIONS sets fields of FioParams, or one of the few that are the reader's own.
Left out: what REFUSED tells.

`randrepeat`: the chance of a run depends on its seed alone, so that each run can be repeated and
each seed is another run, whether the file asks for it or not.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from sim.scenario.fio_values import (
    MICROSECOND,
    SECOND,
    FioValueError,
    amount,
    amounts,
    boolean,
    duration_ns,
    law,
    share,
    splits,
    whole,
)
from sim.user.fio import ENGINES, KINDS, SYNC_FLAGS

COUNT_MAX: Final = 2**31 - 1
Values = dict[str, Any]
Reader = Callable[[str, int], Values]  # of the text and kb_base


def _flag(field: str) -> Reader:
    return lambda text, kb_base: {field: boolean(text)}


def _count(field: str, low: int = 0, high: int = COUNT_MAX) -> Reader:
    return lambda text, kb_base: {field: whole(text, low, high)}


def _time(field: str, unit: str) -> Reader:
    return lambda text, kb_base: {field: duration_ns(text, unit)}


def _choice(field: str, choices: tuple[str, ...]) -> Reader:
    def read(text: str, kb_base: int) -> Values:
        if text not in choices:
            raise FioValueError(f"'{text}' is not modelled", ", ".join(choices))
        return {field: text}

    return read


def _extent(field: str) -> Reader:
    """Read an amount, or a share of the file or device."""

    def read(text: str, kb_base: int) -> Values:
        part = share(text)
        if part is not None:
            return {f"{field}_pct": part, f"{field}_bytes": 0}
        return {f"{field}_pct": None, f"{field}_bytes": amount(text, kb_base)}

    return read


def _pair(read_field: str, write_field: str) -> Reader:
    def read(text: str, kb_base: int) -> Values:
        first, second = amounts(text, kb_base)
        return {read_field: float(first), write_field: float(second)}

    return read


def _sizes(text: str, kb_base: int) -> Values:
    read, write = amounts(text, kb_base)
    parts = text.split(",")
    if len(parts) == 2 and not (read and write):  # fio keeps the default for the one left away
        read, write = read or 4096, write or 4096
    if not read or not write:
        raise FioValueError("a size of 0", '"4k", "4k,8k"')
    return {"read_split": ((read, 100.0),), "write_split": ((write, 100.0),)}


def _split(text: str, kb_base: int) -> Values:
    read, write = splits(text, kb_base)
    if not all(size for size, _ in (*read, *write)):
        raise FioValueError("a size of 0", '"4k/60:64k/40"')
    return {"read_split": read, "write_split": write}


def _law(text: str, kb_base: int) -> Values:
    name, theta = law(text)
    return {"random_distribution": name, "theta": theta}


def _kind(text: str, kb_base: int) -> Values:
    word = "rw" if text == "readwrite" else text
    if "trim" in word and word not in KINDS:
        raise FioValueError("mixtures with trims are not modelled", ", ".join(KINDS))
    if ":" in word:
        raise FioValueError("several of a kind in turn are not modelled", ", ".join(KINDS))
    return _choice("rw", KINDS)(word, kb_base)


def _synced(text: str, kb_base: int) -> Values:
    word = {"0": "none", "1": "sync", "": "sync"}.get(text, text)
    return _choice("sync", tuple(SYNC_FLAGS))(word, kb_base)


def _file(text: str, kb_base: int) -> Values:
    if ":" in text:
        raise FioValueError("several files a job are not modelled", "one path")
    if not text:
        raise FioValueError("no name", "a path, a device such as /dev/sda")
    return {"filename": text}


def _directory(text: str, kb_base: int) -> Values:
    if not text.startswith("/") or ":" in text:
        raise FioValueError("no path from /", "a directory such as /data")
    return {"directory": text}


def _text(field: str) -> Reader:
    return lambda text, kb_base: {field: text}


OPTIONS: Final[Mapping[str, Reader]] = {
    "name": _text("name"),
    "description": _text("description"),
    "rw": _kind,
    "rwmixread": _count("rwmixread", 0, 100),
    "rwmixwrite": lambda text, kb_base: {"rwmixread": 100 - whole(text, 0, 100)},
    "bs": _sizes,
    "bssplit": _split,
    "ioengine": _choice("ioengine", ENGINES),
    "iodepth": _count("iodepth", 1, 65536),
    "numjobs": _count("numjobs", 1, 10_000),
    "direct": _flag("direct"),
    "buffered": lambda text, kb_base: {"direct": not boolean(text)},
    "sync": _synced,
    "fsync": _count("fsync"),
    "fdatasync": _count("fdatasync"),
    "end_fsync": _flag("end_fsync"),
    "size": _extent("size"),
    "filesize": lambda text, kb_base: {"filesize_bytes": amount(text, kb_base)},
    "offset": _extent("offset"),
    "filename": _file,
    "directory": _directory,
    "runtime": _time("runtime_ns", SECOND),
    "time_based": _flag("time_based"),
    "ramp_time": _time("ramp_ns", SECOND),
    "startdelay": _time("start_ns", SECOND),
    "rate": _pair("read_rate_bytes_per_s", "write_rate_bytes_per_s"),
    "rate_iops": _pair("read_iops", "write_iops"),
    "thinktime": _time("think_ns", MICROSECOND),
    "thinktime_blocks": _count("think_blocks", 1),
    "random_distribution": _law,
    "norandommap": _flag("norandommap"),
    "randrepeat": _flag("randrepeat"),
    "randseed": _count("randseed"),
    "group_reporting": _flag("group_reporting"),
    "stonewall": _flag("stonewall"),
    "new_group": _flag("new_group"),
    "loops": _count("loops", 1),
    "create_on_open": _flag("create_on_open"),
    "overwrite": _flag("overwrite"),
    "invalidate": _flag("invalidate"),
    "nrfiles": _count("nrfiles", 1, 1),
    "kb_base": _choice("kb_base", ("1024", "1000")),
}
ALIASES: Final[Mapping[str, str]] = {
    "readwrite": "rw",
    "blocksize": "bs",
    "wait_for_previous": "stonewall",
    "fsync_on_close": "end_fsync",
    "start_delay": "startdelay",
    "nr_files": "nrfiles",
    "iodepth_max": "iodepth",
}

_TRIM = "trims are jobs of their own, rw=trim or randtrim"
_DATA = "a simulated file has a size and no contents"
_HOST = "there is one host and one address space, whose CPUs the scheduler of the twin shares out"
_BATCH = "operations are submitted and reaped one by one"
_LOGS = 'use the records of a scenario\'s [process.NAME] with program = "fio"'
_FILES = "a job has one file"
_PLACES = "the only orders of places are sequential, random, zipf and pareto"
_TARGET = "fio runs as it is told, it does not search"
_OUTPUT = "the output is that of --output-format"
# Options that fio knows and this reader refuses -> why.
REFUSED: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("trim_percentage", "trim_verify_zero", "trim_backlog", "trim_backlog_batch"), _TRIM
    ),
    **dict.fromkeys(
        (
            "verify",
            "do_verify",
            "verify_fatal",
            "verify_pattern",
            "verify_interval",
            "verify_backlog",
            "verify_async",
            "verify_dump",
            "verifysort",
            "buffer_compress_percentage",
            "buffer_compress_chunk",
            "buffer_pattern",
            "dedupe_percentage",
            "refill_buffers",
            "scramble_buffers",
            "zero_buffers",
        ),
        _DATA,
    ),
    **dict.fromkeys(
        (
            "thread",
            "cpus_allowed",
            "cpus_allowed_policy",
            "cpumask",
            "numa_cpu_nodes",
            "numa_mem_policy",
            "nice",
            "prio",
            "prioclass",
            "cgroup",
            "cgroup_weight",
            "mem",
            "iomem",
            "iomem_align",
            "mem_align",
            "hugepage-size",
            "lockmem",
            "uid",
            "gid",
        ),
        _HOST,
    ),
    **dict.fromkeys(
        (
            "iodepth_batch",
            "iodepth_batch_submit",
            "iodepth_batch_complete",
            "iodepth_batch_complete_min",
            "iodepth_batch_complete_max",
            "iodepth_low",
            "io_submit_mode",
            "serialize_overlap",
            "hipri",
            "fixedbufs",
            "registerfiles",
            "sqthread_poll",
            "userspace_reap",
            "nonvectored",
        ),
        _BATCH,
    ),
    **dict.fromkeys(
        (
            "write_lat_log",
            "write_bw_log",
            "write_iops_log",
            "write_hist_log",
            "log_avg_msec",
            "log_offset",
            "log_hist_msec",
            "per_job_logs",
            "write_iolog",
            "read_iolog",
            "replay_redirect",
            "replay_no_stall",
        ),
        _LOGS,
    ),
    **dict.fromkeys(
        (
            "openfiles",
            "file_service_type",
            "filename_format",
            "unique_filename",
            "opendir",
            "lockfile",
            "unlink",
            "unlink_each_loop",
            "fallocate",
            "create_serialize",
            "create_fsync",
            "create_only",
            "pre_read",
            "file_append",
            "fill_device",
            "fill_fs",
            "allow_mounted_write",
            "fadvise_hint",
        ),
        _FILES,
    ),
    **dict.fromkeys(
        ("number_ios", "io_size", "io_limit"),
        "a pass is of 'size' bytes; 'loops', or 'runtime' with time_based, make it more or less",
    ),
    **dict.fromkeys(
        (
            "percentage_random",
            "random_generator",
            "softrandommap",
            "randommap_ignore",
            "offset_increment",
            "offset_align",
            "bsrange",
            "blocksize_range",
            "bs_unaligned",
            "blocksize_unaligned",
            "blockalign",
            "ba",
            "bs_is_seq_rand",
            "rw_sequencer",
            "zonesize",
            "zonerange",
            "zoneskip",
            "zonemode",
            "allrandrepeat",
            "experimental_verify",
            "unified_rw_reporting",
        ),
        _PLACES,
    ),
    **dict.fromkeys(
        (
            "latency_target",
            "latency_window",
            "latency_percentile",
            "max_latency",
            "rate_min",
            "rate_iops_min",
            "rate_process",
            "rate_cycle",
            "rate_ignore_thinktime",
            "steadystate",
            "steadystate_duration",
            "thinktime_spin",
            "thinktime_blocks_type",
            "thinktime_iotime",
            "continue_on_error",
            "ignore_error",
            "error_dump",
            "exitall",
            "exit_what",
            "exitall_on_error",
            "flow",
            "flow_id",
            "idle_prof",
        ),
        _TARGET,
    ),
    **dict.fromkeys(
        (
            "disable_lat",
            "disable_clat",
            "disable_slat",
            "disable_bw_measurement",
            "gtod_reduce",
            "gtod_cpu",
            "clocksource",
            "clat_percentiles",
            "lat_percentiles",
            "slat_percentiles",
            "percentile_list",
            "significant_figures",
            "bwavgtime",
            "iopsavgtime",
            "disk_util",
            "unit_base",
            "stats",
            "eta",
        ),
        _OUTPUT,
    ),
    **dict.fromkeys(
        (
            "include",
            "wait_for",
            "exec_prerun",
            "exec_postrun",
            "ioscheduler",
            "hostname",
            "port",
            "sync_file_range",
            "profile",
            "cpuload",
            "cpuchunks",
        ),
        "it concerns what a job file of the twin has no say in (the machine is another file)",
    ),
}
