"""/proc beside what sim/fs/proc renders: interrupts, mounts, schedstat, a process's other files.

Models: interrupts, softirqs, schedstat, mounts, filesystems, partitions, version, sys/kernel, and
 of sys/vm what [machine.vm] sets; of each process cmdline, comm, io, schedstat, wchan, and stat and
 status with the fields that the twin's own tools do not read. A file is there from the release on
 that brought it.
Linux counterpart: fs/proc/interrupts.c, softirqs.c, version.c, filesystems.c; fs/proc_namespace.c;
 block/genhd.c (show_partition); kernel/sched/stats.c; fs/proc/base.c (proc_tgid_io_accounting,
 proc_pid_schedstat); kernel/irq/proc.c (show_interrupts); fs/proc/array.c; kernel/sysctl.c
 (vm_table), mm/page-writeback.c (dirty_bytes_handler: a limit in bytes sets the ratio to 0).
Invariants: the counts of interrupts sum to the total of /proc/stat; a text of sim/fs/proc is only
 ever lengthened.
Left out: which device interrupted which CPU: all interrupts of devices stand in one line of CPU 0.
 Softirqs are 0, as in /proc/stat; of schedstat the counts of calls and of balancing. Open
 files, counters of network interfaces, which the twin does not keep. Of a process its signals and
 capabilities, fd, maps, task.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sim.fs.proc.stat import LOCAL_TIMERS_COUNTED_SINCE, TICKLESS_SINCE
from sim.machine import Machine
from sim.mm.mmzone import KIB_PER_PAGE, WATERMARK_SCALE_FACTOR
from sim.sched.task import Task
from sim.sched.version import KernelVersion, in_force, numbers
from sim.study.tree.accounts import Accounts, TaskAccount
from sim.study.waits import kernel_name
from sim.tools.parse import parse_stat

SOFTIRQS: Final = (
    "HI",
    "TIMER",
    "NET_TX",
    "NET_RX",
    "BLOCK",
    "IRQ_POLL",
    "TASKLET",
    "SCHED",
    "HRTIMER",
    "RCU",
)
SOFTIRQS_SINCE: Final = (2, 6, 31)
IO_SINCE: Final = (2, 6, 20)  # CONFIG_TASK_IO_ACCOUNTING
COMM_SINCE: Final = (2, 6, 33)
SCHEDSTAT_IN_NS_SINCE: Final = (2, 6, 23)
SCHEDSTAT_VERSIONS: Final[tuple[tuple[KernelVersion, int], ...]] = (
    ((2, 6, 23), 14),
    ((2, 6, 38), 15),
    ((6, 9), 16),
    ((6, 14), 17),
)
SWITCHES_SINCE: Final = (2, 6, 23)
# Fields of /proc/PID/stat in all (fs/proc/array.c).
STAT_FIELDS: Final[tuple[tuple[KernelVersion, int], ...]] = (
    ((2, 6, 0), 41),
    ((2, 6, 18), 42),  # delayacct_blkio_ticks
    ((2, 6, 24), 44),  # guest time
    ((3, 3), 47),
    ((3, 5), 52),
)
PID_MAX: Final = 32768
DIRTY_BYTES_SINCE: Final = (2, 6, 29)
NS_PER_CENTISEC: Final = 10_000_000
UNNAMED_DEVICE: Final = {"tmpfs": "tmpfs", "devtmpfs": "udev"}


def proc_files(machine: Machine, accounts: Accounts, stat: str) -> dict[str, str]:
    """Return the texts by path below /proc; `stat` is /proc/stat of the same moment."""
    version = machine.version
    mounts = _mounts(machine)
    files = {
        "interrupts": _interrupts(machine, stat),
        "mounts": mounts,
        "self/mounts": mounts,
        "filesystems": _filesystems(machine),
        "partitions": _partitions(machine),
        "version": f"Linux version {_release(machine)} (iotwin) #1 SMP\n",
        "sys/kernel/osrelease": f"{_release(machine)}\n",
        "sys/kernel/ostype": "Linux\n",
        "sys/kernel/hostname": f"{machine.scenario.server.hostname}\n",
        "sys/kernel/pid_max": f"{PID_MAX}\n",
    }
    files |= {f"sys/vm/{name}": f"{value}\n" for name, value in _vm_sysctls(machine).items()}
    if version >= SOFTIRQS_SINCE:
        files["softirqs"] = _softirqs(machine.sched.nr_cpus)
    if version >= SCHEDSTAT_IN_NS_SINCE:
        files["schedstat"] = _schedstat(machine, accounts)
    if accounts.pressure is not None:
        files |= accounts.pressure.files(machine.now(), version)
    return files


def process_files(
    machine: Machine, accounts: Accounts, rendered: Mapping[str, str]
) -> dict[str, str]:
    """Return the texts of all processes by path below /proc; `rendered` are sim/fs/proc's."""
    files: dict[str, str] = {}
    tick_ns = machine.sched.tick_ns
    for pid, task in machine.sched.processes.tasks.items():
        files |= _of_task(
            task,
            accounts.of(pid),
            rendered[f"{pid}/stat"],
            rendered[f"{pid}/status"],
            machine.version,
            tick_ns,
        )
    return files


