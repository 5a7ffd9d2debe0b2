"""Sets up a booted machine's memory: swap on, memory cgroups, a record of each OOM kill.

Models: what boot scripts do once disks and file systems are there (swapon -a, cgroup files).
Linux counterpart: sys_swapon (mm/swapfile.c), the files of the memory controller.
Invariants: a swap file is there in full before the run; areas are turned on in the order described.
Left out: turning swap on or off in a run.
"""

from collections.abc import Callable, Mapping
from functools import partial

from sim.block.bio import SECTOR
from sim.block.device import BlockDevice
from sim.block.genhd import DiskStats
from sim.fs.namei import Vfs
from sim.mm.backing_dev import BackingDevInfo
from sim.mm.bdi_params import BdiParams
from sim.mm.compressors import compressor_of
from sim.mm.dirty_limits import dirty_limits
from sim.mm.memcontrol import MemCgroup
from sim.mm.params import PAGE_SIZE
from sim.mm.vmstat import Vm
from sim.mm.zram import Zram
from sim.mm.zswap import Zswap
from sim.mm.zswap_params import ZswapParams
from sim.scenario import Scenario, ServerSpec, SwapSpec
from sim.sched.task import Task
from sim.syscall import Kernel

ZRAM_MAJOR = 252  # register_blkdev(0): the first dynamic one beside device mapper's 253
Mark = Callable[[str, str, int | str], None]
Extents = list[tuple[int, int]]  # first page of a device (of 4 KiB), pages


def add_memory(
    scenario: Scenario, kernel: Kernel, vm: Vm, devices: Mapping[str, BlockDevice]
) -> None:
    """Give the kernel its memory: turn swap on, make the cgroups, have OOM kills marked."""
    server = scenario.server
    kernel.vm = vm
    vm.anon_chance = kernel.streams.stream("vm.anon")
    vm.on_oom_kill = partial(_mark_kill, kernel.mark)
    zswap = server.tunables.get("zswap")
    if isinstance(zswap, ZswapParams):
        vm.swap.zswap = Zswap(vm, zswap)
    for spec in server.swaps.values():
        device, extents = _place_of(spec, kernel.vfs, devices)
        path = f"/dev/{spec.device}" if spec.file is None else spec.file
        device.hold()
        vm.swap.swapon(path, device, extents, spec.priority, spec.file is None)
    for zram in server.zrams.values():
        own = devices[zram.name]
        assert isinstance(own, Zram)
        vm.swap.swapon(f"/dev/{zram.name}", own, [(0, own.usable_pages())], zram.priority, True)
    for name, group in server.cgroups.items():
        if group.memory_bytes is None:
            continue
        swap_pages = None if group.swap_bytes is None else group.swap_bytes // PAGE_SIZE
        vm.memcgs[name] = MemCgroup(
            vm, name, group.memory_bytes // PAGE_SIZE, swap_pages, group.version
        )
    for bdi in vm.bdis:
        if bdi.name in server.bdis:
            _limit_bdi(vm, bdi, server.bdis[bdi.name])
    for process in scenario.processes.values():
        top = (process.cgroup or "").partition("/")[0]  # Memory is limited there only.
        if top in vm.memcgs:
            kernel.cgroups |= dict.fromkeys(process.instances(), top)


def _limit_bdi(vm: Vm, bdi: BackingDevInfo, params: BdiParams) -> None:
    """Write a device's share into sysfs (bdi_set_max_ratio and its like)."""
    bdi.min_share = params.min_ratio / 100
    bdi.max_share = params.max_ratio / 100
    if params.max_bytes:
        bdi.max_share = min(params.max_bytes / (dirty_limits(vm)[1] * PAGE_SIZE), 1.0)
    bdi.strict_limit = params.strict_limit


def make_zrams(server: ServerSpec, vm: Vm) -> dict[str, Zram]:
    """Return the devices of compressed memory by name."""
    found = {}
    for spec in server.zrams.values():
        compressor = compressor_of(
            spec.algorithm, spec.compress_ns, spec.decompress_ns, spec.ratio
        )  # fmt: skip
        stats = DiskStats(spec.name, ZRAM_MAJOR, int(spec.name.removeprefix("zram")))
        found[spec.name] = Zram(
            vm, stats, spec.size_bytes // PAGE_SIZE, compressor, spec.loss,
            spec.mem_limit_bytes,
        )  # fmt: skip
    return found


def _place_of(
    spec: SwapSpec, vfs: Vfs, devices: Mapping[str, BlockDevice]
) -> tuple[BlockDevice, Extents]:
    """Return where a swap area lies."""
    if spec.file is None:
        device = devices[str(spec.device)]
        whole = device.capacity_sectors * SECTOR
        size = whole if spec.size_bytes is None else min(spec.size_bytes, whole)
        return device, [(0, size // PAGE_SIZE)]
    assert spec.size_bytes is not None, "checked when the scenario was read"
    inode = vfs.prepare_file(spec.file, spec.size_bytes)
    inode.count += 1  # swapon keeps it open.
    assert inode.sb.device is not None, "checked when the scenario was read"
    return inode.sb.device, inode.sb.get_blocks(inode, 0, spec.size_bytes // PAGE_SIZE)


def _mark_kill(mark: Mark, task: Task, pages: int) -> None:
    """Keep an OOM kill among the results: a record of the program's, and the kernel's line."""
    mark(task.comm, "oom_kill", pages)
    kib = pages * (PAGE_SIZE // 1024)
    text = f"Out of memory: Killed process {task.pid} ({task.comm}), anon-rss:{kib}kB"
    mark("kernel", "dmesg", text)
