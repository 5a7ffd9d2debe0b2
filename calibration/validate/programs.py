"""From a run's workload to the processes of a scenario.

Models: the command lines of the recorded workloads, as programs of sim/user and the rigs' own
 (parts.py).
Linux counterpart: none.
Invariants: one function a kind of workload; a workload or an option of one that is not modelled
 raises Unsupported and says what it is.
Left out: the recorder, which needs a per cent of a CPU.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from calibration.validate.describe import Description, Unsupported
from calibration.validate.fio_jobs import read_jobs
from calibration.validate.rigs import Rig

Lines = Iterator[str]
STORM_BACKLOG: Final = 200  # Listen=200 in storm.mc
CGROUP: Final = "work"  # the memory cgroup of a limited workload
MAILQ_MESSAGES: Final = 400_000  # MAXM of mailq.c: all processes together


def programs(description: Description, rig: Rig, directory: str) -> Lines:
    """Yield the [process.*] tables of a run."""
    if description.kind not in _KINDS:
        raise Unsupported(f"workload '{description.kind}' (known: {', '.join(_KINDS)})")
    return _KINDS[description.kind](description, rig, directory)


def _fio(description: Description, rig: Rig, directory: str) -> Lines:
    """fio: random or sequential reads of the device or of a file, or one write of a file.

    A job file says it all itself (fio_jobs.py), and no process of the scenario does anything.
    """
    params = description.workload
    if description.job_file is not None:
        yield '[process.fio]\nprogram = "fio"\ncount = 0'
        return
    if params["rw"] not in _FIO_KINDS:
        raise Unsupported(f"fio with rw={params['rw']} (known: {', '.join(_FIO_KINDS)})")
    in_file = params["rw"] == "write" or (description.disk is not None and description.disk.fs)
    filename = f"{directory}/f" if in_file else f"/dev/{rig.disk}"
    yield "[process.fio]"
    yield f'program = "fio"\nnice = {rig.nice}\nfilename = "{filename}"'
    yield f'block_size = "{fio_size(params["bs"])}"'
    yield from _FIO_KINDS[params["rw"]](description)
    wall_ms, user_ms, source = rig.fio_start
    yield f'start = {{ value = "{wall_ms} ms", source = "{source}" }}'
    # One process starts; here, where each job is one of its own, they share that.
    yield f'start_user = {{ value = "{user_ms / _jobs(params)} ms", source = "{source}" }}'


def _jobs(params: Mapping[str, Any]) -> int:
    """Return the number of processes that do I/O."""
    return int(params["n"]) if params.get("mode") == "jobs" else 1


def _random_reads(description: Description) -> Lines:
    params = description.workload
    queued = params["mode"] == "qd"
    yield f"count = {_jobs(params)}"
    yield f'ioengine = "{"libaio" if queued else "psync"}"'
    yield f"iodepth = {params['n'] if queued else 1}"
    yield f'size = "{params.get("size_mb") or _disk_mib(description)} MiB"'
    yield f'runtime = "{params["runtime_s"]} s"'
    if not params["direct"]:
        yield "direct = false"


def _sequential_reads(description: Description) -> Lines:
    """Yield reads of adjacent blocks, of a file that is there and not in memory (invalidate)."""
    params = description.workload
    yield f'rw = "read"\nsize = "{params.get("size_mb") or _disk_mib(description)} MiB"'
    if params.get("runtime_s"):
        yield f'runtime = "{params["runtime_s"]} s"'
    if not params["direct"]:
        yield "direct = false"


def _sequential_write(description: Description) -> Lines:
    """Yield a write of adjacent blocks: a new file's, on a file system that is empty."""
    params = description.workload
    yield f'rw = "write"\nsize = "{params["size_mb"]} MiB"'
    if not params["direct"]:
        yield f"direct = false\nend_fsync = {str(bool(params.get('end_fsync'))).lower()}"


_FIO_KINDS: Final = {
    "randread": _random_reads,
    "read": _sequential_reads,
    "write": _sequential_write,
}


