"""/proc/slabinfo: objects and slabs of each kind.

Models: the caches of dentries and inodes, the only ones there are here.
Linux counterpart: mm/slab.c, mm/slub.c (slabinfo 2.1 since 2.6.10), mm/slab_common.c (cache_show).
Invariants: active_objs are at most num_objs; their slabs hold num_objs.
Left out: tunables and CPU queues (0, as SLUB shows them); all other caches.
"""

from __future__ import annotations

from sim.fs.proc.counters import Vm

HEAD = (
    "slabinfo - version: 2.1\n"
    "# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab>"
    " : tunables <limit> <batchcount> <sharedfactor>"
    " : slabdata <active_slabs> <num_slabs> <sharedavail>\n"
)


def render_slabinfo(vm: Vm) -> str:
    """Return the text of /proc/slabinfo."""
    rows = sorted(vm.slabs.rows())
    return HEAD + "".join(
        f"{name:<17} {active:>6} {objects:>6} {size:>6} {per_slab:>4} {pages:>4}"
        f" : tunables {0:>4} {0:>4} {0:>4} : slabdata {slabs:>6} {slabs:>6} {0:>6}\n"
        for name, active, objects, size, per_slab, pages, slabs in rows
    )
