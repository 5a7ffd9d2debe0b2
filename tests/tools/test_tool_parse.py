"""Reading /proc: every layout of the kernel is read, everything else is refused by line."""

from __future__ import annotations

import pytest

from sim.tools.parse import (
    CpuTicks,
    ProcFormatError,
    parse_diskstats,
    parse_loadavg,
    parse_meminfo,
    parse_stat,
    parse_uptime,
    parse_vmstat,
)
from sim.tools.snapshot import MissingFileError, Snapshot
from tests.tools.tool_texts import disk_text, stat_text


@pytest.mark.parametrize("columns", [11, 15, 17])
def test_disk_rows_of_14_18_and_20_columns_are_read(columns: int) -> None:
    counters = list(range(1, columns + 1))
    row = parse_diskstats(disk_text("sda", counters))[0]
    read = [row.reads, row.read_merges, row.read_sectors, row.read_ms, row.writes]
    assert read == counters[:5]
    assert (row.in_flight, row.io_ticks_ms, row.time_in_queue_ms) == (9, 10, 11)
    assert row.flushes == (16 if columns == 17 else 0)


def test_short_partition_row_of_2_6_24_counts_only_requests_and_sectors() -> None:
    row = parse_diskstats("   8    1 sda1 10 80 20 160\n")[0]
    assert (row.short, row.reads, row.read_sectors) == (True, 10, 80)
    assert (row.writes, row.write_sectors, row.write_ms) == (20, 160, 0)


@pytest.mark.parametrize("columns", [0, 5, 10, 12, 16, 18])
def test_disk_row_of_another_width_is_refused_with_its_line(columns: int) -> None:
    text = disk_text("sda", range(11)) + disk_text("sdb", range(columns))
    with pytest.raises(ProcFormatError, match=r"diskstats, line 2: .*expected 7, 14, 18, 20") as e:
        parse_diskstats(text)
    assert e.value.line_number == 2


def test_word_in_place_of_a_number_is_refused() -> None:
    with pytest.raises(ProcFormatError, match="whole numbers"):
        parse_diskstats(disk_text("sda", range(11)).replace(" 7 ", " seven "))


@pytest.mark.parametrize("columns", [4, 7, 8, 9, 10])
def test_cpu_lines_of_every_version_are_read(columns: int) -> None:
    stat = parse_stat(stat_text(range(1, columns + 1), cpus=2))
    assert stat.cpu.idle == 4
    assert stat.cpu.steal == (8 if columns >= 8 else 0)
    assert sorted(stat.cpus) == [0, 1]


def test_single_counters_of_stat_are_read() -> None:
    stat = parse_stat(stat_text((1, 2, 3, 4), intr=55, ctxt=66))
    assert (stat.intr, stat.ctxt, stat.btime_s) == (55, 66, 1_200_000_000)
    assert (stat.processes, stat.procs_running, stat.procs_blocked) == (4000, 3, 7)


@pytest.mark.parametrize("text", ["", "cpu  1 2 3\n", "intr 1\nctxt 2\n", "cpu  1 2 3 x\n"])
def test_stat_without_its_lines_is_refused(text: str) -> None:
    with pytest.raises(ProcFormatError, match="/proc/stat"):
        parse_stat(text)


def test_cpu_ticks_that_ran_backwards_count_as_none() -> None:
    assert CpuTicks(user=5, idle=90) - CpuTicks(user=2, idle=91) == CpuTicks(user=3, idle=0)


def test_loadavg_is_read() -> None:
    load = parse_loadavg("12.34 5.67 2.50 3/456 12345\n")
    assert (load.load1, load.load5, load.load15) == (12.34, 5.67, 2.5)
    assert (load.running, load.threads, load.last_pid) == (3, 456, 12345)


@pytest.mark.parametrize("text", ["", "1.0 2.0 3.0 4 5", "a 2.0 3.0 1/2 3", "1 2 3 1/x 3"])
def test_broken_loadavg_is_refused(text: str) -> None:
    with pytest.raises(ProcFormatError, match="/proc/loadavg, line 1"):
        parse_loadavg(text)


def test_uptime_is_read_without_rounding() -> None:
    up = parse_uptime("350735.47 234388.09\n")
    assert (up.uptime_cs, up.idle_cs) == (35_073_547, 23_438_809)


@pytest.mark.parametrize("text", ["", "12.34", "12.3 1.00", "12 1.00", "-1.00 1.00"])
def test_broken_uptime_is_refused(text: str) -> None:
    with pytest.raises(ProcFormatError, match="/proc/uptime"):
        parse_uptime(text)


def test_meminfo_is_read_by_name_with_and_without_unit() -> None:
    text = "MemTotal:        8174332 kB\nActive(anon):     100000 kB\nHugePages_Total:       3\n"
    expected = {"MemTotal": 8174332, "Active(anon)": 100000, "HugePages_Total": 3}
    assert parse_meminfo(text) == expected


@pytest.mark.parametrize("line", ["MemTotal 5 kB", "MemTotal: 5 MB", "MemTotal: five kB", "A: "])
def test_broken_meminfo_is_refused_with_its_line(line: str) -> None:
    with pytest.raises(ProcFormatError, match="/proc/meminfo, line 2"):
        parse_meminfo(f"MemFree:  5 kB\n{line}\n")


def test_vmstat_is_read_by_name() -> None:
    assert parse_vmstat("nr_dirty 3\npgpgin 480\n") == {"nr_dirty": 3, "pgpgin": 480}


def test_broken_vmstat_is_refused() -> None:
    with pytest.raises(ProcFormatError, match="/proc/vmstat, line 1"):
        parse_vmstat("nr_dirty\n")


def test_missing_file_is_named_with_those_there_are() -> None:
    with pytest.raises(MissingFileError, match=r"/proc/stat is not in the snapshot.*uptime"):
        Snapshot(0, {"uptime": "1.00 1.00\n"}).text("stat")
