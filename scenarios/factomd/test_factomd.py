"""factomd: a heap that grows and is collected, beside swap or none; small machines."""

from pathlib import Path

import pytest

from sim.machine import Machine, simulate
from sim.results import RunResult
from sim.scenario import load, load_text
from sim.tools.parse import parse_vmstat

SERVER = """
title = "t"
uses = ["factomd/program.py"]
[machine]
kernel = "2.6.32"
memory = "64 MiB"
vm.kernel = "8 MiB"
[machine.disk.sda]
device = "ssd"
capacity = "1 GB"
[machine.disk.sdb]
device = "ssd"
capacity = "1 GB"
[machine.mount."/"]
type = "ext4"
device = "sda"
[run]
duration = "10 s"
"""
SWAP = """
[machine.swap.sdb]
device = "sdb"
"""
FACTOMD = """
[process.factomd]
program = "factomd"
heap = "1 MiB"
block = "4 KiB"
database = "/ldb"
database_size = "64 MiB"
text_hot = "512 KiB"
library_size = "512 KiB"
log = "/log"
"""


def run(*tables: str) -> RunResult:
    return simulate(load_text(SERVER + "".join(tables), Path("t.toml")), 1)


def last_vmstat(result: RunResult, name: str) -> int:
    return parse_vmstat(result.samples[-1].text("vmstat"))[name]


def test_collector_passes_over_a_heap_that_fits_once_a_period() -> None:
    lines = 'blocks = 4000\ngc_share = 0.5\ngc_period = "1 s"\npasses_before = 0\n'
    result = run(FACTOMD, lines)
    passes = [record.value for record in result.marks("gc_pass")]
    assert set(passes) == {4000}
    assert 8 <= len(passes) <= 11
    assert last_vmstat(result, "pswpin") == 0


def test_collector_of_a_heap_that_does_not_fit_reads_it_from_swap_in_order() -> None:
    result = run(SWAP, FACTOMD, "blocks = 20000\ngc_share = 0.5\n")
    assert last_vmstat(result, "pswpin") > 4 * last_vmstat(result, "pgmajfault") > 0


def test_a_chain_that_grows_without_swap_ends_in_an_oom_kill_at_the_blocks_that_fit() -> None:
    lines = 'blocks = 8000\ngrowth = "1000 /s"\npasses_before = 0\n'
    result = run(FACTOMD, lines)
    ended = [*result.marks("oom_kill"), *result.marks("out_of_memory")]
    assert len(ended) == 1
    last = [record.value for record in result.marks("progress")][-1]
    assert 10_000 < last < 14_080  # 64 - 8 - 1 MiB and the reserve, 4 KiB each


def test_requests_make_several_goroutines_read_at_once() -> None:
    lines = "blocks = 100\nreads = 0\ntext_uses = 0\nlibrary_uses = 0\n"
    lines += 'requests = "10 /s"\nuser = "1 ms"\n'
    machine = Machine(load_text(SERVER + FACTOMD + lines, Path("t.toml")), 1)
    machine.run_until(5 * 10**9)
    reads = machine.disks[0].stats.reads
    assert 5 * 10 * 12 / 2 < reads < 5 * 10 * 12 * 2


def test_without_swap_the_daemon_is_killed_about_where_it_was():
    """1340 MiB less 100 MiB at 19 KiB a block; about 70,000 blocks were recorded."""
    result = simulate(load("factomd", what_if="no_swap"), seed=1)
    assert [record.comm for record in result.records if record.name == "oom_kill"] == ["factomd"]
    blocks = [int(record.value) for record in result.records if record.name == "progress"]
    assert blocks[-1] == pytest.approx(67_000, rel=0.05)


def pages_read_for_a_fault(run_pages: int) -> float:
    """Return the pages of libraries larger than memory that a major fault reads."""
    text = SERVER.replace("10 s", "1 s") + FACTOMD.replace(
        'y_size = "512 KiB"', 'y_size = "200 MiB"'
    )
    text += f"blocks = 100\nreads = 0\nlibrary_uses = 1\nlibrary_run = {run_pages}\n"
    text += '[measure]\ninterval = "1 s"\n'
    result = simulate(load_text(text, Path("t.toml")), 1)
    return last_vmstat(result, "pgpgin") / 4 / last_vmstat(result, "pgmajfault")


def test_a_library_that_is_run_through_in_order_goes_on_being_read_around_its_faults() -> None:
    # One page at a place: most uses miss, and after a hundred more than hit nothing is read
    # around. Four: the three behind the first were read with it, so that hits outnumber misses.
    assert pages_read_for_a_fault(4) > 16
    assert pages_read_for_a_fault(1) < 4
