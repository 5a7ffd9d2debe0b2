"""Dropping the page cache: what goes, what stays, and what it costs who lives from it."""

from sim.mm.drop_caches import drop_pagecache
from tests.mm.machines import Machine
from tests.user.servers import S, boot, run_for, values_of


def test_clean_pages_go_and_dirty_ones_stay():
    machine = Machine(kernel="4.4")
    vm, clean, mixed = machine.vm, machine.new_file(), machine.file
    clean.add_pages(0, 1000)
    mixed.add_pages(0, 500)
    mixed.set_dirty(100, 300)
    free = vm.nr_free
    assert drop_pagecache(vm) == 1000 + 300
    assert (clean.nr_pages, mixed.nr_pages, vm.nr_dirty) == (0, 200, 200)
    assert vm.nr_free == free + 1300
    vm.check()


def test_what_comes_back_begins_as_if_it_had_never_been_there():
    machine = Machine(kernel="4.4")
    machine.file.add_pages(0, 1000)
    drop_pagecache(machine.vm)
    machine.file.add_pages(0, 1000)
    assert machine.vm.events.workingset_refault == 0


def test_a_tmpfs_keeps_its_pages():
    writer = '[process.w]\nprogram = "dd"\nof = "/f"\nbs = "1 MiB"\nblocks = 10\n'
    job = '[process.cron]\nprogram = "drop_caches"\nstart = "5 s"'
    sets = ('machine.mount."/".type="tmpfs"',)
    machine = run_for(boot(writer + job, sets=sets, machine='[machine.mount."/"]\ntype="tmpfs"'), 9)
    assert values_of(machine, "dropped_pages") == [0]
    assert machine.vm.nr_shmem == 10 * 256


def test_the_job_runs_at_its_times_and_finds_what_was_read_since():
    readers = "".join(
        f'[process.r{at}]\nprogram = "dd"\nif = "/f"\ninput_size = "4 MiB"\nstart = "{at} s"\n'
        for at in (1, 12)
    )
    job = '[process.cron]\nprogram = "drop_caches"\nstart = "10 s"\nperiod = "10 s"'
    machine = run_for(boot(readers + job), 35)
    times_s = [round(r.t_ns / S) for r in machine.records if r.name == "dropped_pages"]
    assert times_s == [10, 20, 30]
    first, second, third = values_of(machine, "dropped_pages")
    assert first >= 1024 and 1024 <= second <= 1030 and third < 10
