"""Read [machine.zram.NAME] and look at [machine.zswap]: swap in compressed memory.

Models: modprobe zram, what is written to disksize, comp_algorithm and mem_limit, mkswap, swapon -p.
Linux counterpart: drivers/block/zram/zram_drv.c (disksize_store and its like).
Invariants: a device is called zram and a number; the release has zram and its algorithm.
Left out: zram without swap on it.
"""

import re
from typing import Final

from sim.mm.compressors import COMPRESSORS
from sim.mm.zswap_params import SINCE as ZSWAP_SINCE
from sim.scenario.errors import unknown
from sim.scenario.layers import Table
from sim.scenario.reading import Reading
from sim.scenario.spec import ZramSpec
from sim.sched.version import KernelVersion, numbers

SINCE: Final = (3, 14)  # out of staging
Z3FOLD_SINCE: Final = (4, 8)
_NAME: Final = re.compile(r"zram\d+")


def read_zrams(
    reading: Reading, machine: Table, kernel: KernelVersion | None
) -> dict[str, ZramSpec]:
    """Return the devices in order."""
    found = {}
    for name, table, path in reading.named_tables(machine, ("machine",), "zram"):
        [values] = reading.values(table, path, [ZramSpec])
        if not _NAME.fullmatch(name):
            reading.error(table.place, f"zram device '{name}'", allowed="zram0, zram1, ...")
        if kernel is not None and kernel < SINCE:
            reading.error(
                table.place, f"Linux {numbers(kernel)} has no zram", allowed="3.14 and later"
            )
        if values is not None:
            found[name] = ZramSpec(**values, name=name)
            _check_algorithm(reading, table, "algorithm", kernel)
    return found


def check_zswap(reading: Reading, machine: Table, kernel: KernelVersion | None) -> None:
    """Note zswap, or a compressor or zpool of it, that the release does not have."""
    table = machine.table("zswap")
    if table is None or kernel is None:
        return
    if kernel < ZSWAP_SINCE:
        reading.error(
            table.place, f"Linux {numbers(kernel)} has no zswap", allowed="3.11 and later"
        )
        return
    _check_algorithm(reading, table, "compressor", kernel)
    leaf = table.leaf("zpool")
    if leaf is not None and leaf.value == "z3fold" and kernel < Z3FOLD_SINCE:
        reading.error(leaf.at, f"Linux {numbers(kernel)} has no z3fold", allowed="zbud, zsmalloc")


def _check_algorithm(
    reading: Reading, table: Table, key: str, kernel: KernelVersion | None
) -> None:
    """Note an algorithm that nobody, or not this release, knows."""
    leaf = table.leaf(key)
    if leaf is None or kernel is None:
        return
    known = [name for name, row in COMPRESSORS.items() if row.since <= kernel]
    if leaf.value not in known:
        reading.problems.append(unknown(leaf.at, key, str(leaf.value), known))
