"""uptime, top, free, swapon, cpuinfo and block_dump: values, units, clocks, other locales."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.readers import UnreadableRecording, read_file, read_text
from sim.tools.uptime import time_up
from tests.calibration.texts import (
    BLOCK_DUMP,
    CPUINFO,
    FREE_3_2,
    FREE_4_0,
    FREE_HUMAN,
    SWAPON_SHOW,
    TOP_2_0,
    TOP_3_2,
    TOP_4_0,
    UPTIME,
    row,
    values,
)

CASES = Path(os.environ.get("IOTWIN_SHARED", "../shared")) / "cases"
needs_cases = pytest.mark.skipif(not CASES.is_dir(), reason=f"no {CASES}: set IOTWIN_SHARED")
KIB = 1024


def test_an_uptime_loop_has_times_loads_and_the_time_since_boot():
    recording = read_text(UPTIME, "x")
    assert [s.time_s for s in recording.select("load1")] == [0.0, 5.0, 10.0, 15.0]
    assert values(recording, "load1") == [1.98, 2.15, 0.15, 37.1]
    assert values(recording, "load15") == [1.18, 1.19, 0.25, 9.99]
    assert values(recording, "uptime_s") == [12120, 1048920, 87720, 600]
    assert recording.facts["interval_s"] == "5"


@pytest.mark.parametrize(
    ("line", "load5"),
    [
        (" 12:01pm  up 3 days,  4:05,  2 users,  load average: 0.15, 0.20, 0.25", 0.20),
        (" 12:01:00 up 3 days,  4:05,  load average: 0.00, 0.01, 0.05", 0.01),
        ("23:10:01  up 1 day  2:10,  3 users,  load average: 37,10, 20,04, 9,99", 20.04),
    ],
)
def test_older_and_foreign_layouts_of_uptime(line, load5):
    assert values(read_text(line + "\n", "x"), "load5") == [load5]


def test_midnight_passes_between_two_lines_of_uptime():
    text = UPTIME.replace("07:37:31", "23:59:58").replace("07:37:36", "00:00:03")
    assert [s.time_s for s in read_text(text, "x").select("load1")][:2] == [0.0, 5.0]


@given(st.integers(0, 10**9), st.lists(st.integers(0, 99999), min_size=3, max_size=3))
def test_what_our_uptime_prints_is_read_back(uptime_s, hundredths):
    loads = [f"{load / 100:.2f}" for load in hundredths]
    line = f" 07:37:31 up {time_up(uptime_s)},  1 user,  load average: {', '.join(loads)}\n"
    recording = read_text(line, "x")
    assert values(recording, "uptime_s") == [uptime_s // 60 * 60]
    assert [values(recording, name)[0] for name in ("load1", "load5", "load15")] == [
        float(load) for load in loads
    ]


def test_the_head_of_an_old_top():
    read = row(read_text(TOP_3_2, "x"))
    assert read["user_pct"] == 10.6
    assert read["iowait_pct"] == 82.3
    assert read["soft_pct"] == 0.2
    assert read["procs_total"] == 108
    assert read["mem_cached_bytes"] == 45348 * KIB  # stands in the line of swap
    assert read["swap_used_bytes"] == 1003088 * KIB


def test_the_head_of_a_new_top_in_mib_with_glued_numbers():
    read = row(read_text(TOP_4_0, "x"))
    assert read["idle_pct"] == 100.0
    assert read["mem_available_bytes"] == pytest.approx(23644.8 * KIB**2)
    assert read["mem_buffcache_bytes"] == pytest.approx(2080.5 * KIB**2)
    assert read["swap_total_bytes"] == 0


SCREEN_OF_TWO_CPUS = """
  3:55pm  up 1 day, 21:02,  3 users,  load average: 0.54, 0.13, 0.03
