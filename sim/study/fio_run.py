"""One run of fio on a machine: boot, run the jobs of a file, take what they and the disks counted.

Models: an administrator at an idle server with a job file.
Linux counterpart: fio's main(), diskutil.c (disk_util of the files' devices).
Invariants: of the machine's description only [machine] counts: its programs do not run. Every job
 has ended. Same description, file and seed: same result.
Left out: fio's own laying out of files (they are there), several runs.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import sim
from sim.block.genhd import BlockDevice
from sim.machine import BTIME_S, Machine
from sim.scenario import Scenario, ScenarioError, load
from sim.scenario.fio_file import FioFile, FioJob
from sim.scenario.workload import lacking
from sim.sched.version import numbers
from sim.toml.errors import Problem, unknown
from sim.toml.layers import Layer, read_table
from sim.user.fio import Fio, FioParams, FioSession, JobStat

STEP_NS: Final = 100_000_000
SECTOR: Final = 512  # bytes
BLOCK_SIZE: Final = 4096  # of a file system's free space
PARTS: Final = 1000  # of a job, in progress
_NOBODY: Final = """\
[process.fio]
program = "fio"
count = 0
[run]
duration = "1 h"
"""


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """A job with what it counted."""

    job: FioJob
    stat: JobStat


@dataclass(frozen=True, kw_only=True)
class DiskUse:
    """What a disk did in the run, as /proc/diskstats counts; times in ms."""

    name: str
    reads: int
    writes: int
    read_sectors: int
    write_sectors: int
    read_merges: int
    write_merges: int
    read_ms: int
    write_ms: int
    queue_ms: int
    busy_ms: int
    elapsed_ms: int


@dataclass(frozen=True, kw_only=True)
class FioResult:
    """One run of a job file."""

    machine: str
    seed: int
    version: str
    file: FioFile
    jobs: tuple[JobResult, ...]
    disks: tuple[DiskUse, ...]
    ended_ns: int
    epoch_s: int  # the machine's clock at 0 ns, UTC


def load_machine(name: str, *, seed: int | None, sets: tuple[str, ...]) -> Scenario:
    """Return a scenario of which only the machine is wanted; it need not have a process."""
    layer = read_table(_NOBODY, "fio", Layer.FIT)
    return replace(load(name, seed=seed, sets=sets, fit=layer), processes={})


class FioRun:
    """The jobs of a file on a machine: from their start until the last has ended."""

    def __init__(
        self,
        machine: Machine,
        file: FioFile,
        nice: int = 0,
        start_ns: int = 0,
        start_user_ns: int = 0,
    ) -> None:
        """Lay the files out and start fio; raise ScenarioError for a job that cannot run.

        fio starts for `start_ns`, of which it computes `start_user_ns`, before it does anything.
        """
        self.programs = [(job, Fio(_placed(machine, job))) for job in file.jobs]
        waves: dict[int, list[Fio]] = {}
        for job, program in self.programs:
            waves.setdefault(job.wave, []).append(program)
        self.session = FioSession(list(waves.values()), start_ns, start_user_ns)
        _lay_out(machine, self.session, file)
        machine.kernel.start("fio", "fio", self.session.main, nice)

    @property
    def has_ended(self) -> bool:
        """Whether every job has ended."""
        return self.session.ended_ns >= 0

    def progress(self, now_ns: int) -> float:
        """Return which part of the jobs is done, 0 to 1."""
        done = sum(program.progress(now_ns) for _, program in self.programs)
        return done / len(self.programs)

    def results(self) -> tuple[JobResult, ...]:
        """Return what the jobs have counted, in the order of the file."""
        return tuple(JobResult(job=job, stat=program.stat) for job, program in self.programs)


def run_fio(
    scenario: Scenario, file: FioFile, progress: Callable[[int, int], None] | None = None
) -> FioResult:
    """Run the jobs; raise ScenarioError for one that this machine cannot run."""
    machine = Machine(scenario, scenario.seed)
    run = FioRun(machine, file)
    devices = _devices(machine, run.programs)
    before = [_counted(device, machine.calendar.now) for device in devices]
    while not run.has_ended:
        machine.run_until(machine.calendar.now + STEP_NS)
        if progress is not None:
            progress(int(PARTS * run.progress(machine.calendar.now)), PARTS)
    machine.check()
    ended_ns = run.session.ended_ns
    used = [
        _used(device, counts, _counted(device, machine.calendar.now), ended_ns)
        for device, counts in zip(devices, before, strict=True)
    ]
    return FioResult(
        machine=scenario.name,
        seed=scenario.seed,
        version=sim.__version__,
        file=file,
        jobs=run.results(),
        disks=tuple(used),
        ended_ns=ended_ns,
        epoch_s=BTIME_S,
    )


def _check_engine(machine: Machine, job: FioJob) -> None:
    """Raise ScenarioError for what the machine's kernel, or its device, does not have."""
    params = job.params
    for option, release in lacking(Fio.kernel_needs(params), machine.version):
        given = params.ioengine if option == "ioengine" else "1"
        what = params.ioengine if option == "ioengine" else option
        message = f"[{job.name}]: Linux {numbers(machine.version)} has no {what}"
        place, allowed = job.place_of(option), f"from {release}"
        raise ScenarioError([Problem(place, message, given, allowed)])
    if params.sqthread_poll_cpu >= machine.sched.nr_cpus:
        message = f"[{job.name}]: sqthread_poll_cpu: no such CPU"
        place = job.place_of("sqthread_poll_cpu")
        allowed = f"0 to {machine.sched.nr_cpus - 1}"
        raise ScenarioError([Problem(place, message, str(params.sqthread_poll_cpu), allowed)])


