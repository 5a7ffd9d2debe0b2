"""Boots a server from its description, lets it run, and takes its readings.

Models: the order in which a machine comes up: clock, CPUs, memory, network; then its components,
each with its devices, mounts and limits (sim.component); kernel threads; programs. It is the only
place that puts parts together; it finds components and programs through the registry.
Linux counterpart: init/main.c (start_kernel, do_basic_setup: do_initcalls), /sbin/init.
Invariants: two machines of the same description and seed do the same, entry for entry; a reading
 of /proc changes nothing, but one of disks from 5.18 to 6.9, which counts io_ticks. `check()` holds
 at any moment between two calendar entries.
Left out: shutting down, hot plugging; servers that talk to each other.

Autogroups (sched.autogroup): each session is a group of its own, here each process of the scenario
with its children: a daemon calls setsid(). So nice counts among the processes of a session alone,
and a session of many tasks has no more than one of one.
"""

import functools
from collections.abc import Callable
from typing import Any, Final

import sim
from sim.block.blk_cgroup import BlkioCgroup
from sim.block.features import features as block_features
from sim.block.genhd import BlockDevice
from sim.block.queue import Disk
from sim.cgroup import allowed_cpus
from sim.component import Component
from sim.drivers.md.md import Array
from sim.engine import Calendar, Environment, Streams, Tracer
from sim.engine.garbage import rare_collections
from sim.fs.fs_writeback import start_writeback
from sim.fs.namei import Vfs
from sim.fs.proc.procfs import ProcFs
from sim.fs.proc.root import (
    Clock,
    create_cpu_files,
    create_disk_files,
    create_memory_files,
    create_process_files,
)
from sim.fs.proc.sys_cpu import render_cpu_files
from sim.fs.super import Inode
from sim.mm.address_space import AddressSpace
from sim.mm.filemap import fill_page_cache
from sim.mm.mm_init import mm_core_init
from sim.mm.params import PAGE_SIZE
from sim.mm.swapfile import Extents
from sim.mm.vmscan import start_kswapd
from sim.net.nic import NicParams
from sim.net.wiring import make_links, make_network
from sim.registry import lookup
from sim.results import ProcSample, Record, RunResult
from sim.scenario import Scenario, ServerSpec
from sim.sched.core import Sched
from sim.sched.init import clocks_of, cores_of, host_of, readings, sched_init
from sim.sched.loadavg import LoadAverage
from sim.sched.syscalls import POLICIES, SchedAttr
from sim.sched.task import Task
from sim.sched.task_group import TaskGroup
from sim.sched.version import kernel_version
from sim.syscall import Kernel, with_exits, with_isolation
from sim.user.program import ServerProgram
from sim.world import World

PROGRAMS_EXITED: Final = "programs_exited"  # the mark that [run] may wait for: none is left
BTIME_S: Final = 1_160_543_460  # 2006-10-11 05:11:00 UTC: when the scenarios' machines booted
AUTOGROUP: Final = "/autogroup-"  # no cgroup's name begins so
AUTOGROUP_SINCE: Final = (2, 6, 38)  # 5091faa449ee


