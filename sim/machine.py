"""Boots a server from its description, lets it run, and takes its readings.

Models: the order in which a machine comes up: clock, CPUs, memory, disks, arrays, volumes, files,
kernel threads, network, programs. It is the only place that puts parts together; it finds device
models, elevators, file systems and programs through the registry.
Linux counterpart: init/main.c (start_kernel, do_basic_setup), /sbin/init.
Invariants: two machines of the same description and seed do the same, entry for entry; a reading
 of /proc changes nothing. `check()` holds at any moment between two calendar entries.
Left out: shutting down, hot plugging; servers that talk to each other.
"""

import functools
import itertools
from collections.abc import Callable
from typing import Any

import sim
from sim.block.device import BlockDevice
from sim.block.driver import Driver
from sim.block.genhd import DiskStats
from sim.block.partition import FULL_ROW_SINCE, Partition
from sim.block.queue import Disk
from sim.block.throttle import behind_limits
from sim.cpu_setup import add_groups, sys_files, terms_of
from sim.drivers.md.array import MISSING, Array, ArrayContext
from sim.drivers.md.dm_snap import COW, REAL
from sim.drivers.md.linear import DmLinear
from sim.drivers.md.lvm import Lvm, minor_of
from sim.engine import Calendar, Environment, Streams, Tracer
from sim.engine.garbage import rare_collections
from sim.fs.block_dev import DevTmpfs
from sim.fs.fs_writeback import start_writeback
from sim.fs.namei import Vfs
from sim.fs.proc import ProcFs
from sim.fs.super import MountContext, VfsParams
from sim.loop_setup import make_loop
from sim.memory_setup import add_memory, make_zrams
from sim.mm.backing_dev import BackingDevInfo
from sim.mm.kswapd import start_kswapd
from sim.mm.params import VmParams
from sim.mm.vmstat import Vm
from sim.net import TcpParams
from sim.net.nic import NicParams
from sim.net.wiring import make_links, make_network
from sim.registry import lookup
from sim.results import ProcSample, Record, RunResult
from sim.scenario import ArraySpec, DiskSpec, Scenario, ServerSpec, VolumeSpec
from sim.scenario.mounts import by_depth
from sim.sched.core import Sched
from sim.sched.hardware import clocks_of, cores_of, host_of, make_sched, readings
from sim.sched.irq import InterruptLine
from sim.sched.loadavg import LoadAverage
from sim.sched.params import SchedParams
from sim.sched.version import kernel_version
from sim.syscall import Kernel
from sim.syscall_params import SyscallParams, with_exits
from sim.user.program import ServerProgram
from sim.world import World

SECTOR = 512
PROGRAMS_EXITED = "programs_exited"  # the mark that [run] may wait for: no program is left
SD_MAJOR = 8  # include/linux/major.h: SCSI_DISK0_MAJOR, 16 minors a disk
DM_MAJOR = 253  # the first dynamic major (drivers/md/dm.c: register_blkdev(0))
BTIME_S = 1_160_543_460  # 2006-10-11 05:11:00 UTC: when the machines of the scenarios booted


