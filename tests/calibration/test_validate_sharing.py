"""Shares and waits of processes that compute: what the figures are, and how near they come."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.validate.compare import flat, validate_run
from calibration.validate.sharing import Hog, sharing

GROUND_TRUTH = Path(os.environ.get("IOTWIN_SHARED", "../shared")) / "groundtruth"
recorded = pytest.mark.skipif(
    not GROUND_TRUTH.is_dir(), reason=f"no {GROUND_TRUTH}: set IOTWIN_SHARED"
)
HOGS = st.builds(
    Hog, nice=st.integers(-20, 19), cpu_s=st.floats(0.01, 10), wall_s=st.floats(10, 20)
)


@given(st.lists(HOGS, min_size=1, max_size=9))
def test_the_shares_of_all_hogs_add_up_to_one(hogs):
    found = sharing(hogs, None, 0.0)
    assert sum(found[f"share, nice {hog.nice}"] for hog in hogs) == pytest.approx(1)


def test_a_wait_is_what_is_neither_computing_nor_the_disk():
    hogs = [Hog(nice=0, cpu_s=3, wall_s=10), Hog(nice=0, cpu_s=5, wall_s=10)]
    found = sharing(hogs, 20.0, 18.5)
    assert found["wait s, nice 0"] == pytest.approx(6)
    assert found["read's CPU wait ms"] == pytest.approx(1.5)


def test_processes_that_had_no_cpu_at_all_have_no_shares():
    assert sharing([Hog(nice=0, cpu_s=0, wall_s=1)], None, 0)["share, nice 0"] is None


@recorded
@pytest.mark.slow
@pytest.mark.parametrize("run", ["0,0,0,0", "0,0,5,10", "0,0,0,19,19"])
def test_runs_beside_nobody_share_two_cpus_as_recorded(run):
    row = validate_run(GROUND_TRUTH / "g_cpu" / f"cpu{run}-20s.r2", seed=1)
    errors = dict(flat(row.error()))
    for name, error in errors.items():
        if name.startswith(("share", "wait")):
            assert abs(error) < 0.05, name
    assert abs(errors["load"]) < 0.05


@recorded
@pytest.mark.slow
@pytest.mark.parametrize("run", ["g_cpu/cpu0,0,0-io6-hdd7200-25s", "u_g_cpu/cpu--io6-hdd7200-20s"])
def test_readers_wait_for_a_cpu_as_long_as_recorded(run):
    """Less than a millisecond, as the difference of two latencies of 75."""
    errors = dict(flat(validate_run(GROUND_TRUTH / f"{run}.r2", seed=1).error()))
    assert abs(errors["read's CPU wait ms"]) < 0.30
