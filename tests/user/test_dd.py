"""dd: bytes in are bytes out, its own lines, times that add up, a command line that is checked."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.readers import read_text
from sim.cli.main import cli
from sim.machine import simulate
from sim.scenario import ScenarioError
from sim.scenario.dd_command import PROCESS, dd_layer
from sim.scenario.load import load_text
from sim.tools.usage import ToolUsageError
from sim.user.dd import WORDINGS, amount, final_lines, rate
from tests.user.servers import EXT3, MS, RAM_DISK, boot, run_for, values_of

DEVICE = RAM_DISK + '[machine.mount."/"]\ntype = "tmpfs"'  # 2 ms a request, one at a time
MIB = 2**20


def dd(**params):
    keys = {"source": "if", "target": "of"}
    lines = [f"{keys.get(key, key)} = {value!r}" for key, value in params.items()]
    text = "\n".join(['[process.dd]\nprogram = "dd"', *lines])
    return text.replace("'", '"').replace("True", "true")


def ran(process, machine=DEVICE, seconds=30, **more):
    return run_for(boot(process, machine=machine, **more), seconds)


# -- What it copies.


@settings(max_examples=15, deadline=None)
@given(bs=st.integers(1, 300_000), blocks=st.integers(1, 40), seek=st.integers(0, 3))
def test_what_is_read_is_written_and_the_file_has_that_size(bs, blocks, seek):
    machine = ran(dd(target="/x", bs=f"{bs} B", blocks=blocks, seek=seek))
    assert values_of(machine, "dd_done") == [bs * blocks]
    assert machine.vfs.prepare_directory("/").entries["x"].size == bs * (blocks + seek)


def test_a_file_ends_with_a_partial_record():
    process = dd(source="/in", target="/out", bs="64 KiB", input_size="200000 B")
    machine = ran(process, EXT3)
    assert values_of(machine, "dd_done") == [200_000]
    assert values_of(machine, "stdout")[0].startswith("3+1 records in\n3+1 records out\n200000 b")


def test_records_passed_over_are_not_copied():
    process = dd(source="/in", bs="64 KiB", input_size="1 MiB", skip=12)
    assert values_of(ran(process, EXT3), "dd_done") == [4 * 65536]


@pytest.mark.parametrize("direct", [False, True])
def test_a_device_is_read_to_its_end(direct):
    small = DEVICE.replace("4 GiB", "8 MiB")
    process = dd(source="/dev/sda", bs="1 MiB", **({"input_direct": True} if direct else {}))
    machine = ran(process, small)
    assert values_of(machine, "dd_done") == [8 * MIB]
    assert machine.devices["sda"].stats.read_sectors == 8 * MIB // 512


def test_an_output_is_cut_unless_notrunc():
    grown = '[process.old]\nprogram = "dd"\nof = "/x"\nbs = "1 MiB"\nblocks = 4\n'
    for more, size in (({}, MIB), ({"notrunc": True}, 4 * MIB)):
        machine = ran(grown + dd(target="/x", bs="1 MiB", blocks=1, start="5 s", **more), EXT3)
        assert machine.vfs.prepare_directory("/").entries["x"].size == size


# -- How long it takes.


def test_direct_records_take_turns_with_the_device():
    """A record of 512 KiB is one request of 2 ms; nothing overlaps."""
    machine = ran(dd(source="/dev/sda", bs="512 KiB", blocks=100, input_direct=True))
    assert values_of(machine, "dd_ns")[0] == pytest.approx(100 * 2 * MS, rel=0.05)


def test_the_page_cache_takes_what_memory_holds_and_fdatasync_waits_for_it():
    fast = ran(dd(target="/x", bs="1 MiB", blocks=64), EXT3)
    slow = ran(dd(target="/x", bs="1 MiB", blocks=64, fdatasync=True), EXT3)
    requests = slow.devices["sda"].stats.writes
    [cached_ns], [durable_ns] = values_of(fast, "dd_ns"), values_of(slow, "dd_ns")
    assert cached_ns < 200 * MS
    assert cached_ns < durable_ns <= requests * 2 * MS + 2 * cached_ns
    assert durable_ns > 64 * 2 * 2 * MS  # at least in requests of 512 KiB
    assert slow.vm.nr_dirty < 64  # metadata at most


@pytest.mark.parametrize("flag", ["output_sync", "output_dsync"])
def test_a_synchronous_output_is_clean_after_every_record(flag):
    machine = ran(dd(target="/x", bs="1 MiB", blocks=8, **{flag: True}), EXT3, seconds=2)
    assert machine.devices["sda"].stats.write_sectors >= 8 * MIB // 512


def test_cpu_time_is_zeroing_and_copying_and_the_wall_is_no_less():
    machine = ran(dd(target="/x", bs="1 MiB", blocks=32))
    pages = 32 * 256
    [system] = values_of(machine, "dd_system_ns")
    per_page = machine.kernel.params.zero_page_ns + machine.vfs.params.page_copy_ns
    assert pages * per_page < system < 1.5 * pages * per_page  # tmpfs finds the pages
    assert values_of(machine, "dd_ns")[0] >= system + values_of(machine, "dd_user_ns")[0]


# -- What it prints.

LAST_LINES = {
    "5.0": "2147483648 bytes transferred in 16.088000 seconds (133483568 bytes/sec)",
    "5.91": "2147483648 bytes (2.1 GB) copied, 16.088 seconds, 133 MB/s",
    "6.10": "2147483648 bytes (2.1 GB) copied, 16.088 s, 133 MB/s",
    "8.24": "2147483648 bytes (2.1 GB, 2.0 GiB) copied, 16.088 s, 133 MB/s",
}


@pytest.mark.parametrize("wording", WORDINGS)
def test_the_last_line_is_that_of_its_release(wording):
    text = final_lines(2048, 0, 2048, 0, 2048 * MIB, 16_088_000_000, wording)
    first, second, last = text.splitlines()
    assert (first, second) == ("2048+0 records in", "2048+0 records out")
    assert last == LAST_LINES[wording]


def test_amounts_and_rates_are_rounded_as_recorded_ones():
    assert rate(8_589_934_592 / 136.916) == "62.7 MB"
    sizes = (999, 1000, 9_960_000, 80_000_000)
    shown = [amount(size, 1000, ("B", "kB", "MB", "GB")) for size in sizes]
    assert shown == ["999 B", "1.0 kB", "10 MB", "80 MB"]
    assert final_lines(0, 1, 0, 1, 512, 10**6, "8.24").endswith(
        "512 bytes copied, 0.001 s, 512 kB/s\n"
    )


@pytest.mark.parametrize("wording", WORDINGS)
def test_our_reader_reads_it_back(wording):
    text = final_lines(10, 0, 10, 0, 10 * MIB, 2_000_000_000, wording)
    [sample] = [s for s in read_text(text, "x").samples if s.column.endswith("per_s")]
    assert sample.value == pytest.approx(10 * MIB / 2, rel=1e-6)


@pytest.mark.parametrize(
    ("kernel", "wording"), [("2.6.18", "5.91"), ("2.6.32", "6.10"), ("4.9", "8.24")]
)
def test_the_wording_is_that_of_the_kernel_s_days(kernel, wording):
    machine = ran(dd(bs="1 MiB", blocks=1), sets=[f'machine.kernel="{kernel}"'])
    assert machine.scenario.processes["dd"].params.wording == wording


def test_a_missing_input_is_told_as_dd_does():
    machine = ran(dd(source="/nosuch", bs="1 MiB"))
    told = "No such file or directory\n"
    assert values_of(machine, "stdout") == [f"dd: opening `/nosuch': {told}"]
    assert values_of(machine, "dd_failed") == [2]
    machine = ran(dd(source="/nosuch", bs="1 MiB"), sets=['machine.kernel="4.9"'])
    assert values_of(machine, "stdout") == [f"dd: failed to open '/nosuch': {told}"]


def test_a_full_device_is_told_with_the_name_that_was_given():
    machine = ran(dd(target="/dev/sda", bs="64 MiB"), seconds=300)
    assert values_of(machine, "stdout")[0] == "dd: writing `/dev/sda': No space left on device\n"


# -- Typed.


def typed(*argv):
    return CliRunner().invoke(cli, ["exec", "generic", "--", *argv], prog_name="iotwin")


def test_dd_is_typed_with_time_before_it():
    result = typed("time", "dd", "if=/dev/zero", "of=/test", "bs=1M", "count=16")
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[:2] == ["16+0 records in", "16+0 records out"]
    assert lines[2].startswith("16777216 bytes (17 MB) copied, 0.")
    assert [line.split("\t")[0] for line in lines[3:]] == ["", "real", "user", "sys"]


BUSY = """
title = "a server that copies already"
[machine]
kernel = "4.9"
memory = "256 MiB"
[machine.mount."/"]
type = "tmpfs"
[process.copies]
program = "dd"
if = "/dev/zero"
of = "/dev/null"
blocks = 3
[run]
duration = "10 s"
until = "dd_done"
"""


def test_a_typed_dd_is_told_apart_from_the_scenario_s_own(tmp_path):
    """The scenario's ends long before: the run goes on until the typed one has ended."""
    (tmp_path / "busy.toml").write_text(BUSY)
    words = ["time", "dd", "if=/dev/zero", "of=/test", "bs=1M", "count=16"]
    words = ["exec", str(tmp_path / "busy.toml"), "--", *words]
    result = CliRunner().invoke(cli, words, prog_name="iotwin")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[:2] == ["16+0 records in", "16+0 records out"] and len(lines) == 7


