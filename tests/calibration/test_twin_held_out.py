"""A part of a recording held out: whole reports in one part each, and what is predicted of it."""

import gzip
import json
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.dataset import DataSet, Source
from calibration.look import look
from calibration.look.summary import Look
from calibration.readers import read_text
from calibration.twin.columns import columns_of_run
from calibration.twin.fitting import draw_draft, fit_draft
from calibration.twin.held_out import TooShort, held_out_text, predict_rest, split
from sim.cli.main import cli
from sim.study.laboratory import Laboratory

GROUND_TRUTH = Path(os.environ.get("IOTWIN_SHARED", "../shared")) / "groundtruth"
TITLE = "Linux 6.1.0 (one)  2026-11-21  _x86_64_  (2 CPU)\n\n"
REPORT = """\
2026-11-21 10:{minute:02d}:{second:02d}
avg-cpu:  %user   %nice %system %iowait  %steal   %idle
          {user:.2f}    0.00    5.00    1.00    0.00   {idle:.2f}

Device   r/s  rkB/s  w/s  wkB/s  r_await  w_await  aqu-sz  %util
sda     10.00  80.00 0.00 0.00 5.00 0.00 0.05 {util:.2f}

"""


def text(reports: int) -> str:
    """Return a text of iostat: the first report is since boot, %user is the report's number."""
    rows = [
        REPORT.format(minute=n // 60, second=n % 60, user=n, idle=94 - n, util=5)
        for n in range(reports)
    ]
    return TITLE + "".join(rows)


def source_of(reports: int, data_set: DataSet | None = None) -> Source:
    return Source(name="one", recordings=(read_text(text(reports), "one"),), data_set=data_set)


def users(source: Source) -> list[float]:
    """Return %user of the intervals that are used."""
    return [one.cpu["user_pct"] for one in look(source).used]


@settings(max_examples=30)
@given(reports=st.integers(5, 40), share=st.floats(0.01, 0.99))
def test_each_interval_is_in_one_part_and_the_first_part_comes_first(
    reports: int, share: float
) -> None:
    whole = source_of(reports)
    try:
        first, rest = split(whole, share)
    except TooShort:
        assert min(share, 1 - share) * (reports - 1) < 2.5
        return
    assert users(first) + users(rest) == users(whole)
    assert len(users(rest)) == round(share * (reports - 1))


def test_warm_up_and_cool_down_are_in_no_part(tmp_path: Path) -> None:
    data = DataSet(
        name="one",
        folder=tmp_path,
        title="",
        files=(),
        attachments=(),
        sha256={},
        interval_s=1.0,
        warm_up_s=4.0,
        cool_down_s=3.0,
    )
    first, rest = split(source_of(21, data), 0.5)
    # 20 intervals of 1 s: 1 to 4 warm up, 18 to 20 cool down; 13 are left.
    assert users(first) == [5, 6, 7, 8, 9, 10, 11]
    assert users(rest) == [12, 13, 14, 15, 16, 17]


def test_a_line_that_was_refused_stays_with_its_part() -> None:
    broken = text(12).replace("sda     10.00", "sda     1x.00").replace("1x", "10", 9)
    recording = read_text(broken, "one")
    assert recording.problems
    first, rest = split(Source(name="one", recordings=(recording,)), 0.5)
    assert first.recordings[0].problems == ()
    assert rest.recordings[0].problems == recording.problems


@pytest.mark.parametrize("reports", [2, 3, 4])
def test_too_few_intervals_are_refused(reports: int, tmp_path: Path) -> None:
    path = tmp_path / "iostat.txt"
    path.write_text(text(reports))
    done = CliRunner().invoke(cli, ["twin", str(path), "--hold-out", "50"])
    assert done.exit_code == 2
    assert f"{reports - 1} intervals are too few to hold out 50 % of them" in done.stderr


def recorded(run: str) -> Source:
    """Return a run's iostat, its loop device called by a disk's name."""
    packed = (GROUND_TRUTH / run / "iostat.txt.gz").read_bytes()
    named = re.sub(r"^loop\d+ ", "sdb ", gzip.decompress(packed).decode(), flags=re.MULTILINE)
    return Source(name="run", recordings=(read_text(named, "iostat.txt"),))


def parts(run: str) -> tuple[Look, Look]:
    first, rest = split(recorded(run), 0.5)
    return look(first), look(rest)


@pytest.mark.slow
@pytest.mark.skipif(not GROUND_TRUTH.is_dir(), reason=f"no {GROUND_TRUTH}: set IOTWIN_SHARED")
def test_the_second_half_of_a_real_recording_is_inside_what_the_first_predicts(
    tmp_path: Path,
) -> None:
    """One writer of 12 KiB files with fsync on ext3, under a real kernel."""
    first, rest = parts("c_mailq/ext3-p1-hdd7200.r1")
    twin = fit_draft(
        draw_draft(first, 1),
        first,
        tmp_path / "twin.toml",
        comment="a test\n",
        seed=1,
        simulations=32,
        laboratory=Laboratory(measure=columns_of_run),
    )
    held = predict_rest(twin, first, rest)
    assert held.inside >= len(held.rows) - 1, held_out_text(held)


@pytest.mark.slow
def test_the_command_tells_what_was_predicted_and_what_came(tmp_path: Path) -> None:
    path, place = tmp_path / "iostat.txt", tmp_path / "told.json"
    steady = re.sub(r"^ +\d+\.00    0\.00 .*$", "  5 0 5 1 0 89", text(21), flags=re.MULTILINE)
    path.write_text(steady.replace("  5 0 5 1 0 89", "  5.00 0.00 5.00 1.00 0.00 89.00"))
    arguments = [
        "twin",
        str(path),
        "--hold-out",
        "50",
        "--simulations",
        "24",
        "--jobs",
        "1",
        "-o",
        str(tmp_path / "one.toml"),
        "--json",
        str(place),
    ]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.stderr
    assert "Held out: the last 10 intervals, predicted from the first 10" in done.stdout
    assert "--hold-out 50" in (tmp_path / "one.toml").read_text()
    told = json.loads(place.read_text())["held_out"]
    assert (told["first"], told["rest"]) == (10, 10)
    user = told["columns"]["cpu user_pct"]
    assert user["first"] == user["recorded"] == 5
    assert user["lo"] < 5 < user["hi"]
