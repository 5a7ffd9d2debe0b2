"""From a run's workload to the processes of a scenario.

Models: the command lines of the recorded workloads, as programs of sim/user.
Linux counterpart: none.
Invariants: one function a kind of workload; a workload or an option of one that is not modelled
 raises Unsupported and says what it is.
Left out: the recorder, which needs a per cent of a CPU.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from calibration.validate.describe import Description, Unsupported
from calibration.validate.rigs import Rig

Lines = Iterator[str]
MAILQ_MESSAGES: Final = 400_000  # MAXM of mailq.c: all processes together


def programs(description: Description, rig: Rig, directory: str) -> Lines:
    """Yield the [process.*] tables of a run."""
    if description.kind in _TO_COME:
        raise Unsupported(_TO_COME[description.kind])
    if description.kind not in _KINDS:
        raise Unsupported(f"workload '{description.kind}' (known: {', '.join(_KINDS)})")
    return _KINDS[description.kind](description, rig, directory)


def _fio(description: Description, rig: Rig, directory: str) -> Lines:
    """fio: random reads of the device, or one sequential write of a file."""
    params = description.workload
    if params.get("rw") == "write":
        raise Unsupported("sequential writes through a file of ext4 or xfs")
    if params.get("rw") != "randread":
        raise Unsupported(f"fio with rw={params.get('rw')}")
    if not params.get("direct"):
        raise Unsupported("buffered random reads of a device")
    wall, user = rig.fio_start
    queued = params["mode"] == "qd"
    yield "[process.fio]"
    yield 'program = "fio"'
    yield f"count = {1 if queued else params['n']}"
    yield f'ioengine = "{"libaio" if queued else "psync"}"'
    yield f"iodepth = {params['n'] if queued else 1}"
    yield f'filename = "/dev/{rig.disk}"'
    yield f'block_size = "{_fio_size(params["bs"])}"'
    yield f'size = "{_disk_mib(description)} MiB"'
    yield f'runtime = "{params["runtime_s"]} s"'
    source = "recording: a_randread, wall and CPU time beside the job"
    yield f'start = {{ value = "{wall}", source = "{source}" }}'
    yield f'start_user = {{ value = "{user}", source = "{source}" }}'


def _fio_size(text: Any) -> str:
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
    yield f"count = {params['procs']}"
    yield f'directory = "{directory}"'
    yield f'runtime = "{params["seconds"]} s"'
    yield f'size_min = "{params["size_min"]} B"'
    yield f'size_max = "{params["size_max"]} B"'
    yield f"keep = {params['keep']}"
    yield f"messages = {MAILQ_MESSAGES // params['procs']}"
    yield f'message_user = "{params.get("cpu_us") or 0} us"'


def _cpuburn(description: Description, rig: Rig, directory: str) -> Lines:
    """cpuburn.c: hogs with nice levels, and readers of the device."""
    params = description.workload
    for number, nice in enumerate(params["nices"]):
        yield f'[process.hog{number}]\nprogram = "cpuburn"\nnice = {nice}'
        yield f'runtime = "{params["seconds"]} s"'
    if params.get("io_procs"):
        yield f'[process.reader]\nprogram = "cpuburn"\ncount = {params["io_procs"]}'
        yield f'runtime = "{params["seconds"]} s"'
        yield f'filename = "/dev/{rig.disk}"\nfile_size = "{_disk_mib(description)} MiB"'
        yield f'read_user = "{_read_user_us(description)} us"'


def _read_user_us(description: Description) -> float:
    """Return the CPU time after a read.

    The program looks at its CPU clock. A guest's clock advances with the timer tick only, so that
    the loop ends when one full tick has been seen (groundtruth README, section 7).
    """
    asked_us = float(description.workload.get("io_cpu_us") or 0)
    if not description.kernel.is_guest:
        return asked_us
    tick_us = 1e6 / description.kernel.hz
    return -(-asked_us // tick_us) * tick_us


_KINDS: Final[Mapping[str, Callable[[Description, Rig, str], Lines]]] = {
    "fio": _fio,
    "mailq": _mailq,
    "cpuburn": _cpuburn,
}
_TO_COME: Final[Mapping[str, str]] = {
    "memtouch": "anonymous memory beyond its limit: reclaim, swap, memory cgroups, OOM killer",
    "pcread": "a page cache larger than memory: reclaim of file pages, memory cgroups",
    "mta": "sendmail 8.17 with smtp-source or smtp_load",
}
