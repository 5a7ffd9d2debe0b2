"""Boot of memory management: a machine's memory, with the code that reclaims it.

Models: which function sees to free pages where allocation finds none.
Linux counterpart: mm/mm_init.c (mm_core_init), start_kernel.
Invariants: memory that this file has made never lacks its reclaim; kswapd starts later, when the
machine's threads do (start_kswapd).
Left out: memblock, zones.
"""

import functools

from sim.mm.address_space import Vm
from sim.mm.oom_kill import out_of_memory
from sim.mm.params import VmParams
from sim.mm.vmscan import alloc_slowpath
from sim.sched.core import Sched


def mm_core_init(sched: Sched, params: VmParams, memory_bytes: int) -> Vm:
    """Return a machine's memory, all of it free but what the kernel takes."""
    vm = Vm(sched, params, memory_bytes)
    vm.alloc_slowpath = functools.partial(alloc_slowpath, vm)
    vm.out_of_memory = functools.partial(out_of_memory, vm, None)
    return vm