# -- The machine


def _release(machine: Machine) -> str:
    return machine.scenario.server.kernel or numbers(machine.version)


def _vm_sysctls(machine: Machine) -> dict[str, int]:
    """Return what sysctl calls vm.*, in the unit of its name."""
    vm, params = machine.vm, machine.vm.params
    found = {
        "dirty_background_ratio": round(params.dirty_background_ratio),
        "dirty_expire_centisecs": params.dirty_expire_ns // NS_PER_CENTISEC,
        "dirty_ratio": round(params.dirty_ratio),
        "dirty_writeback_centisecs": params.dirty_writeback_ns // NS_PER_CENTISEC,
        "min_free_kbytes": vm.watermarks.min * KIB_PER_PAGE,
        "overcommit_memory": params.overcommit_memory,
        "overcommit_ratio": round(params.overcommit_ratio),
        "page-cluster": params.page_cluster,
        "swappiness": params.swappiness,
        "vfs_cache_pressure": params.vfs_cache_pressure,
    }
    if machine.version >= DIRTY_BYTES_SINCE:
        for name, size in (
            ("dirty_background", params.dirty_background_limit_bytes),
            ("dirty", params.dirty_limit_bytes),
        ):
            found[f"{name}_bytes"] = size
            if size:
                found[f"{name}_ratio"] = 0
    if vm.features.watermark_scale:
        found["watermark_scale_factor"] = WATERMARK_SCALE_FACTOR
    return found


def _interrupts(machine: Machine, stat: str) -> str:
    """Return a line for all devices and one for the timer, which sum to the total of stat."""
    sched, version = machine.sched, machine.version
    cpus = range(sched.nr_cpus)
    ticks = [
        (cpu.busy_ns() - cpu.steal_ns) // sched.tick_ns
        if version >= TICKLESS_SINCE
        else machine.now() // sched.tick_ns
        for cpu in sched.cpu_times
    ]
    head = "     " + "".join(f"       CPU{cpu:<3d}"[: 11 if cpu < 10 else 12] for cpu in cpus)
    lines = [head.rstrip() + " "]
    total = parse_stat(stat).intr
    devices = sched.nr_interrupts
    if version < TICKLESS_SINCE:
        board = [total - devices, *[0 for _ in cpus[1:]]]
        lines.append(_interrupt_line("0", board, "IO-APIC-edge  timer"))
    elif version >= LOCAL_TIMERS_COUNTED_SINCE:
        assert total == devices + sum(ticks), "the lines sum to the total"
    served = [devices, *[0 for _ in cpus[1:]]]
    chip = "IO-APIC-level  devices" if version < (2, 6, 38) else " IO-APIC   9-fasteoi   devices"
    lines.append(_interrupt_line("9", served, chip))
    local = "" if version < (2, 6, 24) else "  Local timer interrupts"
    lines.append(_interrupt_line("LOC", ticks, local))
    return "".join(f"{line}\n" for line in lines)


def _interrupt_line(name: str, counts: list[int], what: str) -> str:
    return f"{name:>3}: " + "".join(f"{count:10d} " for count in counts) + what


def _softirqs(nr_cpus: int) -> str:
    head = " " * 20 + "".join(f"CPU{cpu:<8d}" for cpu in range(nr_cpus))
    rows = (f"{name:>12}:" + " ".join(f"{0:10d}" for _ in range(nr_cpus)) for name in SOFTIRQS)
    return "\n".join([head, *(row.replace(":", ": ", 1) for row in rows)]) + "\n"


def _schedstat(machine: Machine, accounts: Accounts) -> str:
    """Return the version, the jiffies, and each CPU's time of running and waiting and its turns."""
    version = in_force(SCHEDSTAT_VERSIONS, machine.version)
    lines = [f"version {version}", f"timestamp {machine.now() // machine.sched.tick_ns}"]
    for number, cpu in enumerate(machine.sched.cpu_times):
        account = accounts.cpu(number)
        times = f"{cpu.busy_ns() - cpu.steal_ns} {account.run_delay_ns} {account.turns}"
        lines.append(f"cpu{number} 0 0 0 0 0 0 {times}")
    return "".join(f"{line}\n" for line in lines)