def pins_its_pages(description: Description, rig: Rig) -> bool:
    """Whether requests are made of a program's own memory: all but fio's buffered ones."""
    if description.kind != "fio":
        return True
    if description.job_file is not None:
        jobs = read_jobs(description.job_file, rig.disk, "/").jobs
        return any(job.params.direct for job in jobs)
    return bool(description.workload["direct"])


def fio_size(text: Any) -> str:
    """Return fio's "4k" with a unit."""
    units = {"k": "KiB", "m": "MiB", "g": "GiB"}
    last = str(text)[-1:].lower()
    return f"{str(text)[:-1]} {units[last]}" if last in units else f"{text} B"


def _disk_mib(description: Description) -> Any:
    if description.disk is None:
        raise Unsupported("reads of a device in a run without a disk")
    return description.disk.params["size_mb"]


def _mailq(description: Description, rig: Rig, directory: str) -> Lines:
    """mailq.c: processes of the same kind in one directory."""
    params = description.workload
    yield "[process.mailq]"
    yield 'program = "mailq"'
    yield f"count = {params['procs']}\nnice = {rig.nice}"
    yield f'directory = "{directory}"'
    yield f'runtime = "{params["seconds"]} s"'
    yield f'size_min = "{params["size_min"]} B"'
    yield f'size_max = "{params["size_max"]} B"'
    yield f"keep = {params['keep']}"
    yield f"messages = {MAILQ_MESSAGES // params['procs']}"
    yield f'message_user = "{params.get("cpu_us") or 0} us"'


_SPIN_S: Final = 0.1  # rig/cpuburn.c: all hogs wait for this moment after the start, computing


def _cpuburn(description: Description, rig: Rig, directory: str) -> Lines:
    """cpuburn.c: hogs with nice levels, and readers of the device."""
    params = description.workload
    for number, nice in enumerate(params["nices"]):
        yield f'[process.hog{number}]\nprogram = "rig_cpuburn"\nnice = {nice}'
        yield f'runtime = "{params["seconds"]} s"\nspin = "{_SPIN_S} s"'
    if params.get("io_procs"):
        yield f'[process.reader]\nprogram = "rig_cpuburn"\ncount = {params["io_procs"]}'
        yield f'runtime = "{params["seconds"] + _SPIN_S} s"'
        yield f'filename = "/dev/{rig.disk}"\nfile_size = "{_disk_mib(description)} MiB"'
        yield f'read_user = "{_read_user_us(description)} us"'


def _read_user_us(description: Description) -> float:
    """Return the CPU time after a read.

    The program looks at its CPU clock. A guest's clock advances with the timer tick only, so that
    the loop ends when one full tick has been seen (the rigs' README, section 7).
    """
    return _in_ticks(description, float(description.workload.get("io_cpu_us") or 0))


