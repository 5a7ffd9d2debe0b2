"""Let the scenario of a run happen, and take the figures that the recorder took.

Models: the recorder: counters at the beginning and at the end, a census of task states each
 second, and what the programs said themselves.
Linux counterpart: none; /proc/stat, /proc/diskstats, /proc/PID/stat.
Invariants: the figures carry the recorder's names and units: await in ms over all requests of a
 direction (await_all_ms over both, as of older iostats), wps writes a second and wareq_sz their
 mean size in KiB, aqu_sz the mean number of requests, util in % of the wall time, si and so pages
 swapped in and out a second, iowait in % of all CPUs, own_load the median census of tasks in R or
 D, load the mean of what enters the load average every 5 s, own_D the mean census of those in D,
 kernel threads included. The run ends when the last process of the workload has.
Left out: the recorder's own use of CPU.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, Final

from calibration.validate import pg_test_fsync
from calibration.validate.conditions import Condition
from calibration.validate.describe import Description
from calibration.validate.emulated_disk import Slowdisk
from calibration.validate.fio_jobs import fio_jobs, fio_result, fio_run
from calibration.validate.machine import FS_DIRECTORY, build, rig_of
from calibration.validate.parts import rig_parts
from calibration.validate.programs import GATE_MS, fio_size
from calibration.validate.sharing import Hog, sharing
from sim.fs.proc.diskstats import queue_time_ns
from sim.machine import Machine
from sim.results import Record
from sim.sched.task import TASK_RUNNING, TASK_UNINTERRUPTIBLE
from sim.units import parse_quantity

S: Final = 1_000_000_000
MS: Final = 1_000_000
LOAD_SAMPLES_NS: Final = 5 * S  # kernel/sched/loadavg.c LOAD_FREQ, but for its odd tick
SECTORS_PER_KIB: Final = 2
STEP_NS: Final = 10 * MS  # how exactly the end of the workload is found
LIMIT_NS: Final = 3600 * S
_DEALT_WITH: Final = ("message_delivered", "message_deferred", "message_queued")
# Simulations of a run, of whatever kind: some figures hang on what chance draws once and no
# description tells. The block group of the mail queue moves a storm's throughput by a third; whose
# pages go to swap first decides which of several programs alike keeps its own.
CHANCES: Final = 3
SEED_STEP: Final = 1 << 32  # apart from all seeds that anybody gives
SLOW_AGAIN_NS: Final = 300 * MS  # from the end of preparation to the disk's own speed, rec.py
DRAIN_NS: Final = 60 * S  # what is not delivered this long after the client's end stays queued


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What is predicted of a run, and what was measured of it, under the names of the index."""

    result: Mapping[str, float | None]
    await_ms: Mapping[str, float]
    await_all_ms: float
    wps: float
    wareq_sz: float
    aqu_sz: float
    util: float
    si: float
    so: float
    iowait: float
    own_load: float | None
    load: float | None
    own_D: float | None

    def to_json(self) -> dict[str, Any]:
        """Return the figures as what json can write."""
        return {
            "result": dict(self.result),
            "await_ms": dict(self.await_ms),
            "await_all_ms": self.await_all_ms,
            "wps": self.wps,
            "wareq_sz": self.wareq_sz,
            "aqu_sz": self.aqu_sz,
            "util": self.util,
            "si": self.si,
            "so": self.so,
            "iowait": self.iowait,
            "own_load": self.own_load,
            "load": self.load,
            "own_D": self.own_D,
        }


