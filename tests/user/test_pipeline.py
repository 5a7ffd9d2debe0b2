"""Pipelines: phases and buffers that can be computed by hand."""

import pytest

from tests.user.servers import EXT3, S, boot, run_for, values_of


def test_a_pipeline_reads_writes_and_works_as_often_as_it_has_tasks():
    process = '[process.p]\nprogram = "pipeline"\ndirectory = "/d"\nfile_size = "4 MiB"\ncount = 2'
    machine = run_for(boot(process + '\nwork_rate = "4 MiB/s"', machine=EXT3), 60)
    assert len(values_of(machine, "phase_read_ns")) == 2 * 3
    assert len(values_of(machine, "phase_write_ns")) == 2 * 3
    phases = sum(values_of(machine, "phase_read_ns")) + sum(values_of(machine, "phase_write_ns"))
    assert sum(values_of(machine, "pipeline_done")) == pytest.approx(phases + 6 * S, rel=0.01)
    assert machine.vm.nr_anon == 0


def test_a_pipelines_buffer_is_one_piece_of_memory_however_it_is_filled():
    process = '[process.p]\nprogram = "pipeline"\ndirectory = "/d"\nfile_size = "40 MiB"'
    machine = run_for(boot(process + "\ntasks = 1", machine=EXT3), 60)
    assert machine.vm.events.pgfault == 40 * 256
    assert machine.vm.programs.nr_chunks <= 64


def test_a_pipeline_ends_where_a_buffer_larger_than_memory_is_refused():
    process = '[process.p]\nprogram = "pipeline"\ndirectory = "/d"\nfile_size = "2 GiB"'
    machine = run_for(boot(process, machine=EXT3), 5)
    assert not values_of(machine, "phase_read_ns")
    assert machine.vm.events.pgfault == machine.vm.events.oom_kills == 0