def _in_ticks(description: Description, asked_us: float) -> float:
    """Return how long a program computes that waits for its CPU clock to advance so far."""
    if not description.kernel.is_guest:
        return asked_us
    tick_us = 1e6 / description.kernel.hz
    return -(-asked_us // tick_us) * tick_us


def _mta(description: Description, rig: Rig, directory: str) -> Lines:
    """sendmail, and a client on the same machine: smtp-source (closed) or smtp_load (open)."""
    params, options = description.workload, description.details.get("options", [])
    told = dict(option.split("=", 1) for option in options)
    unknown = set(told) - {"QueueLA", "RefuseLA"}
    if unknown:
        raise Unsupported(f"sendmail's option {min(unknown)}")
    if "sendmail" not in str(description.details.get("mta")):
        raise Unsupported(f"the mail server {description.details.get('mta')}")
    yield '[link.lo]\nlatency = "10 us"\nrate = "10 Gbit/s"'
    yield '[process.syslogd]\nprogram = "syslogd"'
    yield '[process.relay]\nprogram = "smtp_relay"\nvia = "lo"'
    yield f'[process.sendmail]\nprogram = "sendmail"\nnice = {rig.nice}'
    yield f'queue_directory = "{directory}/mqueue"\nbacklog = {_backlog(description)}'
    yield 'mailer = "local"'  # nullmda.c, which storm.mc names: reads and is content
    yield from (f"{_LOADS[name]} = {value}" for name, value in told.items())
    for key, (value, source) in rig.sendmail.items():
        shown = value if key == "byte_user_ns" else f'"{value}"'
        yield f'{key} = {{ value = {shown}, source = "{source}" }}'
    yield "[process.client]"
    yield 'via = "lo"\ntarget = "sendmail"'
    yield from _open_client(params) if params.get("openloop") else _closed_client(params)


def _backlog(description: Description) -> int:
    """Return the backlog of listen(): that of storm.mc unless the workload's note tells another."""
    found = re.search(r"listen backlog (\d+)", str(description.details.get("note", "")))
    return int(found[1]) if found else STORM_BACKLOG


_LOADS: Final = {"QueueLA": "queue_la", "RefuseLA": "refuse_la"}


def _open_client(params: Mapping[str, Any]) -> Lines:
    load = params["openloop"]
    yield 'program = "smtp_load"'
    yield f'rate = "{load["rate_ps"]} msg/s"\nduration = "{load["seconds"]} s"'
    yield f'retry = "{load["retry_s"]} s"\nmessage_size = "{params["size"]} B"'


def _closed_client(params: Mapping[str, Any]) -> Lines:
    yield 'program = "smtp_sender"\narrivals = "closed"\nmarks_storm = true'
    yield f"concurrency = {params['sessions']}\nmessages = {params['messages']}"
    source = "manual: Postfix 3.7 smtp-source.c, enqueue_connect: one after the other"
    yield f'connecting_max = {{ value = 1, source = "{source}" }}'
    yield f'messages_per_session = 1\nmessage_size = "{params["size"]} B"\nretry = "1 s"'


GATE_MS: Final = 1300
_GATE: Final = "manual: rig/rec.py: 0.3 s until the disk is slow again, gate_wait_s 1.0"


def _pcread(description: Description, rig: Rig, directory: str) -> Lines:
    """pcread.c: readers of one file, a part of the warm-up each."""
    params = description.workload
    yield "[process.pcread]"
    yield f'program = "pcread"\nprocs = {params["procs"]}\nnice = {rig.nice}'
    yield f'filename = "{directory}/f"\nfile_size = "{params["file_mib"]} MiB"'
    yield f'runtime = "{params["seconds"]} s"\nalpha = {float(params["zipf_alpha"])}'
    yield f"warm_reads = {params['warm_reads']}"
    yield f'gate = {{ value = "{GATE_MS} ms", source = "{_GATE}" }}'
    yield f'hit = "{params["hit_us"]} us"'


def _memtouch(description: Description, rig: Rig, directory: str) -> Lines:
    """memtouch.c: processes that touch pages of their own at random."""
    params = description.workload
    yield "[process.memtouch]"
    yield f'program = "memtouch"\nnice = {rig.nice}'
    if params.get("memcg_limit_mib"):
        yield f'cgroup = "{CGROUP}"'
    yield f'size = "{params["ws_mib"]} MiB"\nprocs = {params["procs"]}'
    yield f'runtime = "{params["seconds"]} s"'
    yield f"touches = {params['touches_per_transaction']}"
    yield f"write_share = {float(params['write_share'])}"
    yield f'transaction_user = "{_in_ticks(description, float(params["cpu_us"]))} us"'


_UNSYNCED: Final = "derived: 20,000 writes that are all alike say as much as a million"


def _pg_test_fsync(description: Description, rig: Rig, directory: str) -> Lines:
    """pg_test_fsync -s SECONDS -f DIR/test."""
    yield "[process.pg_test_fsync]"
    yield f'program = "pg_test_fsync"\nnice = {rig.nice}'
    yield f'filename = "{directory}/test"'
    yield f'secs_per_test = "{description.workload["seconds"]} s"'
    yield f'unsynced = {{ value = "50 ms", source = "{_UNSYNCED}" }}'


_KINDS: Final[Mapping[str, Callable[[Description, Rig, str], Lines]]] = {
    "fio": _fio,
    "mailq": _mailq,
    "cpuburn": _cpuburn,
    "mta": _mta,
    "pcread": _pcread,
    "memtouch": _memtouch,
    "pg_test_fsync": _pg_test_fsync,
}
