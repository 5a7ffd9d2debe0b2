"""iostat's command line and the text of its three generations."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import fields
from datetime import datetime
from itertools import permutations
from pathlib import Path

import pytest

from sim.tools.iostat import SYSSTAT_9, UNITS, DeviceReport, render_devices
from sim.tools.run import GENERATIONS, run_tool, tool_sampling
from sim.tools.snapshot import Snapshot
from sim.tools.usage import Sampling, ToolUsageError
from tests.tools.tool_texts import disk_text, snapshot

SHARED = Path(os.environ.get("IOTWIN_SHARED", "../shared"))
FACTOMD = SHARED / "cases" / "factomd" / "iostat.txt"
BOOT = datetime(2026, 11, 21, 14, 0, 0)
SDA = (120, 0, 960, 600, 60, 6, 960, 600, 2, 900, 1200)  # per second
NEVER_USED = disk_text("sdz", (0,) * 11, minor=400)


def server() -> Iterator[Snapshot]:
    """Read /proc every 10 s of a server with two CPUs, from 1000 s after its boot."""
    for seconds in range(1000, 2000, 10):
        rows = [
            disk_text("sda", [n * seconds for n in SDA]),
            disk_text("sda1", [n * seconds for n in SDA], minor=1),
            disk_text("dm-0", (5, 0, 40, 9, *[0] * 7), major=253),
            NEVER_USED,
        ]
        cpu = [seconds * ticks for ticks in (60, 0, 15, 80, 40, 1, 4, 0)]
        yield snapshot(seconds, rows, cpu=cpu, cpus=2)


def iostat(command: str, layout: str, *, locale: str = "ISO", limit: int = 9) -> str:
    """Return the first `limit` texts of a command line."""
    texts = run_tool(
        command.split(),
        server(),
        hostname="vm",
        release="6.1.0",
        boot_wallclock=BOOT,
        layout=layout,
        locale=locale,
    )
    return "".join(text for text, _ in zip(texts, range(limit), strict=False))


def table(command: str, layout: str = "sysstat-12") -> list[list[str]]:
    """Return the words of each line that begins a device row."""
    lines = [line.split() for line in iostat(command, layout, limit=2).splitlines()]
    return [words for words in lines if words and words[0] in ("sda", "sda1", "dm-0", "sdz")]


SYSSTAT_7_TEXT = """\
Linux 6.1.0 (vm) \t11/21/2026

Time: 02:16:40 PM
avg-cpu:  %user   %nice %system %iowait  %steal   %idle
          30.77    0.00    7.69   20.51    0.00   41.03

Device:         rrqm/s   wrqm/s     r/s     w/s   rsec/s   wsec/s avgrq-sz avgqu-sz   await  svctm  %util
sda               0.00     6.00  120.00   60.00   960.00   960.00    10.67     1.20    6.67   5.00  90.00
sda1              0.00     6.00  120.00   60.00   960.00   960.00    10.67     1.20    6.67   5.00  90.00
dm-0              0.00     0.00    0.01    0.00     0.04     0.00     8.00     0.00    1.80   0.00   0.00

"""  # noqa: E501
SYSSTAT_12_TEXT = """\
Linux 6.1.0 (vm) \t2026-11-21 \t_x86_64_\t(2 CPU)

2026-11-21T14:16:40+0000
avg-cpu:  %user   %nice %system %iowait  %steal   %idle
          30.00    0.00   10.00   20.00    0.00   40.00

Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz     d/s     dkB/s   drqm/s  %drqm d_await dareq-sz     f/s f_await  aqu-sz  %util
dm-0             0.01      0.02     0.00   0.00    1.80     4.00    0.00      0.00     0.00   0.00    0.00     0.00    0.00      0.00     0.00   0.00    0.00     0.00    0.00    0.00    0.00   0.00
sda            120.00    480.00     0.00   0.00    5.00     4.00   60.00    480.00     6.00   9.09   10.00     8.00    0.00      0.00     0.00   0.00    0.00     0.00    0.00    0.00    1.20  90.00


