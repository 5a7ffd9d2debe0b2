"""cat: the texts of /proc and /sys."""

import pytest

from sim.machine import Machine
from sim.scenario import load
from sim.tools.cat import PROC_FILES, parse_options, run_cat
from sim.tools.run import FILES, WHOLE
from sim.tools.snapshot import Snapshot
from sim.tools.usage import ToolUsageError

SNAPSHOT = Snapshot(
    0, {"loadavg": "0.00 0.01 0.05 1/99 4711\n", "cgroup/web/cpu.max": "max 100000\n"}
)


def test_files_are_printed_one_after_the_other():
    names = parse_options(["/sys/fs/cgroup/web/cpu.max", "/proc/loadavg"])
    assert list(run_cat(names, [SNAPSHOT])) == ["max 100000\n0.00 0.01 0.05 1/99 4711\n"]


def test_a_file_that_is_not_there_is_an_error_that_names_the_nearest():
    names = parse_options(["/sys/fs/cgroup/web/cpu.mex"])
    with pytest.raises(ToolUsageError, match=r"cgroup/web/cpu\.max"):
        list(run_cat(names, [SNAPSHOT]))


def test_where_nothing_is_near_folders_stand_for_their_files():
    with pytest.raises(ToolUsageError, match=r"allowed: cgroup/\.\.\., loadavg$"):
        list(run_cat(parse_options(["/proc/xyz"]), [SNAPSHOT]))


@pytest.mark.parametrize("words", [[], ["-n", "/proc/loadavg"], ["/etc/passwd"], ["/proc/"]])
def test_options_and_files_elsewhere_are_refused(words):
    with pytest.raises(ToolUsageError):
        parse_options(words)


def test_it_reads_all_of_proc():
    assert {*PROC_FILES, WHOLE} == set(FILES["cat"])


def test_every_file_of_proc_can_be_read():
    machine = Machine(load("sendmail"), 1)
    assert machine.proc.files() == PROC_FILES