def predict(description: Description, seed: int, condition: Condition | None = None) -> Figures:
    """Return what to expect of a run: of a few simulations the one with the middle throughput.

    All figures are of that one simulation, so that they belong together. Raise Unsupported if it
    cannot be built.
    """
    seeds = range(seed, seed + CHANCES * SEED_STEP, SEED_STEP)
    found = [simulate(description, one, condition) for one in seeds]
    return sorted(found, key=_throughput)[CHANCES // 2]


def _throughput(figures: Figures) -> float:
    """Return the first of the application's figures that there is."""
    return next((value for value in figures.result.values() if value is not None), 0.0)


def simulate(description: Description, seed: int, condition: Condition | None = None) -> Figures:
    """Simulate a run once; raise Unsupported if it cannot be built."""
    rig = rig_of(description)
    with rig_parts():
        machine = Machine(build(description, seed, condition), seed)
    jobs = fio_jobs(description, rig, FS_DIRECTORY)
    fio = None if jobs is None else fio_run(machine, jobs, rig)
    has_ended = _ENDS[description.kind] if fio is None else lambda _: fio.has_ended
    has_begun = _BEGINS.get(description.kind)
    if has_begun is not None:
        _prepare(machine, has_begun)
    before = _Counters(machine, rig.disk)
    active: list[int] = []
    asleep: list[int] = []
    loads: list[int] = []
    while not has_ended(machine) and machine.calendar.now < LIMIT_NS:
        asleep.append(_uninterruptible(machine))
        if machine.calendar.now % S == 0:
            active.append(asleep[-1] + _running(machine))
        if machine.calendar.now % LOAD_SAMPLES_NS == LOAD_SAMPLES_NS // 2:
            loads.append(machine.load.active())
        machine.run_until(machine.calendar.now + STEP_NS)
    after = _Counters(machine, rig.disk)
    machine.check()
    await_ms = {
        "r": _ratio_ms(after.read_ns - before.read_ns, after.reads - before.reads),
        "w": _ratio_ms(after.write_ns - before.write_ns, after.writes - before.writes),
    }
    if fio is None:
        result = _RESULTS[description.kind](machine.records, description)
    else:
        result = fio_result(fio.results())
    if description.kind == "cpuburn":
        result |= _sharing(machine, await_ms["r"])
    return Figures(
        result=result,
        await_ms=await_ms,
        await_all_ms=_ratio_ms(
            after.read_ns - before.read_ns + after.write_ns - before.write_ns,
            after.reads - before.reads + after.writes - before.writes,
        ),
        wps=(after.writes - before.writes) * S / (after.now_ns - before.now_ns),
        wareq_sz=_ratio(after.write_sectors - before.write_sectors, after.writes - before.writes)
        / SECTORS_PER_KIB,
        aqu_sz=(after.time_in_queue_ns - before.time_in_queue_ns) / (after.now_ns - before.now_ns),
        util=_percent(after.io_ticks_ns - before.io_ticks_ns, after.now_ns - before.now_ns),
        si=(after.pswpin - before.pswpin) * S / (after.now_ns - before.now_ns),
        so=(after.pswpout - before.pswpout) * S / (after.now_ns - before.now_ns),
        iowait=_percent(after.iowait_ns - before.iowait_ns, after.cpu_ns - before.cpu_ns),
        own_load=median(active),
        load=fmean(loads) if loads else None,
        own_D=fmean(asleep),
    )


def _prepare(machine: Machine, has_prepared: Callable[[Machine], bool]) -> None:
    """Let a workload prepare itself on a disk at full speed, and the recorder begin (rec.py)."""
    emulated = [disk.driver for disk in machine.disks if isinstance(disk.driver, Slowdisk)]
    for driver in emulated:
        driver.hurry()
    while not has_prepared(machine) and machine.calendar.now < LIMIT_NS:
        machine.run_until(machine.calendar.now + STEP_NS)
    machine.run_until(machine.calendar.now + SLOW_AGAIN_NS)
    for driver in emulated:
        driver.slow_down()
    machine.run_until(machine.calendar.now + GATE_MS * MS - SLOW_AGAIN_NS - STEP_NS)


class _Counters:
    """Counters of the disk (zero without one), of swap and of the CPUs, at one moment."""

    def __init__(self, machine: Machine, disk: str) -> None:
        self.now_ns = machine.calendar.now
        self.reads = self.writes = self.read_ns = self.write_ns = self.io_ticks_ns = 0
        self.write_sectors = self.time_in_queue_ns = 0
        if disk in machine.devices:
            stats = machine.devices[disk].stats
            stats.update(self.now_ns)
            self.reads, self.writes = stats.reads, stats.writes
            self.read_ns, self.write_ns = stats.read_ns, stats.write_ns
            self.write_sectors = stats.write_sectors
            self.io_ticks_ns = stats.io_ticks_ns
            self.time_in_queue_ns = queue_time_ns(stats, machine.version)
        self.pswpin, self.pswpout = machine.vm.events.pswpin, machine.vm.events.pswpout
        machine.sched.update()
        self.cpu_ns = sum(cpu.total_ns() for cpu in machine.sched.cpu_times)
        self.iowait_ns = sum(cpu.iowait_ns for cpu in machine.sched.cpu_times)


def _running(machine: Machine) -> int:
    """Count the programs' tasks that run or wait for a CPU, as the recorder does."""
    return sum(
        task.state == TASK_RUNNING and not task.is_kthread
        for task in machine.sched.processes.tasks.values()
    )


def _uninterruptible(machine: Machine) -> int:
    """Count the tasks that sleep uninterruptibly, kernel threads too, as the recorder does."""
    tasks = machine.sched.processes.tasks.values()
    return sum(task.state == TASK_UNINTERRUPTIBLE for task in tasks)


def _all_have_said(name: str) -> Callable[[Machine], bool]:
    """Return a test whether every process has left its last record, which has that name."""

    def have(machine: Machine) -> bool:
        processes = sum(spec.count for spec in machine.scenario.processes.values())
        return sum(record.name == name for record in machine.records) >= processes

    return have


def _mail_has_drained(machine: Machine) -> bool:
    """Whether the client has ended and every message accepted is delivered or stays, or is late."""
    count = Counter(record.name for record in machine.records)
    ends = [r.t_ns for r in machine.records if r.name in ("storm_end", "mail_load_end")]
    if not ends:
        return False
    dealt_with = sum(count[name] for name in _DEALT_WITH)
    return dealt_with >= count["message_accepted"] or machine.calendar.now > ends[0] + DRAIN_NS


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def _ratio(total: int, count: int) -> float:
    return total / count if count else 0.0


def _ratio_ms(total_ns: int, count: int) -> float:
    return _ratio(total_ns, count) / MS


def _values(records: list[Record], name: str) -> Iterator[int]:
    """Yield the values of one name."""
    return (int(record.value) for record in records if record.name == name)


def _mean_ms(records: list[Record], name: str) -> float:
    found = list(_values(records, name))
    return fmean(found) / MS if found else 0.0


def _fio_result(records: list[Record], description: Description) -> dict[str, float | None]:
    begun_ns = min(record.t_ns for record in records if record.name == "fio_start")
    ended_ns = max(record.t_ns for record in records if record.name == "fio_done")
    operations = sum(_values(records, "fio_done"))
    if description.workload["rw"] != "randread":
        moved = operations * parse_quantity(fio_size(description.workload["bs"]), "bytes")
        rate = moved / (ended_ns - begun_ns) * S / 1e6
        return {"MB/s": rate, "lat ms": _mean_ms(records, "fio_ns")}
    return {
        "ops/s": operations * S / (ended_ns - begun_ns),
        "lat ms": _mean_ms(records, "fio_ns"),
    }


def _mailq_result(records: list[Record], description: Description) -> dict[str, float | None]:
    ended_ns = max(record.t_ns for record in records if record.name == "mailq_done")
    return {
        "msg/s": sum(_values(records, "mailq_done")) * S / ended_ns,
        "fsync ms": _mean_ms(records, "mailq_fsync_ns"),
    }


def _cpuburn_result(records: list[Record], description: Description) -> dict[str, float | None]:
    hogs = [r for r in records if r.name == "cpuburn_ns" and r.comm.startswith("hog")]
    reads = sum(_values(records, "cpuburn_reads"))
    has_readers = bool(description.workload.get("io_procs"))
    return {
        "io ops/s": reads / description.workload["seconds"] if has_readers else None,
        "CPU s": sum(int(hog.value) for hog in hogs) / S,
    }


def _sharing(machine: Machine, await_ms: float) -> dict[str, float | None]:
    """Return how the hogs and the readers of a run shared the CPUs."""
    nices = {spec.name: spec.nice for spec in machine.scenario.processes.values()}
    walls = {r.comm: int(r.value) / S for r in machine.records if r.name == "cpuburn_wall_ns"}
    hogs = [
        Hog(nice=nices[r.comm], cpu_s=int(r.value) / S, wall_s=walls[r.comm])
        for r in machine.records
        if r.name == "cpuburn_ns" and r.comm.startswith("hog")
    ]
    has_readers = "reader" in nices
    read_ms = _mean_ms(machine.records, "cpuburn_read_ns") if has_readers else None
    return sharing(hogs, read_ms, await_ms)


def _mta_result(records: list[Record], description: Description) -> dict[str, float | None]:
    load = description.workload.get("openloop")
    names = Counter(record.name for record in records)
    ended_ns = max(r.t_ns for r in records if r.name in ("storm_end", "mail_load_end"))
    last_ns = max((r.t_ns for r in records if r.name in _DEALT_WITH), default=0)
    over_s = float(load["seconds"]) if load else ended_ns / S
    accepted = names["mail_accepted"] if load else names["message_accepted"]
    return {"msg/s accepted": accepted / over_s, "drained s": max(ended_ns, last_ns) / S}


def _pcread_result(records: list[Record], description: Description) -> dict[str, float | None]:
    reads = sum(_values(records, "pcread_reads"))
    hits = sum(_values(records, "pcread_hits"))
    return {
        "reads/s": reads / float(description.workload["seconds"]),
        "hit ratio": hits / reads if reads else None,
    }


def _memtouch_result(records: list[Record], description: Description) -> dict[str, float | None]:
    transactions = sum(_values(records, "memtouch_tx"))
    longest_ns = max(_values(records, "memtouch_ns"), default=0)
    total_ns = sum(_values(records, "memtouch_ns"))
    return {
        "tx/s": transactions * S / longest_ns if longest_ns else 0.0,
        "tx ms": total_ns / transactions / MS if transactions else 0.0,
        "major faults": sum(_values(records, "memtouch_majflt")),
        "killed": sum(record.name == "oom_kill" for record in records),
    }


def _pg_test_fsync_result(
    records: list[Record], description: Description
) -> dict[str, float | None]:
    return pg_test_fsync.predicted_result(records)


_RESULTS: Final[Mapping[str, Callable[[list[Record], Description], dict[str, float | None]]]] = {
    "fio": _fio_result,
    "mailq": _mailq_result,
    "cpuburn": _cpuburn_result,
    "mta": _mta_result,
    "pcread": _pcread_result,
    "memtouch": _memtouch_result,
    "pg_test_fsync": _pg_test_fsync_result,
}
_ENDS: Final[Mapping[str, Callable[[Machine], bool]]] = {
    "fio": _all_have_said("fio_done"),
    "mailq": _all_have_said("mailq_done"),
    "cpuburn": _all_have_said("cpuburn_ns"),
    "mta": _mail_has_drained,
    "pcread": _all_have_said("pcread_done"),
    "memtouch": _all_have_said("memtouch_done"),
    "pg_test_fsync": _all_have_said("pg_test_fsync_done"),
}
# Prepared at full speed until this is so, and then recorded; at once where nothing is named.
_BEGINS: Final[Mapping[str, Callable[[Machine], bool]]] = {
    "pcread": _all_have_said("pcread_warm"),
}