def _mounts(machine: Machine) -> str:
    """Return the mounts, shorter paths first, as they were made."""
    rows = []
    for path, spec in sorted(machine.scenario.server.all("mount").items()):
        device = UNNAMED_DEVICE.get(spec.type, spec.type)
        if spec.device is not None:
            device = f"/dev/{spec.device}"
        rows.append(f"{device} {path} {spec.type} {_options(spec.params)} 0 0\n")
    rows += ["proc /proc proc rw 0 0\n", "sysfs /sys sysfs rw 0 0\n"]
    return "".join(rows)


def _options(params: Any) -> str:
    """Return the options that a mount shows: how it keeps atimes, and whether it is sync."""
    words = ["rw"]
    if getattr(params, "sync", False):
        words.append("sync")
    atime = getattr(params, "atime", "atime")
    return ",".join(words if atime == "atime" else [*words, atime])


def _filesystems(machine: Machine) -> str:
    found = {spec.type: spec.device for spec in machine.scenario.server.all("mount").values()}
    kinds = {"sysfs": None, "proc": None, **found}
    return "".join(f"{'nodev' if on is None else ''}\t{kind}\n" for kind, on in kinds.items())


def _partitions(machine: Machine) -> str:
    rows = [
        f"{device.stats.major:4d}  {device.stats.minor:7d} {device.capacity_sectors // 2:10d} "
        f"{device.name}\n"
        for device in machine.devices.values()
    ]
    return "major minor  #blocks  name\n\n" + "".join(rows)


# -- A process


def _of_task(
    task: Task, account: TaskAccount, stat: str, status: str, version: KernelVersion, tick_ns: int
) -> dict[str, str]:
    below = str(task.pid)
    files = {
        f"{below}/cmdline": "" if task.is_kthread else f"{task.comm}\0",
        f"{below}/stat": _stat(stat, version),
        f"{below}/status": _status(task, status, version),
        f"{below}/schedstat": _turns(task, account, version, tick_ns),
        f"{below}/wchan": _wchan(task, version),
    }
    if version >= COMM_SINCE:
        files[f"{below}/comm"] = f"{task.comm}\n"
    if version >= IO_SINCE:
        files[f"{below}/io"] = "".join(f"{name}: {n}\n" for name, n in _io(task, account))
    return files


def _wchan(task: Task, version: KernelVersion) -> str:
    """Return where it sleeps, without a line's end; 0 if it does not."""
    return kernel_name(task.wchan, version) if task.state_letter in "SD" and task.wchan else "0"


def _stat(text: str, version: KernelVersion) -> str:
    """Return stat with the fields that came after 2.6.16, all 0."""
    there = len(text.rpartition(")")[2].split()) + 2
    return text.rstrip("\n") + " 0" * (in_force(STAT_FIELDS, version) - there) + "\n"


def _status(task: Task, text: str, version: KernelVersion) -> str:
    """Return status with the thread group, which is the process, and the switches at the end."""
    lines = []
    for line in text.splitlines(keepends=True):
        if line.startswith("Pid:"):
            lines.append(f"Tgid:\t{task.pid}\n")
        lines.append(line)
        if line.startswith("PPid:"):
            lines.append("TracerPid:\t0\n")
    if version >= SWITCHES_SINCE:
        lines.append(f"voluntary_ctxt_switches:\t{task.nvcsw}\n")
        lines.append(f"nonvoluntary_ctxt_switches:\t{task.nivcsw}\n")
    return "".join(lines)


def _turns(task: Task, account: TaskAccount, version: KernelVersion, tick_ns: int) -> str:
    unit_ns = 1 if version >= SCHEDSTAT_IN_NS_SINCE else tick_ns
    ran_ns = task.utime_ns + task.stime_ns
    return f"{ran_ns // unit_ns} {account.run_delay_ns // unit_ns} {account.turns}\n"


def _io(task: Task, account: TaskAccount) -> Iterator[tuple[str, int]]:
    yield "rchar", account.rchar
    yield "wchar", account.wchar
    yield "syscr", account.syscr
    yield "syscw", account.syscw
    yield "read_bytes", account.read_bytes
    yield "write_bytes", task.write_bytes
    yield "cancelled_write_bytes", task.cancelled_write_bytes