def _check_polling(job: FioJob, device: BlockDevice | None) -> None:
    """Raise ScenarioError for a job that polls a device without queues for that."""
    if job.params.hipri and (device is None or not device.polls):
        name = "what it reads" if device is None else device.name
        message = f"[{job.name}]: hipri: {name} has no queues that are polled"
        allowed = "an NVMe drive with poll_queues"
        raise ScenarioError([Problem(job.place_of("hipri"), message, allowed=allowed)])


def _placed(machine: Machine, job: FioJob) -> FioParams:
    """Return the job's parameters on this machine; a device must be there and large enough."""
    _check_engine(machine, job)
    name = job.params.filename
    if not name.startswith("/dev/"):
        return _with_room(job.sized(job.filesize_bytes), job)
    device = machine.devices.get(name.removeprefix("/dev/"))
    if device is None:
        known = [f"/dev/{device}" for device in machine.devices]
        raise ScenarioError([unknown(job.section, "device", name, known)])
    _check_polling(job, device)
    capacity = device.capacity_sectors * SECTOR
    params = job.sized(capacity)
    if params.offset_bytes + params.size_bytes > capacity:
        end = params.offset_bytes + params.size_bytes
        message = f"[{job.name}] ends behind the end of {name}"
        raise ScenarioError([Problem(job.section, message, f"{end} B", f"up to {capacity} B")])
    return _with_room(params, job)


def _with_room(params: FioParams, job: FioJob) -> FioParams:
    """Return the parameters; refuse a job that has no room for one operation."""
    block = min(size for split in params.splits() for size, _ in split)
    if params.size_bytes < block:
        message = f"[{job.name}] has less than a block of {block} B behind its offset"
        raise ScenarioError([Problem(job.section, message, f"{max(params.size_bytes, 0)} B")])
    return params


def _lay_out(machine: Machine, session: FioSession, file: FioFile) -> None:
    """Make the files that are there beforehand; say which job they cannot be made for."""
    for job in file.jobs:
        path = job.params.filename
        try:
            file_system = machine.vfs.file_system_of(path)
        except FileNotFoundError:
            mounts = ", ".join(prefix or "/" for prefix, _ in machine.vfs.mounts)
            message = f"[{job.name}]: nothing is mounted where {path} is"
            raise ScenarioError([Problem(job.section, message, allowed=mounts)]) from None
        if not path.startswith("/dev/"):
            _check_polling(job, file_system.device)
    for path, size in session.files().items():
        if path.startswith("/dev/"):
            continue
        free = machine.vfs.file_system_of(path).statfs().blocks_free * BLOCK_SIZE
        if size > free:
            job = next(job for job in file.jobs if job.params.filename == path)
            message = f"[{job.name}]: no room for {path}"
            problem = Problem(job.section, message, f"{size} B", f"up to {free} B")
            raise ScenarioError([problem])
        machine.vfs.prepare_file(path, size)


def _devices(machine: Machine, programs: list[tuple[FioJob, Fio]]) -> list[BlockDevice]:
    """Return the devices that the files are on, each once, in the order of the jobs."""
    found: dict[str, BlockDevice] = {}
    for _, program in programs:
        name = program.params.filename
        if name.startswith("/dev/"):
            device: BlockDevice | None = machine.devices[name.removeprefix("/dev/")]
        else:
            device = machine.vfs.file_system_of(name).device
        if device is not None:
            found[device.name] = device
    return list(found.values())


def _counted(device: BlockDevice, now_ns: int) -> tuple[int, ...]:
    """Return the counters of a device: numbers, then ns."""
    stats = device.stats
    stats.update(now_ns)
    return (
        stats.reads,
        stats.writes,
        stats.read_sectors,
        stats.write_sectors,
        stats.read_merges,
        stats.write_merges,
        stats.read_ns,
        stats.write_ns,
        stats.time_in_queue_ns,
        stats.io_ticks_ns,
    )


def _used(
    device: BlockDevice, before: tuple[int, ...], after: tuple[int, ...], ended_ns: int
) -> DiskUse:
    difference = [new - old for old, new in zip(before, after, strict=True)]
    read_ms, write_ms, queue_ms, busy_ms = (ns // 1_000_000 for ns in difference[6:])
    return DiskUse(
        name=device.name,
        reads=difference[0],
        writes=difference[1],
        read_sectors=difference[2],
        write_sectors=difference[3],
        read_merges=difference[4],
        write_merges=difference[5],
        read_ms=read_ms,
        write_ms=write_ms,
        queue_ms=queue_ms,
        busy_ms=busy_ms,
        elapsed_ms=ended_ns // 1_000_000,
    )
