"""Front ends of disks: what a scenario says of them, and how they limit a request queue.

Models: `frontend = "NAME"` and `front.KEY` of a disk; the limits on segments and length that the
front end's driver sets for the queue (blk_queue_max_segments, blk_queue_max_hw_sectors).
Linux counterpart: blkif_set_queue_limits, drivers/block/xen-blkfront.c.
Invariants: no queue gets longer requests than its front end takes; `iotwin params` lists the limits
 with the front end as their source.
Left out: front ends of arrays and volumes: these are made of disks that have them.
"""

from typing import Final

from sim.block.limits import QueueParams
from sim.drivers.frontend import FrontendParams
from sim.param import Param, ParamError, params_of
from sim.scenario.layers import Layer, Leaf, Table
from sim.scenario.reading import Reading
from sim.units import UnitError, format_quantity, given_text

NO_FRONTEND: Final = "none"  # the disk itself: what a what-if says that takes the guest away


def read_frontend(reading: Reading, disk: Table, path: tuple[str, ...]) -> FrontendParams | None:
    """Return the parameters of the disk's front end; None if it has none, or a wrong one."""
    leaf = disk.leaf("frontend")
    table = reading.table(disk, path, "front")
    if leaf is None:
        if table.children:
            reading.error(table.place, "[front] is for a disk with a frontend")
        return None
    entry = reading.entry("frontend", leaf)
    if entry is None:
        return None
    [found] = reading.values(table, (*path, "front"), [entry.params], floor=leaf.layer)
    return None if found is None else entry.params(**found)


def within_limits(reading: Reading, queue: Table, frontend: str, params: FrontendParams) -> Table:
    """Return a queue's table with the limits of the front end; note what is beyond them."""
    children = dict(queue.children)
    declared = {param.name: param for param in params_of(QueueParams)}
    for name, most in params.queue_limits().items():
        known = declared[name]
        leaf = queue.leaf(known.key) or queue.leaf(name)
        if leaf is None:
            source = f"derived: limit of {frontend}"
            children[known.key] = Leaf(most, Layer.KERNEL, queue.place, queue.place, source)
        elif _parsed(known, leaf) > most:
            allowed = f"up to {format_quantity(most, known.dim)}"
            message = f"{known.key}: {frontend} takes no more"
            reading.error(leaf.at, message, given=given_text(leaf.value), allowed=allowed)
    return Table(queue.place, queue.layer, children)


def _parsed(declared: Param, leaf: Leaf) -> int:
    """Return a value in its canonical unit; 0 if it cannot be read, which is told elsewhere."""
    try:
        value = declared.parse(leaf.value)
    except (UnitError, ParamError):
        return 0
    assert isinstance(value, int)
    return value
