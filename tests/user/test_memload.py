"""memload: memory taken, used, given back; small machines."""

from __future__ import annotations

from pathlib import Path

from sim.machine import simulate
from sim.results import RunResult
from sim.scenario import load_text
from sim.tools.parse import parse_meminfo, parse_vmstat

SERVER = """
title = "t"
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
MEMLOAD = """
[process.load]
program = "memload"
"""


def run(*tables: str) -> RunResult:
    return simulate(load_text(SERVER + "".join(tables), Path("t.toml")), 1)


def last_vmstat(result: RunResult, name: str) -> int:
    return parse_vmstat(result.samples[-1].text("vmstat"))[name]


def test_memory_that_fits_is_never_swapped() -> None:
    result = run(SWAP, MEMLOAD, 'size = "32 MiB"\nuses = "5000 /s"\n')
    assert last_vmstat(result, "pswpout") == 0
    assert [r.value for r in result.marks("progress")][-1] == 32 << 20


def test_memory_beyond_that_of_the_machine_goes_to_swap_and_comes_back() -> None:
    result = run(SWAP, MEMLOAD, 'size = "96 MiB"\nuses = "500 /s"\n')
    assert last_vmstat(result, "pswpout") > (96 - 64) << 8
    assert last_vmstat(result, "pswpin") > 0
    assert not list(result.marks("oom_kill"))


def test_without_swap_it_is_killed_and_tells_nothing_more() -> None:
    server = SERVER.replace("vm.kernel", "vm.overcommit_memory = 1\nvm.kernel")
    lines = 'size = "96 MiB"\ngrowth = "20 MB/s"\n'
    result = simulate(load_text(server + MEMLOAD + lines, Path("t.toml")), 1)
    [kill] = result.marks("oom_kill")
    assert kill.comm == "memload"
    assert 2e9 < kill.t_ns < 4e9  # 56 MiB at 20 MB/s
    assert all(record.t_ns < kill.t_ns for record in result.marks("progress"))


def test_more_than_there_is_is_refused_unless_overcommit_is_allowed() -> None:
    [refused] = run(MEMLOAD, 'size = "96 MiB"\n').marks("out_of_memory")
    assert refused.value == 96 << 20


def test_what_is_given_back_leaves_swap_empty() -> None:
    result = run(SWAP, MEMLOAD, 'size = "96 MiB"\nhold = "3 s"\n')
    memory = parse_meminfo(result.samples[-1].text("meminfo"))
    assert memory["SwapFree"] == memory["SwapTotal"]
    assert memory["AnonPages"] == 0


def test_hot_pages_stay_in_memory_beside_cold_ones() -> None:
    hot = 'hot = "16 MiB"\nhot_uses = "50000 /s"\n'
    with_hot = run(SWAP, MEMLOAD, f'size = "96 MiB"\n{hot}')
    assert last_vmstat(with_hot, "pswpin") < 10_000  # Uniform: half of 500,000 uses would miss.
