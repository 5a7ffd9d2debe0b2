"""`python -m calibration drive`: a disk that the model knows, and the laws of its figures."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from calibration.__main__ import main
from calibration.drive.fit import fit
from calibration.drive.rules import GENERATIONS, params_of_sheet
from calibration.drive.score import distance_of_kinds, score, score_kinds
from calibration.drive.trace import KINDS, kinds
from sim.drivers.hdd import Hdd
from tests.calibration.drive_traces import (
    ROW,
    default_params,
    measured_on,
    requests,
    sheet,
    write_files,
)

TIMES = st.lists(st.integers(1, 10**9), min_size=1, max_size=50)


def run(*arguments):
    return CliRunner().invoke(main, ["drive", *arguments])


def test_a_trace_that_the_model_made_has_no_error(tmp_path):
    files = write_files(tmp_path, measured_on(default_params(), 500))
    found = json.loads(run(*files, "--json", "-").stdout)
    assert (found["mean_error_pct"], found["demerit_pct"], found["requests"]) == (0, 0, 500)


def positioning_ns(params):
    """Return what a read far away pays: the two parts can stand in for each other."""
    return params.positioning_overhead_ns + params.seek_average_ns


@pytest.mark.slow
@pytest.mark.parametrize(
    "write_cache, overhead_ns, write_overhead_ns", [(False, 700_000, 0), (True, 500_000, 200_000)]
)
def test_a_fit_finds_the_disk_that_made_the_trace(write_cache, overhead_ns, write_overhead_ns):
    start = default_params()
    true = replace(
        start,
        overhead_ns=overhead_ns,
        write_overhead_ns=write_overhead_ns,
        write_cache=write_cache,
        positioning_overhead_ns=500_000,
        interface_rate_bytes_per_s=3e6,
        read_on_arrival=True,
    )
    found = fit(start, measured_on(true, 1000), 1, lambda done, total: None)
    assert (found.write_cache, found.read_on_arrival) == (write_cache, True)
    assert found.overhead_ns == pytest.approx(overhead_ns, rel=0.1)
    assert found.write_overhead_ns == pytest.approx(write_overhead_ns, rel=0.1)
    assert found.interface_rate_bytes_per_s == pytest.approx(3e6, rel=0.05)
    assert positioning_ns(found) == pytest.approx(positioning_ns(true), rel=0.05)


def test_a_fit_looks_at_its_requests_only(tmp_path):
    trace = measured_on(default_params(), 400)
    spoilt = [replace(one, measured_ns=one.measured_ns * 2) for one in trace[200:]]
    disks = []
    for accesses in (trace, (*trace[:200], *spoilt)):
        files = write_files(tmp_path, accesses)
        found = json.loads(run(*files, "--fit", "200", "--json", "-").stdout)
        disks.append(found["disks"]["fit"])
    assert disks[0] == disks[1]
    assert found["mean_error_pct"] < -45
    assert found["requests"] == 200


def test_the_figures_are_of_all_requests_or_of_those_behind_the_fit(tmp_path):
    files = write_files(tmp_path, measured_on(default_params(), 300))
    told = [json.loads(run(*files, *more, "--json", "-").stdout) for more in ([], ["--fit", "100"])]
    assert [one["requests"] for one in told] == [300, 200]
    assert [one["parameters"] for one in told] == ["data sheet", "fit"]
    assert {(one["parameters"], one["of"]) for one in told[1]["results"]} == {
        ("data sheet", "first 100"),
        ("data sheet", "the rest"),
        ("fit", "first 100"),
        ("fit", "the rest"),
    }


def test_the_table_the_file_and_the_picture_are_written(tmp_path):
    files = write_files(tmp_path, measured_on(default_params(), 200))
    result = run(*files, "--json", f"{tmp_path}/a.json", "--plot", f"{tmp_path}/a.png")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == "drive maker1, seed 1, 200 requests"
    assert "data sheet  all       all                  200" in result.stdout
    assert json.loads((tmp_path / "a.json").read_text())["demerit_pct"] == 0
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


# -- Figures.


@given(TIMES)
def test_equal_times_have_no_error(times):
    found = score(times, times[::-1])
    assert (found.mean_error_pct, found.demerit_pct) == (0, 0)


@given(st.data(), TIMES)
def test_the_demerit_is_no_less_than_the_mean_error(data, measured):
    count = len(measured)
    simulated = data.draw(st.lists(st.integers(1, 10**9), min_size=count, max_size=count))
    found = score(measured, simulated)
    assert abs(found.mean_error_pct) <= found.demerit_pct + 1e-9


def test_times_that_are_a_tenth_longer_are_off_by_a_tenth_of_the_mean():
    found = score([100, 300], [330, 110])
    assert found.mean_error_pct == pytest.approx(10)
    assert found.demerit_pct == pytest.approx(100 * ((10**2 + 30**2) / 2) ** 0.5 / 200)


def test_kinds_are_told_from_places_and_cover_every_request():
    asked = requests(2000, 4_000_000)
    told = kinds(asked)
    assert set(told) == set(KINDS)
    found = score_kinds(told, [one.think_ns for one in asked], [one.think_ns for one in asked])
    assert sum(one.requests for one in found.values()) == 2000


def test_each_kind_is_weighed_by_its_number_and_its_own_mean():
    told = [KINDS[0], KINDS[0], KINDS[1]]
    assert distance_of_kinds(told, [10, 10, 1000], [11, 11, 1100]) == pytest.approx(0.1)
    assert distance_of_kinds(told, [10, 10, 1000], [20, 20, 1000]) == pytest.approx(2 / 3)


# -- Rules from a data sheet.


def test_the_disk_has_the_data_sheets_tracks():
    geometry = Hdd(default_params()).geometry
    turn_ns = geometry.revolution_ns
    assert turn_ns == round(60e9 / 7200)
    assert geometry.sectors_before(4_000_000 - 1, turn_ns) < 130
    assert geometry.sectors_before(199, turn_ns) == 199
    assert geometry.sectors_before(200, turn_ns) == 0
    mean_per_track = 4_000_000 / (5 * 165)
    assert geometry.cylinders == pytest.approx(mean_per_track, rel=0.01)


def test_a_faster_medium_is_of_a_later_generation():
    early, late = GENERATIONS
    slow = params_of_sheet(
        sheet(blocks_per_track_outer=120, blocks_per_track_inner=80, blocks_512=2_000_000)
    )
    fast = params_of_sheet(sheet())
    assert (slow.write_cache, fast.write_cache) == (early.write_cache, late.write_cache)
    assert slow.overhead_ns > fast.overhead_ns


def test_heads_settle_after_a_switch_whatever_the_data_sheet_says():
    assert default_params(head_switch_ms=0).head_switch_ns == 800_000
    assert default_params(head_switch_ms=0.95).head_switch_ns == 950_000


def test_the_name_of_a_drive_decides_nothing():
    assert params_of_sheet(sheet()) == params_of_sheet(sheet(name="Other"))
    assert ROW["name"] != "Other"