61 processes: 59 sleeping, 2 running, 0 zombie, 0 stopped
CPU0 states: 11.0% user  0.5% system  0.0% nice 88.5% idle
CPU1 states:  3.0% user  0.5% system  0.0% nice 96.5% idle
"""


def test_a_screen_of_procps_2_begins_below_a_line_of_uptime():
    recording = read_text(TOP_2_0 + SCREEN_OF_TWO_CPUS, "x")
    assert recording.problems == ()
    assert values(recording, "load1") == [0.04, 0.54]
    assert values(recording, "procs_running") == [1, 2]
    assert values(recording, "mem_cached_bytes") == [103604 * KIB]
    boot = recording.select("idle_pct", "all", since_boot=True)
    assert [(one.value, one.report) for one in boot] == [(98.5, 0)]
    later = {one.name: (one.value, one.report) for one in recording.select("idle_pct")}
    assert later == {"0": (88.5, 1), "1": (96.5, 1)}


def test_a_line_of_processes_alone_is_reported():
    _uptime, *below = TOP_2_0.splitlines(keepends=True)[:5]
    with pytest.raises(UnreadableRecording, match="61 processes"):
        read_text("".join(below), "x")


def test_busybox_prints_free_with_a_row_of_its_own():
    text = (
        "             total         used         free       shared      buffers\n"
        "Mem:       2060740      1035836      1024904            0        78096\n"
        "-/+ buffers:            957740      1103000\n"
        "Swap:      1048572            0      1048572\n"
    )
    recording = read_text(text, "x")
    assert recording.problems == ()
    assert row(recording)["mem_buffers_bytes"] == 78096 * KIB
    assert row(recording)["swap_free_bytes"] == 1048572 * KIB


def test_the_first_of_several_old_screens_is_since_boot_and_a_lone_one_is_not():
    assert values(read_text(TOP_3_2, "x"), "iowait_pct") == [82.3]
    twice = read_text(TOP_3_2 + "\n" + TOP_3_2.replace("11:45:12", "11:45:15"), "x")
    assert values(twice, "iowait_pct", since_boot=True) == [82.3]
    assert [s.time_s for s in twice.select("iowait_pct")] == [3.0]
    assert values(read_text(TOP_4_0 * 2, "x"), "idle_pct") == [100.0, 100.0]


def test_top_in_a_locale_with_commas_and_by_cpu():
    text = TOP_4_0.replace("%Cpu(s):  0.0 us", "%Cpu1  :  0,5 us").replace("100.0 id", "99,5 id")
    recording = read_text(text, "x")
    assert [(s.name, s.value) for s in recording.select("idle_pct")] == [("1", 99.5)]


def test_a_line_of_top_with_an_unknown_word_is_reported_whole():
    recording = read_text(TOP_4_0.replace("0.0 st", "0.0 xx"), "x")
    assert [problem.line for problem in recording.problems] == [3]
    assert recording.names("cpu") == []


def test_free_of_both_generations():
    new, old = row(read_text(FREE_4_0, "x")), row(read_text(FREE_3_2, "x"))
    assert new["mem_available_bytes"] == 24207300 * KIB
    assert new["mem_buffcache_bytes"] == 2129568 * KIB
    assert new["swap_used_bytes"] == 945552 * KIB
    assert old["mem_cached_bytes"] == 45348 * KIB
    assert old["mem_used_bytes"] == 1682160 * KIB


def test_free_with_letters():
    read = row(read_text(FREE_HUMAN, "x"))
    assert read["mem_total_bytes"] == 23 * KIB**3
    assert read["mem_shared_bytes"] == pytest.approx(8.7 * KIB**2)
    assert read["swap_total_bytes"] == 0


SMALL = "       total  used  free  shared  buffers  cached\nMem:   1655  1642  13  0  1  44\n"


@pytest.mark.parametrize(
    ("above", "unit"),
    [
        ("$ free -m\n", KIB**2),
        ("# free -g\n", KIB**3),
        ("host:~# free -b\n", 1),
        ("$ free\n", KIB),
        (TOP_3_2, KIB**2),
    ],
)
def test_the_unit_of_free_comes_from_a_prompt_or_from_a_memory_that_is_known(above, unit):
    assert values(read_text(above + SMALL, "x"), "mem_total_bytes")[-1] == 1655 * unit


def test_free_in_a_unit_that_nothing_tells_is_reported_not_guessed():
    recording = read_text(UPTIME + SMALL, "x")
    assert values(recording, "mem_total_bytes") == []
    assert "unit not known" in recording.problems[0].why


FREE_OF_ONE_HOST = {
    1: "25276502016 1198211072 17775091712 9187328 6667436032 24078290944",
    KIB: "24684084 1170128 17358488 8972 6511168 23513956",
}
FREE_TITLES = "      total  used  free  shared  buff/cache  available\n"


@pytest.mark.parametrize("unit", FREE_OF_ONE_HOST)
def test_bytes_and_kib_are_told_apart_since_either_is_whole_pages(unit):
    read = row(read_text(f"{FREE_TITLES}Mem: {FREE_OF_ONE_HOST[unit]}\n", "x"))
    assert read["mem_total_bytes"] == 24684084 * KIB
    assert read["mem_shared_bytes"] == 8972 * KIB


SI_ROW = "Mem: 25276502 1198030 17775190 9187 6667517 24078471\n"  # free --si


def test_memory_that_is_no_whole_number_of_pages_is_in_no_unit_that_is_guessed():
    with pytest.raises(UnreadableRecording, match="unit not known"):
        read_text(FREE_TITLES + SI_ROW, "x")
    read = row(read_text("$ free --si\n" + FREE_TITLES + SI_ROW, "x"))
    assert read["mem_total_bytes"] == 25276502 * 1000


def test_letters_are_powers_of_1000_where_the_command_says_so():
    text = FREE_TITLES + "Mem: 25G 1.2G 18G 9.2M 6.7G 24G\n"
    assert row(read_text(text, "x"))["mem_total_bytes"] == 25 * KIB**3
    assert row(read_text("$ free -h --si\n" + text, "x"))["mem_total_bytes"] == 25 * 10**9


def test_swapon_show_has_sizes_with_letters():
    recording = read_text(SWAPON_SHOW, "x")
    assert values(recording, "swapspace_bytes") == [2 * KIB**3, KIB**3]
    assert values(recording, "swapspace_used_bytes") == pytest.approx([923.4 * KIB**2, 0])
    assert recording.names("device") == ["xvdk1", "/swapfile"]


def test_cpuinfo_gives_the_number_of_cpus_and_their_clock_rates():
    recording = read_text(CPUINFO, "x")
    assert recording.facts["cpus"] == "2"
    assert recording.facts["cpu_mhz"] == "1799.999"
    assert values(recording, "clock_mhz") == [1799.999, 1200.0]


def test_a_count_of_block_dump_lines_is_by_process():
    recording = read_text(BLOCK_DUMP, "x")
    assert [(s.name, s.value) for s in recording.samples] == [
        ("wc(3500)", 1),
        ("kjournald(1624)", 582),
    ]


@needs_cases
def test_the_recorded_cases_are_read_without_loss():
    factomd = CASES / "factomd"
    swap = read_file(factomd / "swapon.txt")
    assert row(swap) == {
        "swapspace_bytes": 2096120 * KIB,
        "swapspace_used_bytes": 945552 * KIB,
        "swapspace_priority": -1,
    }
    assert read_file(factomd / "cpuinfo.txt").facts["cpus"] == "1"
    assert row(read_file(factomd / "top.txt")) == row(read_text(TOP_3_2, "x"))
    dump = CASES / "exim-io" / "block_dump.txt"
    counts = [int(line.rsplit(" ", 1)[1]) for line in dump.read_text().splitlines() if line]
    recording = read_file(dump)
    assert values(recording, "block_events") == counts
    for name in ("swapon", "cpuinfo", "top"):
        assert read_file(factomd / f"{name}.txt").problems == ()


def test_jc_reads_the_same_from_uptime_free_swapon_and_top():
    jc = pytest.importorskip("jc")
    first = UPTIME.splitlines()[1]
    theirs = jc.parse("uptime", first, quiet=True)
    ours = row(read_text(first + "\n", "x"))
    assert ours["load1"] == theirs["load_1m"]
    assert ours["load15"] == theirs["load_15m"]
    assert ours["uptime_s"] == theirs["uptime_total_seconds"]
    memory, _swap = jc.parse("free", FREE_4_0, quiet=True)
    ours = row(read_text(FREE_4_0, "x"))
    for key in ("total", "used", "free", "shared", "available"):
        assert ours[f"mem_{key}_bytes"] == memory[key] * KIB
    apart = TOP_4_0.replace("ni,100.0 id", "ni, 99.9 id")  # jc does not part glued numbers
    head = jc.parse("top", apart, quiet=True)[0]
    ours = row(read_text(apart, "x"))
    assert ours["procs_total"] == head["tasks_total"]
    assert ours["idle_pct"] == head["cpu_idle"]
    assert ours["mem_total_bytes"] == pytest.approx(head["mem_total"] * KIB**2)
