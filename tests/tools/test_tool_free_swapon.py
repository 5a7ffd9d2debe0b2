"""free and swapon: their tables, their units, and what changed between generations."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.tools.free import SHIFTS
from sim.tools.parse import ProcFormatError
from sim.tools.run import run_tool, tool_sampling
from sim.tools.snapshot import Snapshot
from sim.tools.swapon import human_size
from sim.tools.usage import Sampling, ToolUsageError
from tests.tools.memory_texts import MEMINFO, MEMINFO_NEW, NO_SWAPS, SWAPS


def run(command: str, layout: str, snapshots: Iterable[Snapshot]) -> str:
    texts = run_tool(
        command.split(),
        snapshots,
        hostname="h",
        release="r",
        boot_wallclock=datetime(2017, 5, 1),
        layout=layout,
    )
    return "".join(texts)


def free(command: str, layout: str, meminfo: str = MEMINFO) -> str:
    return run(command, layout, [Snapshot(n, {"meminfo": meminfo}) for n in range(9)])


def swapon(command: str, layout: str, swaps: str = SWAPS) -> str:
    return run(command, layout, [Snapshot(0, {"swaps": swaps})])


FREE_3_2 = """\
             total       used       free     shared    buffers     cached
Mem:       1695600    1682160      13440          0       1400      45348
-/+ buffers/cache:    1635412      60188
Swap:      2096120    1003088    1093032
"""
FREE_4_0 = """\
               total        used        free      shared  buff/cache   available
Mem:         1695600     1615600       13440        4096       66748       80000
Swap:        2096120     1003088     1093032
Total:       3791720     2618688     1106472
"""


def test_old_free_shows_what_is_used_without_buffers_and_cache_in_a_line_of_its_own() -> None:
    assert free("free", "sysstat-9") == FREE_3_2
    without = [line for line in FREE_3_2.splitlines() if not line.startswith("-/+")]
    assert free("free -o", "sysstat-7").splitlines() == without


def test_new_free_takes_for_used_what_is_not_available() -> None:
    assert free("free -t", "sysstat-12", MEMINFO_NEW) == FREE_4_0


def test_new_free_takes_a_kernel_before_3_14_to_have_only_free_memory_available() -> None:
    assert free("free", "sysstat-12").splitlines()[1].split()[-1] == "13440"


def test_buffers_and_cache_apart_sum_up_to_the_one_column() -> None:
    buffers, cache = free("free -w", "sysstat-12").splitlines()[1].split()[5:7]
    assert (int(buffers), int(cache)) == (1400, 65348)


def test_human_units_take_five_characters() -> None:
    cells = free("free -h", "sysstat-12", MEMINFO_NEW).splitlines()[1].split()[1:]
    assert cells == ["1.6Gi", "1.5Gi", "13Mi", "4.0Mi", "65Mi", "78Mi"]


def test_repeated_free_has_an_empty_line_between_and_the_old_one_after_too() -> None:
    assert free("free -s 2 -c 2", "sysstat-12").count("\n\n") == 1
    assert free("free -s 2 -c 2", "sysstat-9") == 2 * (FREE_3_2 + "\n")
    assert tool_sampling(["free", "-m", "-s2", "-c", "3"]) == Sampling(2, 3)


@given(kb=st.integers(0, 2**40), unit=st.sampled_from("bkmg"))
def test_units_cut_down(kb: int, unit: str) -> None:
    meminfo = f"MemTotal: {kb} kB\nMemFree: 0 kB\n"
    shown = int(free(f"free -{unit}", "sysstat-9", meminfo).splitlines()[1].split()[1])
    assert 0 <= (kb << 10) - (shown << SHIFTS[unit]) < 1 << SHIFTS[unit]


def test_old_swapon_is_the_text_of_the_file() -> None:
    assert swapon("swapon -s", "sysstat-9") == SWAPS
    assert swapon("swapon -s", "sysstat-9", NO_SWAPS) == NO_SWAPS


def test_swapon_writes_its_own_table_from_2_24_on() -> None:
    rows = swapon("swapon -s", "sysstat-12").splitlines()
    assert rows[1] == f"{'/dev/xvdk1':40}partition\t2096120\t\t945552\t\t-1"
    assert rows[2] == f"{'/swap/file':40}file\t\t62914560\t0\t\t5"
    assert swapon("swapon -s", "sysstat-12", NO_SWAPS) == ""


def test_show_has_columns_as_wide_as_their_cells() -> None:
    assert swapon("swapon --show", "sysstat-12") == (
        "NAME       TYPE      SIZE   USED PRIO\n"
        "/dev/xvdk1 partition   2G 923.4M   -1\n"
        "/swap/file file       60G     0B    5\n"
    )
    assert swapon("swapon --show", "sysstat-12", NO_SWAPS) == ""


@given(st.integers(0, 2**60))
def test_human_sizes_are_within_a_twentieth_of_their_unit(size: int) -> None:
    text = human_size(size)
    unit = 1 << 10 * "BKMGTPE".index(text[-1])
    assert abs(float(text[:-1]) * unit - size) <= unit / 20 * 1.000001


@pytest.mark.parametrize(
    ("command", "layout", "message"),
    [
        ("free -h", "sysstat-9", "unknown option '-h'; allowed: -b bytes, .*-s DELAY"),
        ("free -m -g", "sysstat-12", "-m and -g exclude each other"),
        ("free -s x", "sysstat-12", "-s needs a whole number, not 'x'"),
        ("free -c 2", "sysstat-12", "-c needs -s"),
        ("free 5", "sysstat-12", "unknown argument '5'"),
        ("swapon --show", "sysstat-9", "unknown argument '--show'; allowed: -s$"),
        ("swapon", "sysstat-12", "nothing to show"),
    ],
)
def test_wrong_command_line_is_refused(command: str, layout: str, message: str) -> None:
    with pytest.raises(ToolUsageError, match=message):
        tool_sampling(command.split(), layout=layout)


def test_a_row_of_swaps_that_is_none_is_told_with_its_line() -> None:
    with pytest.raises(ProcFormatError, match=r"/proc/swaps, line 2: 'garbage'"):
        swapon("swapon --show", "sysstat-12", NO_SWAPS + "garbage\n")
