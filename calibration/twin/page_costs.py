"""What the kernel of a twin pays for calls and pages, on its CPUs, with a page cache of its time.

Models: the CPU side of buffered bulk: copying, page cache, file system, handing over to the device.
Linux counterpart: mm/filemap.c, fs/iomap/buffered-io.c, fs/ext4/inode.c.
Invariants: what `iotwin record` measured on the host itself (costs.txt) stands; any other value is
that of a machine which was measured (calibration/validate/rigs.py); either may be divided by the
pages of a folio. A kernel as old as the model's defaults keeps these, but for what was measured.
Left out: folios of other sizes; huge pages of tmpfs.

A page is copied out of or into memory that the caches do not hold: the data of bulk came from a
device, or go to one. So the cold one of the two measured copies counts.

Theory. Copying is paid by the byte. All else (allocating, the tree, mapping a block, tagging it for
writeback, putting it into a bio) is paid by the folio. Writes of XFS make large folios since Linux
6.6, those of ext4 since 6.16: as large as the piece that the program hands over.
By hand: 850 MB/s are 207,000 pages a second. By the page, 0.4 us for the copy and 0.2 + 0.7 + 0.7 +
0.5 us for the rest keep half a CPU busy; a burst of 300 MB takes 90 ms to be handed over, while
a device of 4 GB/s waits for it and looks busy. By folios of 64 pages it is 0.43 us a page, and the
burst is with the device after 1.4 ms: its requests queue, as they were recorded to.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from calibration.record import COSTS
from calibration.twin.sheet import Sheet
from calibration.validate.rigs import LOOP
from sim.scenario.omissions import LARGE_FOLIOS, NEW_MACHINES_SINCE
from sim.sched.version import kernel_version
from sim.units import format_quantity, parse_quantity

# Kernels from here on run on CPUs of 2018 and later: what a page costs there was measured on one of
# 3 GHz; the kernel's defaults are of a server of 2005.
NEW_CPUS_SINCE: Final = (5, 0)
NEW_CPUS: Final = "assumed: a CPU of about 3 GHz; there, "
COPY: Final = "machine.vfs.page_copy"
FOLIO_PAGES: Final = 64  # assumed: programs write bulk in pieces of 256 KiB to 1 MiB
# What costs.txt has -> the keys of [machine] that it is divided among.
MEASURED: Final[Mapping[str, tuple[tuple[str, float], ...]]] = {
    "syscall_ns": (("syscall.entry", 1.0),),
    "page_copy_cold_ns": (("vfs.page_copy", 1.0),),
    "page_add_ns": (("vm.page_add", 1.0),),
    "context_switch_ns": (("sched.context_switch", 1.0),),
    "fork_ns": (("syscall.fork", 1.0),),
    # Between them as the defaults have it: 0.5 ms of copy on write, 0.2 ms of exit.
    "fork_child_ns": (("syscall.fork_child", 5 / 7), ("syscall.exit", 2 / 7)),
}
_OWN: Final = f"recording: measured on the host: {COSTS}, "
_FOLIO: Final = "assumed: once for a folio of 256 KiB; a page, "
_MACHINE: Final = ("vfs.page_copy", "vm.page_add", "vfs.direct_page")
_PAGE_WRITE: Final = ("0.5 us", "the default")
_MOUNT: Final = ("operation", "block", "buffer", "handle", "transaction")


def put_costs(
    sheet: Sheet,
    kernel: str,
    systems: Mapping[str, str],
    measured: Mapping[str, float],
    *,
    bulk: bool,
) -> None:
    """Put costs into a sheet; `systems`: mount point -> file system; `bulk`: megabytes at a time.

    `measured` is what costs.txt says of the host, ns. For the rest, a machine as old as the model's
    defaults is left alone.
    """
    version = kernel_version(kernel)
    is_new = version >= NEW_CPUS_SINCE
    folios = bulk and has_large_folios(version, systems.values())
    costs = (_new_cpus(LOOP.costs, _MACHINE) if is_new else {}) | _own_costs(measured)
    for path, (value, source) in costs.items():
        part, key = path.split(".")
        once = folios and key == "page_add"
        _put(sheet, ("machine", part), key, value, source, once=once)
    _accept(sheet, version)
    if not is_new:
        return
    if folios:
        value, source = _PAGE_WRITE
        _put(sheet, ("machine", "vm"), "page_write", value, NEW_CPUS + source, once=True)
    for place, kind in systems.items():
        costs = _new_cpus(LOOP.xfs if kind == "xfs" else LOOP.ext3, _MOUNT)
        for key, (value, source) in costs.items():
            section = ("machine", "mount", place)
            _put(sheet, section, key, value, source, once=folios and key == "block")


def _new_cpus(
    costs: Mapping[str, tuple[str, str]], keys: Iterable[str]
) -> dict[str, tuple[str, str]]:
    """Return key -> (value, source) of those that a machine like it was measured at."""
    return {key: (costs[key][0], NEW_CPUS + costs[key][1]) for key in keys if key in costs}


def _own_costs(measured: Mapping[str, float]) -> dict[str, tuple[str, str]]:
    """Return key -> (value, source) of what was measured on the host."""
    return {
        path: (format_quantity(round(measured[name] * share), "time_ns"), _OWN + name)
        for name, parts in MEASURED.items()
        if measured.get(name)
        for path, share in parts
    }


def _accept(sheet: Sheet, version: tuple[int, ...]) -> None:
    """Accept what the twin's costs, which are measured, estimated or fitted, stand for."""
    if version >= NEW_MACHINES_SINCE:
        names = ("cpu-generation", "large-folios")
        sheet.put(("machine",), "accepts", names, "derived: costs are estimated from the recording")


def has_large_folios(version: tuple[int, ...], systems: Iterable[str]) -> bool:
    """Return whether every file system writes through large folios in this release."""
    kinds = list(systems)
    known = [LARGE_FOLIOS[kind] for kind in kinds if kind in LARGE_FOLIOS]
    return bool(kinds) and len(known) == len(kinds) and all(version >= since for since in known)


def _put(
    sheet: Sheet, section: tuple[str, ...], key: str, value: str, source: str, *, once: bool
) -> None:
    """Put the cost of a page; `once`: paid by the folio."""
    if not once:
        sheet.put(section, key, value, source)
        return
    shared_ns = round(float(parse_quantity(value, "time_ns")) / FOLIO_PAGES)
    said = source.removeprefix(NEW_CPUS)
    sheet.put(section, key, format_quantity(shared_ns, "time_ns"), f"{_FOLIO}{value}: {said}")
