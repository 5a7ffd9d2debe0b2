"""What `python -m calibration drive` says of files that it cannot use; exit code 2, one message."""

import gzip
import json

import pytest
from click.testing import CliRunner

from calibration.__main__ import main
from calibration.drive.rules import params_of_sheet
from tests.calibration.drive_traces import (
    ROW,
    default_params,
    measured_on,
    sheet,
    text,
    write_files,
)


@pytest.fixture
def files(tmp_path):
    return write_files(tmp_path, measured_on(default_params(), 200))


def message(*arguments):
    result = CliRunner().invoke(main, ["drive", *map(str, arguments)])
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    return result.stderr


def test_a_drive_that_is_not_there_gets_the_nearest_name(files, tmp_path):
    said = message(files[0], "--drive", f"{tmp_path}/sheets.json:maker2")
    assert "sheets.json: no drive 'maker2' - did you mean 'maker1'? (accepted: maker1)" in said


@pytest.mark.parametrize("reference", ["sheets.json", ":maker1", "sheets.json:"])
def test_a_drive_is_a_file_and_a_name(files, reference):
    assert "--drive: no file and name" in message(files[0], "--drive", reference)


@pytest.mark.parametrize(
    "change, said",
    [
        ({"rpm": 0}, "maker1: rpm: is not possible, got 0 (accepted: a number above 0)"),
        (
            {"head_switch_ms": -1},
            "head_switch_ms: is not possible, got -1",
        ),
        ({"rpm": "7200"}, "maker1: rpm: is not a number, got '7200'"),
        ({"surfaces": 2.5}, "surfaces: is not possible, got 2.5 (accepted: a whole number"),
        ({"seek_ms_full": 7}, "seek_ms_full: below seek_ms_average, got 7 (accepted: at least 8)"),
        ({"blocks_512": 10**9}, "blocks_512: more than surfaces x cylinders"),
    ],
)
def test_a_row_that_cannot_be_names_the_number(tmp_path, change, said):
    files = write_files(tmp_path, measured_on(default_params(), 5), maker1=ROW | change)
    assert said in message(*files)


@pytest.mark.parametrize("change", [{"head_switch_ms": None}, {"blocks_512": 5_200_000}])
def test_what_sheets_leave_out_or_round_is_no_mistake(change):
    """Nothing on changes of heads; four in a hundred blocks more than the outermost zone allows."""
    found = sheet(**change)
    assert found.head_switch_ms == (0.9 if "blocks_512" in change else 0.0)
    assert params_of_sheet(found).head_switch_ns >= 800_000


def test_a_missing_number_is_named_with_what_may_have_been_meant(tmp_path):
    row = {key: value for key, value in ROW.items() if key != "seek_ms_full"}
    files = write_files(
        tmp_path, measured_on(default_params(), 5), maker1=row | {"seek_ms_ful": 16}
    )
    assert "maker1: no seek_ms_full - is it 'seek_ms_ful'?" in message(*files)


@pytest.mark.parametrize("content, said", [("{", "sheets.json:1:2: no JSON"), ("[]", "object")])
def test_sheets_that_are_no_object_of_rows_are_refused(files, tmp_path, content, said):
    (tmp_path / "sheets.json").write_text(content)
    assert said in message(*files)


@pytest.mark.parametrize(
    "line, said",
    [
        ("R Hit 5 4 100.0", "trace.gz:4: 5 fields, not 6"),
        ("X Hit 5 4 100.0 5.0", "trace.gz:4: no such operation, got 'X' (accepted: R, W)"),
        ("R Hit -5 4 100.0 5.0", "trace.gz:4: first block: is not possible, got '-5'"),
        ("R Hit 5 0 100.0 5.0", "trace.gz:4: blocks: is not possible, got '0'"),
        ("R Hit 5 4 abc 5.0", "trace.gz:4: access time: is not possible, got 'abc'"),
        ("R Hit 5 4 nan 5.0", "trace.gz:4: access time: is not possible, got 'nan'"),
        ("R Hit 5 4 0 5.0", "trace.gz:4: access time: none"),
        ("R Hit 5 4 100.0 -1", "trace.gz:4: time to the next request: is not possible"),
        (
            "R Hit 3999999 4 100.0 5.0",
            "trace.gz:4: ends behind the drive's last block",
        ),
    ],
)
def test_a_bad_line_is_told_with_its_number(files, tmp_path, line, said):
    lines = text(measured_on(default_params(), 3)) + line + "\n"
    (tmp_path / "trace.gz").write_bytes(gzip.compress(lines.encode()))
    assert said in message(*files)


def test_a_trace_that_was_cut_is_told_so(files, tmp_path):
    whole = (tmp_path / "trace.gz").read_bytes()
    (tmp_path / "trace.gz").write_bytes(whole[: len(whole) // 2])
    assert "the compressed file is cut or damaged" in message(*files)


def test_a_trace_that_is_not_compressed_is_told_so(files, tmp_path):
    (tmp_path / "trace.gz").write_text("R Hit 5 4 100.0 5.0\n")
    assert "is not compressed by gzip" in message(*files)


def test_an_empty_or_missing_trace_is_told_so(files, tmp_path):
    (tmp_path / "trace.gz").write_bytes(gzip.compress(b"\n"))
    assert "trace.gz: has no request" in message(*files)
    (tmp_path / "trace.gz").unlink()
    assert "trace.gz: cannot be read: No such file or directory" in message(*files)


def test_a_fit_must_leave_something_to_score(files):
    assert "--fit: leaves no request to score, got 200" in message(*files, "--fit", "200")
    assert "99 is not in the range x>=100" in message(*files, "--fit", "99")


def test_where_nothing_can_be_written_nothing_is_computed(files, tmp_path):
    said = message(*files, "--json", f"{tmp_path}/none/a.json")
    assert "cannot write" in said and "no folder" in said


def test_an_error_leaves_the_old_file(files, tmp_path):
    (tmp_path / "a.json").write_text("old")
    (tmp_path / "sheets.json").write_text(json.dumps({}))
    message(*files, "--json", f"{tmp_path}/a.json")
    assert (tmp_path / "a.json").read_text() == "old"
