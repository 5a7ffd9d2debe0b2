"""The disk model against five real drives: from the data sheet alone, and fitted.

The traces are not part of the project: the tests are skipped, visibly, where they are absent. The
bounds are what was found, rounded away from zero (calibration/README.md has the figures).
"""

import os
from functools import cache
from pathlib import Path

import pytest

from calibration.drive.outcome import confront
from calibration.drive.sheet import read_sheet
from calibration.drive.trace import read_trace

TRACES = Path(os.environ.get("IOTWIN_SHARED", "../shared")) / "disktraces"

needs_traces = pytest.mark.skipif(not TRACES.is_dir(), reason=f"no {TRACES}: set IOTWIN_SHARED")
pytestmark = needs_traces


@cache
def outcome(name, fit_requests):
    sheet = read_sheet(f"{TRACES}/drives.json:{name}")
    accesses = read_trace(TRACES / f"{name}.trace.gz", sheet.blocks_512)
    return confront(
        sheet, accesses, fit_requests=fit_requests, seed=1, tell=lambda done, total: None
    )


@pytest.mark.parametrize(
    "name, mean_pct, demerit_pct",
    [
        ("cheetah9LP", -3, 7), ("atlas10k", 7, 10), ("ibm18es", 2, 4),
        ("hp_c2490a", -7, 8), ("dec_rz26", -2, 4),
    ],
)  # fmt: skip
def test_a_disk_described_by_its_data_sheet_is_as_fast_as_measured(name, mean_pct, demerit_pct):
    found = outcome(name, 0).main()
    assert found.requests in (7980, 9984, 10_000)
    assert min(mean_pct, 0) <= found.mean_error_pct <= max(mean_pct, 0)
    assert found.demerit_pct <= demerit_pct


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, demerit_pct",
    [("cheetah9LP", 3), ("atlas10k", 4), ("ibm18es", 4), ("hp_c2490a", 2), ("dec_rz26", 4)],
)
def test_a_disk_fitted_to_a_thousand_requests_is_right_about_the_others(name, demerit_pct):
    found = outcome(name, 1000).main()
    assert abs(found.mean_error_pct) <= 2
    assert found.demerit_pct <= demerit_pct


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, write_cache",
    [("cheetah9LP", True), ("ibm18es", True), ("hp_c2490a", False), ("dec_rz26", False)],
)
def test_the_fit_and_the_rules_agree_on_the_write_cache(name, write_cache):
    disks = [one.params for one in outcome(name, 1000).results]
    assert [one.write_cache for one in disks] == [write_cache, write_cache]