def test_a_run_can_end_with_one_process():
    early, late = (
        f'[process.{name}]\nprogram = "dd"\nbs = "1 MiB"\nblocks = 3\nstart = "{start}"\n'
        for name, start in (("early", "1 s"), ("late", "7 s"))
    )
    base = BUSY.split("[process")[0] + early + late + '[run]\nduration = "9 s"\nuntil = '
    ends = {}
    for until in ("dd_done", "early.dd_done", "late.dd_done"):
        scenario = load_text(f'{base}"{until}"\n', Path("two.toml"), seed=1)
        ends[until] = {record.comm for record in simulate(scenario, 1).marks("dd_done")}
    assert ends == {
        "dd_done": {"early"},
        "early.dd_done": {"early"},
        "late.dd_done": {"early", "late"},
    }
    with pytest.raises(ScenarioError, match=r"unknown mark 'late\.dd_begins'"):
        load_text(f'{base}"late.dd_begins"\n', Path("two.toml"), seed=1)


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("bs=1Q", "bs=1Q: invalid number; allowed: digits and one of"),
        ("bs=0", "bs=0: invalid number; allowed: 1 or more"),
        ("oflag=dircet", "invalid flag 'dircet' - did you mean 'direct'?"),
        ("cuont=3", "unrecognized operand 'cuont=3' - did you mean 'count'?"),
        ("status=none", "unrecognized operand 'status=none'"),
        ("of=here", "of=here: no path"),
    ],
)
def test_a_wrong_operand_is_refused_with_what_is_allowed(word, told):
    result = typed("dd", "if=/dev/zero", word)
    assert result.exit_code == 2 and told in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("number", "size"), [("1M", MIB), ("1MB", 10**6), ("2x3k", 6144), ("4b", 2048), ("7", 7)]
)
def test_sizes_are_dd_s(number, size):
    table = dd_layer([f"bs={number}", "if=/a", "of=/b"], 0).table("process").table(PROCESS)
    assert table.leaf("bs").value == f"{size} B"


def test_both_sides_must_be_named():
    with pytest.raises(ToolUsageError, match="'of=' is missing"):
        dd_layer(["if=/dev/zero"], 0)