class Machine:
    """One server and the world around it, at its present moment; and its host's other guests."""

    def __init__(
        self, scenario: Scenario, seed: int, *, trace: bool = False,
        beside: "Machine | None" = None,
    ) -> None:  # fmt: skip
        """Boot a server; `beside` is the guest on whose host it is one too."""
        server = scenario.server
        self.scenario = scenario
        self.version = kernel_version(server.kernel)
        self.calendar: Calendar = beside.calendar if beside else Calendar()
        self.env: Environment = beside.env if beside else Environment(calendar=self.calendar)
        self.streams = Streams(seed)
        self.tracer = Tracer(self.calendar)
        if trace:
            self.tracer.start()
        self.records: list[Record] = []
        self._prepared: set[str] = set()  # files that were there before the run
        self._sched_params = _tunables(server, "sched", SchedParams)
        self.sched: Sched = make_sched(
            self.calendar, server.cpus, self.version, self._sched_params, self.tracer,
            self.streams, server.tunables, None if beside is None else host_of(beside.sched),
        )  # fmt: skip
        self.groups = add_groups(scenario, self.sched)
        self.load = LoadAverage(self.sched)
        self.load.start()
        self.vm = Vm(
            self.calendar, _tunables(server, "vm", VmParams), memory_bytes=server.memory_bytes,
            nr_cpus=server.cpus, kernel=self.version, tracer=self.tracer,
        )  # fmt: skip
        self._nic: NicParams = _tunables(server, "nic", NicParams)
        syscall = with_exits(_tunables(server, "syscall", SyscallParams), self._nic)
        # CPU 0 serves all interrupts (no irqbalance), and wakes the tasks that wait for them.
        self._disk_line = InterruptLine(self.sched, 0, syscall.interrupt_ns)
        self.disks: list[Disk] = []
        self._shared_devices: dict[str, object] = {}  # what several of them have in common
        self.devices: dict[str, BlockDevice] = {}
        self._lvm = Lvm(self.sched, self.version, functools.partial(self.mark, "kernel", "dmesg"))
        self._bdis: dict[str, BackingDevInfo] = {}
        self.vfs = Vfs(_tunables(server, "vfs", VfsParams), self.version)
        self.network = make_network(
            self.env, _tunables(server, "tcp", TcpParams), self.tracer, self._nic, self.sched,
            syscall.packet_interrupt_ns,
        )  # fmt: skip
        self._add_disks(server)
        for number, loop in enumerate(server.loops.values()):
            disk = make_loop(loop, number, self.sched, self.vfs, self.streams, self.tracer)
            self.disks.append(disk)
            self.devices[loop.name] = disk
        self.devices |= make_zrams(server, self.vm)
        self._mount_all(server)
        for loop in server.loops.values():
            self.vfs.prepare_file(loop.file, loop.size_bytes)
        start_writeback(self.sched, self.vm)
        start_kswapd(self.sched, self.vm)
        self.proc = self._make_proc(server)
        parts = (self.sched, self.vfs, self.proc, self.network, self.streams)
        self.kernel = Kernel(syscall, *parts, self.mark)
        self.kernel.terms = terms_of(scenario, self.groups)
        add_memory(scenario, self.kernel, self.vm, self.devices)
        if scenario.run.until == PROGRAMS_EXITED:
            self.kernel.on_last_exit = functools.partial(self.mark, "init", PROGRAMS_EXITED, 0)
        self.kernel.elevators = [disk.elevator for disk in self.disks]
        self._start_programs(scenario)
        self._until_of, _, self._until = (scenario.run.until or "").rpartition(".")
        self._after_ns = scenario.run.after_ns
        self.end_ns = scenario.run.duration_ns
        self.neighbours = [
            Machine(other, self.streams.stream(f"neighbour.{name}").getrandbits(63), beside=self)
            for name, other in scenario.neighbours.items()
        ]

    # --- disks and volumes

    def _add_disks(self, server: ServerSpec) -> None:
        """Attach disks, partitions, arrays and volumes, in the order of the description."""
        for index, spec in enumerate(server.disks.values()):
            disk = self._make_disk(spec, index)
            self.disks.append(disk)
            device = self.devices[spec.name] = behind_limits(disk, spec.throttle, self.sched)
            for number, part in enumerate(spec.partitions, start=1):
                self.devices[part.name] = Partition(
                    DiskStats(part.name, SD_MAJOR, 16 * index + number), device,
                    part.start_bytes // SECTOR, part.size_bytes // SECTOR,
                    self.version >= FULL_ROW_SINCE,
                )  # fmt: skip
        for number, array in enumerate(server.arrays.values()):
            self.devices[array.name] = self._make_array(array, number)
        origins = dict.fromkeys(spec.snapshot_of for spec in server.snapshots.values())
        for number, volume in enumerate(server.volumes.values()):
            if volume.name in origins:
                self._add_origin(server, volume, number)
            else:
                self.devices[volume.name] = self._make_volume(volume, number)

    def _make_disk(self, spec: DiskSpec, index: int) -> Disk:
        """Build the device, its elevator and its queue."""
        assert spec.scheduler is not None, "the scenario chose the kernel's default"
        driver = self._make_driver(spec)
        elevator = lookup("elevator", spec.scheduler).cls(spec.elevator_params)
        disk = Disk(
            DiskStats(spec.name, SD_MAJOR, 16 * index), self.calendar, self.streams, self.tracer,
            driver, elevator, spec.queue,
        )  # fmt: skip
        if not driver.wire(self._disk_line.serve):
            disk.on_interrupt = self._disk_line.serve
        disk.ioprio = self.sched.processes.ioprio
        disk.start(self.sched)
        return disk

    def _make_array(self, spec: ArraySpec, number: int) -> Array:
        """Build an array; its minor is the number in its name where that has one."""
        cls: Any = lookup("array", spec.level).cls
        digits = spec.name.lstrip("abcdefghijklmnopqrstuvwxyz-_")
        minor = int(digits) if digits.isdigit() else number
        devices = [self.devices[name] for name in spec.devices if name != MISSING]
        missing = frozenset(n for n, name in enumerate(spec.devices) if name == MISSING)
        rebuilding = getattr(spec.params, "rebuilding", None)
        context = ArrayContext(
            DiskStats(spec.name, cls.major, minor), self.sched, self.version, devices, missing,
            None if rebuilding is None else spec.devices.index(rebuilding),
        )  # fmt: skip
        array: Array = cls(spec.params, context)
        return array

    def _make_driver(self, spec: DiskSpec) -> Driver:
        """Build the device, behind its front end if it has one."""
        driver: Driver = lookup("device", spec.device).cls(spec.params)
        if spec.frontend is not None:
            driver = lookup("frontend", spec.frontend).cls(spec.frontend_params, driver)
        driver.share(self._shared_devices)
        return driver

    def _make_volume(self, spec: VolumeSpec, number: int) -> DmLinear:
        """Build a linear volume; its minor is the number in its name where that has one."""
        minor = minor_of(spec.name, number)
        return self._make_linear(spec.name, minor, spec.on, spec.offset_bytes, spec.size_bytes)

    def _make_linear(
        self, name: str, minor: int, on: str, offset_bytes: int, size_bytes: int
    ) -> DmLinear:
        return DmLinear(
            DiskStats(name, DM_MAJOR, minor), self.calendar, self.devices[on],
            offset_bytes // SECTOR, size_bytes // SECTOR, self.version,
        )  # fmt: skip

    def _add_origin(self, server: ServerSpec, spec: VolumeSpec, number: int) -> None:
        """Build a volume with snapshots, these, and the layers below them, as LVM2 does."""
        name = spec.name
        minor = itertools.count(self._free_minor(server))
        real = self._make_linear(
            f"{name}{REAL}", next(minor), spec.on, spec.offset_bytes, spec.size_bytes
        )
        snapshots = []
        layers: list[BlockDevice] = [real]
        for own in server.snapshots.values():
            if own.snapshot_of == name:
                assert own.offset_bytes is not None, "chosen when the scenario was read"
                cow_name = f"{own.name}{COW}"
                cow = self._make_linear(
                    cow_name, next(minor), own.on, own.offset_bytes, own.size_bytes
                )
                snapshot = self._lvm.snapshot(
                    DiskStats(own.name, DM_MAJOR, next(minor)), real, cow,
                    own.chunk_bytes // SECTOR, -(-own.copied_bytes // own.chunk_bytes),
                    own.in_order,
                )  # fmt: skip
                snapshots.append(snapshot)
                layers += [snapshot, cow]
        stats = DiskStats(name, DM_MAJOR, minor_of(name, number))
        self.devices[name] = self._lvm.origin(stats, real, snapshots)
        self.devices |= {layer.name: layer for layer in layers}

    def _free_minor(self, server: ServerSpec) -> int:
        """Return the lowest minor above those of all volumes."""
        minors = [minor_of(name, number) for number, name in enumerate(server.volumes)]
        minors += [d.stats.minor for d in self.devices.values() if d.stats.major == DM_MAJOR]
        return max(minors) + 1

    # --- file systems

    def _mount_all(self, server: ServerSpec) -> None:
        """Mount file systems, shorter paths first, making the directories the others lie on."""
        for path, spec in sorted(server.mounts.items(), key=by_depth):
            context = MountContext(
                vm=self.vm, scheduler=self.sched, network=self.network,
                random=self.streams.stream(f"{path}.allocation"),
                threads=self.streams.stream(f"{path}.threads"),
            )  # fmt: skip
            if spec.device is not None:
                context.device = self.devices[spec.device]
                context.bdi = self._backing_dev(spec.device)
            if spec.journal_device is not None:
                context.journal_device = self.devices[spec.journal_device]
            self.vfs.mount(path, lookup("filesystem", spec.type).cls(spec.params, context))
        if "/dev" not in server.mounts:
            chance = self.streams.stream("/dev")
            context = MountContext(vm=self.vm, scheduler=self.sched, random=chance)
            self.vfs.mount("/dev", DevTmpfs(context, self.devices.values()))

    def _backing_dev(self, name: str) -> BackingDevInfo:
        """Return the backing device that writeback knows a disk, partition or volume by."""
        found = self._bdis.get(name)
        if found is None:
            found = self._bdis[name] = self.vm.add_bdi(BackingDevInfo(name, self.devices[name]))
        return found

    # --- /proc

    def _make_proc(self, server: ServerSpec) -> ProcFs:
        """Give /proc its counters, whole disks and partitions before volumes, as registered."""
        names = [part.name for disk in server.disks.values() for part in disk.partitions]
        return ProcFs(
            release=server.kernel, hz=self._sched_params.hz, now=self.now, boot_ns=0,
            btime_s=BTIME_S, cpus=self.sched.cpu_times, system=self.sched, load=self.load,
            vm=self.vm, swaps=self.vm.swap.by_number, partitions=frozenset(names),
            arrays=[one for one in self.devices.values() if isinstance(one, Array) and one.level],
            clocks_khz=clocks_of(self.sched), cores=cores_of(self.sched), refresh=self._refresh,
            cpu_files=functools.partial(sys_files, server, self.sched, self.groups, self.vm),
            disks=[device.stats for device in self.devices.values()],
        )  # fmt: skip

    def _refresh(self) -> None:
        """Bring the counters that are integrals up to now."""
        self.sched.update()
        self.vm.update()

    def now(self) -> int:
        """Return simulated time, ns since boot."""
        return self.calendar.now

    # --- programs

    def _start_programs(self, scenario: Scenario) -> None:
        """Start every process `count` times: tasks on the server, SimPy processes outside."""
        links = make_links(self.calendar, scenario.links, self._nic)
        for spec in scenario.processes.values():
            cls = lookup("program", spec.program).cls
            for own in spec.instances():
                program: Any = cls(spec.params)
                if spec.runs == "server":
                    program.name = own
                    self._install(program)
                    self.kernel.start(own, spec.program, program.main, spec.nice)
                    continue
                assert spec.via is not None, "checked when the scenario was read"
                world = World(own, self.env, self.streams, self.network, links[spec.via], self.mark)
                self.env.process(program.main(world))

    def _install(self, program: ServerProgram) -> None:
        """Make what a program's package made when it was installed."""
        for path in program.directories():
            self.vfs.prepare_directory(path)
        for path, size in program.files().items():
            if path not in self._prepared:
                self._prepared.add(path)
                self.vfs.prepare_file(path, size)

    def mark(self, comm: str, name: str, value: int | str) -> None:
        """Keep a program's record; one of them may be the beginning of the end of the run."""
        now = self.calendar.now
        self.records.append(Record(now, name, comm, value))
        if name == self._until and self._until_of in ("", comm):
            self.end_ns = min(self.end_ns, now + self._after_ns)

    # --- running

    def run_until(self, when_ns: int) -> None:
        """Let everything up to and including `when_ns` happen."""
        with rare_collections():
            self.calendar.run_until(when_ns)

    def read_proc(self) -> ProcSample:
        """Return what every file of /proc that the tools need says now."""
        return ProcSample(self.calendar.now, self.proc.snapshot())

    def check(self) -> None:
        """Assert what must always hold: nothing lost between layers, CPU states sum to the time."""
        self.vm.check()
        for disk in self.disks:
            disk.check()
        for device in self.devices.values():
            device.stats.check()
        self._lvm.check()
        for cpu in self.sched.cpu_times:
            assert cpu.total_ns() == self.calendar.now
        for path, fs in self.vfs.mounts:
            assert not (mistakes := fs.check()), f"{path or '/'}: {mistakes}"
        for neighbour in self.neighbours:
            neighbour.check()


