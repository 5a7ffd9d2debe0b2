"""Programs that live from the page cache: hit ratios and paces that can be computed by hand."""

import pytest

from tests.user.servers import EXT3, S, boot, run_for, values_of


def pcread(**params):
    lines = [f"{key} = {value!r}".replace("'", '"') for key, value in params.items()]
    return "\n".join(['[process.r]\nprogram = "pcread"\nfilename = "/f"', *lines])


def hit_ratio(machine):
    return sum(values_of(machine, "pcread_hits")) / sum(values_of(machine, "pcread_reads"))


def test_every_read_hits_once_the_whole_file_was_read():
    process = pcread(file_size="64 KiB", alpha=0.0, warm_reads=400, runtime="1 s")
    assert hit_ratio(run_for(boot(process, machine=EXT3), 60)) == 1.0


def test_without_popularity_the_hit_ratio_is_what_is_cached_of_the_file():
    process = pcread(file_size="40 MiB", alpha=0.0, warm_reads=1000, runtime="2 s", hit="0.1 ms")
    machine = boot(process, machine=EXT3)
    while not values_of(machine, "pcread_warm"):
        machine.run_until(machine.calendar.now + S)
    cached = machine.vm.nr_file / (40 * 256)
    run_for(machine, 10)
    assert hit_ratio(machine) == pytest.approx(cached, abs=0.06)


def test_children_begin_together_and_share_one_disk_evenly():
    process = pcread(
        file_size="400 MiB", alpha=0.0, procs=4, warm_reads=40, gate="2 s", runtime="3 s",
        hit="0.1 ms",
    )  # fmt: skip
    machine = run_for(boot(process, machine=EXT3), 60)
    at_ns = {record.name: record.t_ns for record in machine.records}
    assert at_ns["pcread_begun"] - at_ns["pcread_warm"] == pytest.approx(2 * S, rel=0.01)
    ends = [r.t_ns - at_ns["pcread_begun"] for r in machine.records if r.name == "pcread_reads"]
    assert ends == [pytest.approx(3 * S, rel=0.05)] * 4
    reads = values_of(machine, "pcread_reads")
    assert min(reads) > 0.8 * max(reads)


def test_popular_pages_are_read_more_often_than_others():
    even = pcread(file_size="40 MiB", alpha=0.0, warm_reads=1000, runtime="2 s", hit="0.1 ms")
    skewed = pcread(file_size="40 MiB", alpha=1.0, warm_reads=1000, runtime="2 s", hit="0.1 ms")
    ratios = [hit_ratio(run_for(boot(p, machine=EXT3), 60)) for p in (even, skewed)]
    assert ratios[1] > ratios[0] + 0.2


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
    fine = boot(process + '\ntasks = 1\nchunk = "16 KiB"', machine=EXT3)
    coarse = boot(process + '\ntasks = 1\nchunk = "8 MiB"', machine=EXT3)
    for machine in (fine, coarse):
        run_for(machine, 60)
        assert machine.vm.events.pgfault == 40 * 256
    assert fine.vm.programs.nr_chunks == coarse.vm.programs.nr_chunks <= 64


def test_a_pipeline_ends_where_a_buffer_larger_than_memory_is_refused():
    process = '[process.p]\nprogram = "pipeline"\ndirectory = "/d"\nfile_size = "2 GiB"'
    machine = run_for(boot(process, machine=EXT3), 5)
    assert not values_of(machine, "phase_read_ns")
    assert machine.vm.events.pgfault == machine.vm.events.oom_kills == 0
