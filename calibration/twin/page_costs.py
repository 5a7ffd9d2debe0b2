"""What the kernel of a twin pays for a page, on CPUs and with a page cache of its time.

Models: the CPU side of buffered bulk: copying, page cache, file system, handing over to the device.
Linux counterpart: mm/filemap.c, fs/iomap/buffered-io.c, fs/ext4/inode.c.
Invariants: a value is that of a machine which was measured (calibration/validate/rigs.py), or that
divided by the pages of a folio; a kernel as old as the model's defaults keeps these.
Left out: folios of other sizes; huge pages of tmpfs.

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

from calibration.twin.sheet import Sheet
from calibration.validate.rigs import LOOP
from sim.sched.version import kernel_version
from sim.units import format_quantity, parse_quantity

# Kernels from here on run on CPUs of 2018 and later: what a page costs there was measured on one of
# 3 GHz; the kernel's defaults are of a server of 2005.
NEW_CPUS_SINCE: Final = (5, 0)
NEW_CPUS: Final = "assumed: a CPU of about 3 GHz; there, "
COPY: Final = "machine.vfs.page_copy"
COPY_NS: Final = parse_quantity(LOOP.costs["vfs.page_copy"][0], "time_ns")
FOLIO_PAGES: Final = 64  # assumed: programs write bulk in pieces of 256 KiB to 1 MiB
# file system -> release whose buffered writes make large folios
LARGE_FOLIOS: Final[Mapping[str, tuple[int, ...]]] = {"ext4": (6, 16), "xfs": (6, 6)}
_FOLIO: Final = "assumed: once for a folio of 256 KiB; a page, "
_MACHINE: Final = ("vfs.page_copy", "vm.page_add", "vfs.direct_page")
_PAGE_WRITE: Final = ("0.5 us", "the default")
_MOUNT: Final = ("operation", "block", "buffer", "handle", "transaction")


def put_page_costs(sheet: Sheet, kernel: str, systems: Mapping[str, str], *, bulk: bool) -> None:
    """Put costs into a sheet; `systems`: mount point -> file system; `bulk`: megabytes at a time.

    A machine as old as the model's defaults is left alone.
    """
    version = kernel_version(kernel)
    if version < NEW_CPUS_SINCE:
        return
    folios = bulk and has_large_folios(version, systems.values())
    for path in _MACHINE:
        part, key = path.split(".")
        value, source = LOOP.costs[path]
        once = folios and key == "page_add"
        _put(sheet, ("machine", part), key, value, source, once=once)
    if folios:
        _put(sheet, ("machine", "vm"), "page_write", *_PAGE_WRITE, once=True)
    for place, kind in systems.items():
        costs = LOOP.xfs if kind == "xfs" else LOOP.ext3
        for key in (key for key in _MOUNT if key in costs):
            section = ("machine", "mount", place)
            _put(sheet, section, key, *costs[key], once=folios and key == "block")


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
        sheet.put(section, key, value, NEW_CPUS + source)
        return
    shared_ns = round(float(parse_quantity(value, "time_ns")) / FOLIO_PAGES)
    sheet.put(section, key, format_quantity(shared_ns, "time_ns"), f"{_FOLIO}{value}: {source}")
