"""Who was busy: what pidstat says of processes, beside what iostat says of the server."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from calibration.look.processes import look_at_processes
from calibration.readers import read_text
from sim.cli.look import command
from tests.calibration.more_texts import IOTOP, PIDSTAT, PIDSTAT_D


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


def test_nothing_is_said_of_processes_where_no_text_does() -> None:
    assert look_at_processes([read_text(IOTOP, "x")]) == []


def test_pidstat_alone_says_what_to_record_beside_it(tmp_path: Path) -> None:
    place = tmp_path / "pidstat.txt"
    place.write_text(PIDSTAT)
    result = CliRunner().invoke(command, [str(place)])
    assert "record `iostat -xz 5` beside pidstat" in str(result.exception)
