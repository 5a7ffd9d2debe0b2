"""Shares and waits of processes that compute: what the figures are, and how near they come."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.validate import stored
from calibration.validate.compare import flat
from calibration.validate.limits import AWAIT, WITHIN
from calibration.validate.sharing import Hog, sharing

DATA = Path(__file__).resolve().parents[3] / "docs" / "runs" / "validation.json"
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


@pytest.fixture(scope="module")
def errors():
    """Return a function from a recorded run's id to its stored relative errors."""
    found = {
        one.row.id: dict(flat(one.row.error())) for one in stored.read(DATA) if one.row.predicted
    }
    return found.__getitem__


@pytest.mark.parametrize("run", ["0,0,0,0", "0,0,5,10", "0,0,0,19,19"])
def test_runs_beside_nobody_share_two_cpus_by_their_weights(errors, run):
    """Weights are exact: what is asked is more than of disks."""
    told = errors(f"g_cpu/cpu{run}-20s.r2")
    for name, error in told.items():
        if name.startswith(("share", "wait")):
            assert abs(error) < 0.05, name
    assert abs(told["load"]) < 0.05


@pytest.mark.parametrize("run", ["g_cpu/cpu0,0,0-io6-hdd7200-25s", "u_g_cpu/cpu--io6-hdd7200-20s"])
def test_readers_wait_for_a_cpu_as_long_as_recorded(errors, run):
    """Less than a millisecond, as the difference of two latencies of 75; asked as of any time."""
    assert abs(errors(f"{run}.r2")["read's CPU wait ms"]) < WITHIN[AWAIT]
