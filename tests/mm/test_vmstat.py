"""The machine's counters over a run with everything going on at once."""

import pytest

from sim.mm.filemap import do_generic_file_read, truncate_inode_pages
from sim.mm.memory import Mm
from sim.mm.params import PAGE_SIZE
from sim.mm.readahead import FileRaState
from tests.mm.machines import KERNELS, MIB, Machine, S, dirtier


def reader(task, mapping, mib):
    ra = FileRaState(mapping.bdi.ra_pages)
    for pos in range(0, mib * MIB, 65536):
        yield from do_generic_file_read(task, mapping, ra, pos, 65536)


def short_lived_files(task, machine, count):
    for _ in range(count):
        mapping = machine.new_file()
        yield from dirtier(task, mapping, 512)
        yield from truncate_inode_pages(task, mapping, 0)
        mapping.evict()


def program_of_changing_size(task, vm, steps):
    mm = Mm(vm, task)
    for step in range(steps):
        yield from mm.fault_in(task, (1000 + step) * PAGE_SIZE)
        task.charge_user(S // 50)
        yield from task.cond_resched()
        mm.release()


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_page_and_every_dirtied_page_is_accounted_for_at_any_time(kernel):
    machine = Machine(kernel=kernel, memory_mib=256, rate_mib_per_s=40, cpus=2)
    machine.task(dirtier, machine.file, 1 << 20)
    machine.task(reader, machine.new_file(size_mib=4096), 4096)
    machine.task(short_lived_files, machine, 10_000)
    machine.task(program_of_changing_size, machine.vm, 10_000)
    for tenth in range(1, 200):
        machine.run_until(tenth / 10)
        machine.vm.check()
    assert machine.vm.written > 0
    assert machine.vm.events.pgsteal_kswapd > 0


def test_paging_is_what_passed_the_devices_in_kib():
    machine = Machine()
    machine.do(reader, machine.new_file(size_mib=8), 4)
    machine.file.set_dirty(0, 1000)
    machine.run_until(40)
    machine.vm.update()
    assert machine.vm.events.pgpgin_sectors == machine.device.sectors[0] >= 4 * MIB // 512
    assert machine.vm.events.pgpgout_sectors == 8000
