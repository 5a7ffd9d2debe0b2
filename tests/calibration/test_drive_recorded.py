"""The disk model against five real drives: from the data sheet alone, and fitted.

The traces are not part of the project: the tests are skipped, visibly, where they are absent. What
is asked is the same of all drives. Who chooses a disk has its data sheet: the mean time within 10 %
tells any two kinds of drive apart. Who has measured one asks for half of that.
"""

import os
from functools import cache
from pathlib import Path

import pytest

from calibration.evidence.drives import outcome_of

TRACES = Path(os.environ.get("IOTWIN_SHARED", "../shared")) / "disktraces"

needs_traces = pytest.mark.skipif(not TRACES.is_dir(), reason=f"no {TRACES}: set IOTWIN_SHARED")
pytestmark = needs_traces


@cache
def outcome(name, fit_requests):
    return outcome_of(TRACES, name, fit_requests)


DRIVES = ("cheetah9LP", "atlas10k", "ibm18es", "hp_c2490a", "dec_rz26")
OF_A_SHEET_PCT, OF_A_FIT_PCT = 10, 5  # of the mean time; mean error and demerit alike


@pytest.mark.parametrize("name", DRIVES)
def test_a_disk_described_by_its_data_sheet_is_as_fast_as_measured(name):
    found = outcome(name, 0).main()
    assert found.requests in (7980, 9984, 10_000)
    assert abs(found.mean_error_pct) <= OF_A_SHEET_PCT
    assert found.demerit_pct <= OF_A_SHEET_PCT


@pytest.mark.slow
@pytest.mark.parametrize("name", DRIVES)
def test_a_disk_fitted_to_a_thousand_requests_is_right_about_the_others(name):
    found = outcome(name, 1000).main()
    assert abs(found.mean_error_pct) <= OF_A_FIT_PCT
    assert found.demerit_pct <= OF_A_FIT_PCT


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, write_cache",
    [("cheetah9LP", True), ("ibm18es", True), ("hp_c2490a", False), ("dec_rz26", False)],
)
def test_the_fit_and_the_rules_agree_on_the_write_cache(name, write_cache):
    disks = [one.params for one in outcome(name, 1000).results]
    assert [one.write_cache for one in disks] == [write_cache, write_cache]