class Machine:
    """One server and the world around it, at its present moment; and its host's other guests."""

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        *,
        trace: bool = False,
        beside: "Machine | None" = None,
    ) -> None:
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
        self._prepared: dict[str, Inode] = {}  # files that were there before the run
        self._warm: dict[str, tuple[AddressSpace, int]] = {}  # and their pages, of those cached
        self._start_kernel(server, beside)
        self.components: list[Component[Any]] = [
            lookup("component", name).cls(tables) for name, tables in server.components.items()
        ]
        self._do_initcalls(scenario)
        start_writeback(self.sched, self.vm)
        start_kswapd(self.vm)
        self._create_proc(server)
        self.kernel: Kernel = self._make_kernel(scenario)
        for component in self.components:
            component.start(self)
        self._start_programs(scenario)
        self._until_of, _, self._until = (scenario.run.until or "").rpartition(".")
        self._after_ns = scenario.run.after_ns
        self.end_ns = scenario.run.duration_ns
        self.neighbours = [
            Machine(other, self.streams.stream(f"neighbour.{name}").getrandbits(63), beside=self)
            for name, other in scenario.neighbours.items()
        ]

    def _start_kernel(self, server: ServerSpec, beside: "Machine | None") -> None:
        """Make what every machine has: CPUs, memory, the VFS, the network, system calls."""
        core = server.core
        hardware = {name: server.one(name) for name in ("cpufreq", "cpuidle", "guest", "smt")}
        self.sched: Sched = sched_init(
            self.calendar,
            server.cpus,
            self.version,
            core["sched"],
            self.tracer,
            self.streams,
            hardware,
            None if beside is None else host_of(beside.sched),
        )
        self.load = LoadAverage(self.sched)
        self.vm = mm_core_init(self.sched, core["vm"], server.memory_bytes)
        self.vm.programs.chance = self.streams.stream("vm.anon")
        self.vm.programs.on_oom_kill = self._mark_kill
        self._nic: NicParams = server.one("nic") or NicParams()
        isolated = with_isolation(core["syscall"], core["cpu"], self.version)
        costs = self._syscall = with_exits(isolated, self._nic)
        # CPU 0 serves all interrupts (no irqbalance), and wakes the tasks that wait for them.
        self.interrupt_ns: int = costs.interrupt_ns
        self.vfs = Vfs(core["vfs"], self.version)
        self.network = make_network(
            self.env,
            core["tcp"],
            self.tracer,
            self._nic,
            self.sched,
            costs.packet_interrupt_ns,
        )
        self.proc = ProcFs()
        self.disks: list[Disk] = []  # with a request queue
        self.devices: dict[str, BlockDevice] = {}  # all block devices, in the order of diskstats
        self.groups: dict[str, TaskGroup] = {}  # of tasks that compete as one
        self.blkcgs: dict[str, BlkioCgroup] = {}  # of tasks that share a disk by weight

    def _do_initcalls(self, scenario: Scenario) -> None:
        """Make the components; the scheduler knows all groups before there is a task."""
        for component in self.components:
            component.early_init(self)
        if self.sched.params.autogroup and self.version >= AUTOGROUP_SINCE:
            for process in scenario.processes.values():
                if process.runs == "server" and process.cgroup not in self.groups:
                    names = [AUTOGROUP + own for own in process.instances()]
                    self.groups |= {name: TaskGroup(name) for name in names}
        if self.groups:
            self.sched.add_groups(list(self.groups.values()))
        self.load.start()
        for component in self.components:
            component.init(self)

    # --- what components ask for

    def swap_file(self, path: str, pages: int) -> tuple[BlockDevice, Extents]:
        """Make a file that swap keeps open; return the device that it lies on, and where."""
        inode = self.vfs.prepare_file(path, pages * PAGE_SIZE)
        inode.count += 1
        assert inode.sb.device is not None, "checked when the scenario was read"
        return inode.sb.device, inode.op.get_blocks(inode, 0, pages)

    # --- /proc

    def _create_proc(self, server: ServerSpec) -> None:
        """Give /proc its counters, whole disks and partitions before volumes, as registered."""
        proc, sched, vm = self.proc, self.sched, self.vm
        hz = sched.params.hz
        clock = Clock(version=self.version, hz=hz, now=self.now, btime_s=BTIME_S)
        partitions = [part.name for disk in server.all("disk").values() for part in disk.partitions]
        devices = self.devices.values()
        for device in devices:
            device.stats.sample(block_features(self.version), sched.tick_ns)
        create_cpu_files(
            proc, clock, sched.cpu_times, sched, self.load, clocks_of(sched), cores_of(sched)
        )
        create_memory_files(proc, clock, vm, vm.swap.by_number)
        create_disk_files(
            proc,
            clock,
            [device.stats for device in devices],
            frozenset(partitions),
            [device for device in devices if isinstance(device, Array) and device.level],
        )
        create_process_files(proc, clock, sched, vm.programs.mms)
        proc.create_tree(functools.partial(render_cpu_files, sched))
        for component in self.components:
            proc.create_tree(component.files)

    def now(self) -> int:
        """Return simulated time, ns since boot."""
        return self.calendar.now

    # --- programs

    def _make_kernel(self, scenario: Scenario) -> Kernel:
        """Return what system calls act on."""
        on_last_exit = None
        if scenario.run.until == PROGRAMS_EXITED:
            on_last_exit = functools.partial(self.mark, "init", PROGRAMS_EXITED, 0)
        return Kernel(
            params=self._syscall,
            sched=self.sched,
            vm=self.vm,
            vfs=self.vfs,
            proc=self.proc,
            network=self.network,
            streams=self.streams,
            elevators=[disk.elevator for disk in self.disks],
            terms=self._terms(),
            cgroups=self._cgroups(),
            blkcgs=self.blkcgs,
            mark=self.mark,
            on_last_exit=on_last_exit,
        )

    def _cgroups(self) -> dict[str, str]:
        """Return the top control group of each process: memory and block I/O know no others."""
        return {
            own: process.cgroup.partition("/")[0]
            for process in self.scenario.processes.values()
            if process.cgroup
            for own in process.instances()
        }

    def _terms(self) -> dict[str, SchedAttr]:
        """Return on what terms each process competes, by the name it runs under; if not usual."""
        found: dict[str, SchedAttr] = {}
        usual = SchedAttr()
        cgroups = self.scenario.server.all("cgroup")
        for process in self.scenario.processes.values():
            if process.runs != "server":
                continue
            allowed = allowed_cpus(process.cpus, process.cgroup, cgroups)
            for own in process.instances():
                group = self.groups.get(process.cgroup or "", self.groups.get(AUTOGROUP + own))
                terms = SchedAttr(
                    policy=POLICIES[process.policy],
                    slice_ns=process.slice_ns or 0,
                    allowed=allowed,
                    group=group,
                )
                if terms != usual:
                    found[own] = terms
        return found

    def _start_programs(self, scenario: Scenario) -> None:
        """Start every process `count` times: tasks on the server, SimPy processes outside."""
        links = make_links(self.calendar, scenario.links, self._nic)
        for spec in scenario.processes.values():
            cls = lookup("program", spec.program).cls
            for own in spec.instances():
                program: Any = cls(spec.params)
                if spec.runs == "server":
                    program.name = own
                    self._install(program, warm=spec.warm)
                    self.kernel.start(own, spec.program, program.main, spec.nice)
                    continue
                assert spec.via is not None, "checked when the scenario was read"
                world = World(own, self.env, self.streams, self.network, links[spec.via], self.mark)
                self.env.process(program.main(world))
        fill_page_cache(self.vm, list(self._warm.values()))

    def _install(self, program: ServerProgram, *, warm: bool) -> None:
        """Make what a program's package made when it was installed."""
        for path in program.directories():
            self.vfs.prepare_directory(path)
        for path, size in program.files().items():
            if path not in self._prepared:
                self._prepared[path] = self.vfs.prepare_file(path, size)
            if warm:
                self._warm[path] = self._prepared[path].mapping, -(-size // PAGE_SIZE)

    def mark(self, comm: str, name: str, value: int | str) -> None:
        """Keep a program's record; one of them may be the beginning of the end of the run."""
        now = self.calendar.now
        self.records.append(Record(now, name, comm, value))
        if name == self._until and self._until_of in ("", comm):
            self.end_ns = min(self.end_ns, now + self._after_ns)

    def _mark_kill(self, task: Task, pages: int) -> None:
        """Keep an OOM kill among the results: a record of the program's, and the kernel's line."""
        self.mark(task.comm, "oom_kill", pages)
        kib = pages * (PAGE_SIZE // 1024)
        text = f"Out of memory: Killed process {task.pid} ({task.comm}), anon-rss:{kib}kB"
        self.mark("kernel", "dmesg", text)

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
            device.stats.check(self.calendar.now)
        for component in self.components:
            component.check()
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
        scenario=scenario.name,
        title=scenario.title,
        what_if=what_if,
        seed=seed,
        version=sim.__version__,
        samples=tuple(samples),
        records=tuple(machine.records),
    )
