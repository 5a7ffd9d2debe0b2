"""Who was busy: what pidstat says of processes, beside what iostat says of the server."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from calibration.look import report
from calibration.look.processes import (
    ProcessLook,
    likeliest_writer,
    look_at_processes,
    sleepers,
)
from calibration.readers import read_text
from calibration.samples import Recording
from sim.cli.look import command
from tests.calibration.more_texts import IOTOP, PIDSTAT, PIDSTAT_D
from tests.calibration.texts import samples_of_tasks, task


def test_a_process_without_a_row_did_nothing_in_that_report() -> None:
    found = {one.name: one for one in look_at_processes([read_text(PIDSTAT_D, "x")])}
    # 1024 and 512 KiB/s; 117 KiB/s in one of two reports.
    assert found["postgres: writer[50]"].read_bytes_per_s == pytest.approx(768 * 1024)
    assert found["a b c[44]"].write_bytes_per_s == pytest.approx(58.5 * 1024)
    assert found["a b c[44]"].cpu_pct is None


def test_the_busiest_come_first() -> None:
    names = [one.name for one in look_at_processes([read_text(PIDSTAT, "x")])]
    assert names[0] == "python[23071]"
    assert len(names) == 4


def asleep_in(*seconds: str) -> Recording:
    """Return a recording with the tasks that sleep uninterruptibly, at one sample a second."""
    return read_text(samples_of_tasks(*seconds), "proc.txt")


def test_of_a_recorder_s_samples_each_command_is_told_with_how_many_slept() -> None:
    """By hand: two of four samples have one postgres, one has two: 4 / 4 on average."""
    of_kernel = 0x00200000 | 0x40
    one = asleep_in(
        task("postgres") + task("jbd2/sda1-8", flags=of_kernel),
        task("postgres") * 2 + task("kworker/u4:1-flush-8:0", flags=of_kernel),
        task("a) b") + task("postgres", "R"),
        task("postgres") + task("kworker/1:2H", flags=of_kernel) + task("iou-wrk-77"),
    )
    asleep = {"postgres": 1, "a) b": 0.25, "[jbd2/sda1-8]": 0.25, "[kworker]": 0.5, "iou-wrk": 0.25}
    assert sleepers([one]) == asleep
    found = look_at_processes([one])
    assert found[0].name == "postgres"
    assert {process.name: process.asleep for process in found} == asleep


@pytest.mark.parametrize(
    ("seconds", "most"),
    [
        ([task("postgres")] * 4, "postgres"),
        ([task("postgres")] * 3, None),  # by chance of who has half of them: 1 / 8
        ([task("a") + task("b")] * 4, None),
        ([task("postgres") * 2] * 4 + [task("fio")], "postgres"),  # 8 of 9: 10 / 512
        ([task("jbd2/sda1-8", flags=0x00200040) * 5 + task("postgres")] * 4, "postgres"),
        ([task("jbd2/sda1-8", flags=0x00200040)] * 8, None),
    ],
)
def test_whose_most_tasks_are_that_are_seen_asleep(seconds: list[str], most: str | None) -> None:
    found = likeliest_writer([asleep_in(*seconds)])
    assert found == (most and (most, f"most tasks seen in D are {most}'s"))


def test_else_it_is_told_by_who_wrote_most_whatever_its_processes_are_called() -> None:
    assert likeliest_writer([read_text(PIDSTAT_D, "x")]) == ("a b c", "a b c wrote most")
    titles = PIDSTAT_D.replace("a b c", "postgres: u b [local] COMMIT")
    assert likeliest_writer([read_text(titles, "x")]) == ("postgres", "postgres wrote most")
    journal = PIDSTAT_D.replace("a b c", "jbd2/sda1-8")
    assert likeliest_writer([read_text(journal, "x")]) is None
    assert likeliest_writer([]) is None
    asleep = [read_text(PIDSTAT_D, "x"), asleep_in(*[task("postgres")] * 5)]
    assert likeliest_writer(asleep) == ("postgres", "most tasks seen in D are postgres's")


def test_nothing_is_said_of_processes_where_no_text_does() -> None:
    assert look_at_processes([read_text(IOTOP, "x")]) == []


def test_pidstat_alone_says_what_to_record_beside_it(tmp_path: Path) -> None:
    place = tmp_path / "pidstat.txt"
    place.write_text(PIDSTAT)
    result = CliRunner().invoke(command, [str(place)])
    assert "record `iostat -xz 5` beside pidstat" in str(result.exception)


def test_a_column_that_no_table_had_is_not_printed() -> None:
    heading, row = report._processes([ProcessLook(name="postgres", asleep=0.2)])
    assert heading.split() == ["in", "D"]
    assert row.split() == ["postgres", "0.20"]
    assert list(report._processes([ProcessLook(name="postgres")])) == []