def simulate(
    scenario: Scenario,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
    watch: Callable[[Machine], None] | None = None,
) -> RunResult:
    """Run one replication: boot, read /proc after each whole interval, stop as the scenario says.

    `progress` is told simulated ns done and at most needed; `watch` gets the booted machine, to
    trace it. Raise AssertionError if at the end something is inconsistent: a result that cannot be
    trusted is none.
    """
    with rare_collections():
        machine = Machine(scenario, seed)
        if watch is not None:
            watch(machine)
        samples = [machine.read_proc()]
        while machine.calendar.now < machine.end_ns:
            due_ns = machine.calendar.now + scenario.measure.interval_ns
            machine.run_until(min(due_ns, scenario.run.duration_ns))
            if machine.calendar.now < due_ns:
                break  # A reading now would be of a shorter interval than all others.
            samples.append(machine.read_proc())
            for name, value in readings(machine.sched):
                machine.mark("ps", name, value)
            if progress is not None:
                progress(machine.calendar.now, machine.end_ns)
        machine.check()
    what_if = scenario.what_if.name if scenario.what_if else None
    return RunResult(
        scenario=scenario.name, title=scenario.title, what_if=what_if, seed=seed,
        version=sim.__version__, samples=tuple(samples), records=tuple(machine.records),
    )  # fmt: skip


def _tunables(server: ServerSpec, name: str, cls: Any) -> Any:
    """Return the scenario's parameters of a kernel part, or that part's defaults."""
    return server.tunables.get(name) or cls()