"""  # noqa: E501


def test_sysstat_7_prints_the_time_of_day_and_sectors() -> None:
    text = iostat("iostat -t -x -p", "sysstat-7", locale="en_US")
    assert text == SYSSTAT_7_TEXT


def test_sysstat_12_prints_directions_in_kb_sorted_by_name() -> None:
    assert iostat("iostat -t -x", "sysstat-12") == SYSSTAT_12_TEXT


def test_basic_report_has_totals_of_the_interval() -> None:
    lines = iostat("iostat -d 10 2", "sysstat-12").splitlines()
    assert lines[2].split() == [
        "Device",
        "tps",
        "kB_read/s",
        "kB_wrtn/s",
        "kB_dscd/s",
        "kB_read",
        "kB_wrtn",
        "kB_dscd",
    ]
    expected = "sda             180.00       480.00       480.00         0.00"
    assert lines[4] == f"{expected}     480000     480000          0"
    assert lines[-3] == f"{expected}       4800       4800          0"


@pytest.mark.parametrize(
    ("option", "title", "shown"),
    [("", "Blk_read/s", "960.00"), ("-k", "kB_read/s", "480.00"), ("-m", "MB_read/s", "0.47")],
)
def test_units_of_sysstat_7(option: str, title: str, shown: str) -> None:
    assert title in iostat(f"iostat -d {option}", "sysstat-7")
    assert table(f"iostat -d {option}", "sysstat-7")[0][2] == shown


def test_partitions_are_shown_only_when_asked() -> None:
    assert [row[0] for row in table("iostat -d")] == ["dm-0", "sda"]
    assert [row[0] for row in table("iostat -d -p sda")] == ["sda", "sda1"]
    assert [row[0] for row in table("iostat -d -p")] == ["sda", "sda1", "dm-0"]
    assert [row[0] for row in table("iostat -d -p ALL")] == ["sda", "sda1", "dm-0", "sdz"]


def test_named_device_is_shown_even_if_never_used() -> None:
    assert [row[0] for row in table("iostat -d /dev/sdz dm-0")] == ["dm-0", "sdz"]


def test_z_leaves_out_devices_without_activity_in_the_interval() -> None:
    assert iostat("iostat -dz 10 2", "sysstat-12").count("dm-0") == 1
    assert iostat("iostat -d 10 2", "sysstat-12").count("dm-0") == 2


def test_y_leaves_out_the_report_since_boot() -> None:
    assert iostat("iostat -dy 10 1", "sysstat-12").count("Device") == 1
    assert "4800 " in iostat("iostat -dy 10 1", "sysstat-12")


def test_c_and_d_choose_blocks() -> None:
    assert "Device" not in iostat("iostat -c", "sysstat-12")
    assert "avg-cpu" not in iostat("iostat -d", "sysstat-12")
    for more in ("-d", "-x", "-p", "sda"):
        both = iostat(f"iostat -c {more}", "sysstat-12")
        assert "Device" in both
        assert "avg-cpu" in both


def test_count_bounds_the_snapshots_taken() -> None:
    snapshots = server()
    texts = run_tool(
        ["iostat", "10", "3"], snapshots, hostname="vm", release="6.1.0", boot_wallclock=BOOT
    )
    assert len(list(texts)) == 4
    assert next(snapshots).t_ns == 1030 * 10**9


def test_reports_come_while_the_server_runs() -> None:
    texts = run_tool(
        ["iostat", "10"], server(), hostname="vm", release="6.1.0", boot_wallclock=BOOT
    )
    assert next(texts).startswith("Linux")
    assert "sda" in next(texts)


@pytest.mark.parametrize(
    ("command", "sampling"),
    [
        ("iostat", Sampling(None, 1)),
        ("iostat -xtcm 5", Sampling(5, None)),
        ("iostat -p sda 5 3", Sampling(5, 3)),
        ("vmstat -n 5", Sampling(5, None)),
        ("uptime", Sampling(None, 1)),
    ],
)
def test_command_line_says_when_to_read(command: str, sampling: Sampling) -> None:
    assert tool_sampling(command.split()) == sampling


@pytest.mark.parametrize("words", list(permutations(["-x", "-d", "sda", "5"])))
def test_options_devices_and_interval_come_in_any_order(words: tuple[str, ...]) -> None:
    """As in iostat.c main(), which goes through them one by one; the interval is before COUNT."""
    assert tool_sampling(["iostat", *words]) == Sampling(5, None)
    assert tool_sampling(["iostat", *words, "3"]) == Sampling(5, 3)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("iostat -h", r"iostat: unknown option '-h'; allowed: -c CPU only, .*INTERVAL, COUNT"),
        ("iostat --human", "unknown option '--human'"),
        ("iostat -xh 5", "unknown option '-h'"),
        ("iostat -k -m", "-k and -m exclude each other"),
        ("iostat 5 3 1", "unknown argument '1'"),
        ("iostat 0", "must be at least 1"),
        ("iotop 1", "iotop: no such tool on this server; allowed: cat, cpupower, free, iostat"),
        ("vmstat -m", "vmstat: unknown option '-m'"),
        ("uptime -p", "uptime: unknown argument '-p'; allowed: no argument"),
        ("", "no such tool"),
    ],
)
def test_wrong_command_line_is_refused_with_what_is_allowed(command: str, message: str) -> None:
    with pytest.raises(ToolUsageError, match=message):
        tool_sampling(command.split())


@pytest.mark.parametrize(("option", "layout"), [("-y", "sysstat-7"), ("-z", "sysstat-7")])
def test_options_newer_than_the_tool_are_refused(option: str, layout: str) -> None:
    with pytest.raises(ToolUsageError, match="unknown option"):
        tool_sampling(["iostat", option], layout=layout)


def test_unknown_layout_and_locale_are_refused() -> None:
    with pytest.raises(ToolUsageError, match="unknown 'sysstat-3'; allowed: sysstat-7"):
        tool_sampling(["iostat"], layout="sysstat-3")
    with pytest.raises(ToolUsageError, match="unknown locale 'de_DE'"):
        iostat("iostat", "sysstat-7", locale="de_DE")


@pytest.mark.parametrize("layout", GENERATIONS)
def test_long_names_break_the_line_before_sysstat_12(layout: str) -> None:
    rows = [disk_text("mpath_data_000", SDA)]
    texts = run_tool(
        ["iostat", "-d"],
        [snapshot(10, rows)],
        hostname="vm",
        release="6",
        boot_wallclock=BOOT,
        layout=layout,
    )
    assert ("mpath_data_000\n" in "".join(texts)) == (layout != "sysstat-12")


@pytest.mark.skipif(not FACTOMD.exists(), reason=f"no recording at {FACTOMD}")
def test_layout_of_rhel_6_prints_the_factomd_recording() -> None:
    lines = FACTOMD.read_text().splitlines()
    rows = [line for line in lines if line.startswith("xvd")]
    header = next(line for line in lines if line.startswith("Device:"))
    devices = [device_of_row(row.split()) for row in rows]
    text = render_devices(devices, SYSSTAT_9, SYSSTAT_9.extended, UNITS["s"])
    assert text.splitlines() == [header, *rows, ""]


def device_of_row(words: list[str]) -> DeviceReport:
    """Return the report that holds the figures of a row and zero elsewhere."""
    zeros: dict[str, float] = {field.name: 0.0 for field in fields(DeviceReport)}
    columns = [column.field for column in SYSSTAT_9.extended]
    figures = dict(zip(columns, map(float, words[1:]), strict=True))
    values: dict[str, object] = {**zeros, **figures, "name": words[0]}
    return DeviceReport(**values)  # type: ignore[arg-type]
