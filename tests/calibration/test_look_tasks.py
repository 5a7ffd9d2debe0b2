"""Tasks from a load average: its smoothing undone, also of real kernels."""

import math
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.dataset import open_source
from calibration.look.tasks import PERIOD_S, UPDATE_S, active_tasks, tasks_of

GROUND_TRUTH = Path(os.environ.get("IOTWIN_SHARED", "../shared")) / "groundtruth"
# run -> tasks that its programs are, a journal's among them: fio's jobs, mailq's processes
PROGRAMS = {
    "a_randread/randread-jobs4-hdd7200.r1": 4,
    "a_randread/randread-jobs16-hdd7200.r1": 16,
    "c_mailq/ext4-p8-hdd7200.r1": 9,
    "c_mailq/ext4-p32-hdd7200.r1": 33,
    "c_mailq/xfs-p8-hdd7200.r1": 8,
}


def averages(tasks: float, first: float, seconds: int) -> list[tuple[float | None, float]]:
    """Return what a kernel shows each second, in hundredths, from an average on."""
    left = math.exp(-UPDATE_S / PERIOD_S)
    found: list[tuple[float | None, float]] = []
    average = first
    for second in range(seconds):
        if second % UPDATE_S == 3:
            average = average * left + tasks * (1 - left)
        found.append((float(second), round(average, 2)))
    return found


@given(tasks=st.integers(0, 60), first=st.floats(0, 60), seconds=st.integers(30, 300))
def test_the_tasks_behind_an_average_are_found_whatever_it_was_before(
    tasks: int, first: float, seconds: int
) -> None:
    """Two ends in hundredths over five updates or more: 0.01 / (1 - e^(-25/60)) = 0.03."""
    assert tasks_of(averages(tasks, first, seconds)) == pytest.approx(tasks, abs=0.1)


def test_an_average_that_stays_is_the_number_of_tasks() -> None:
    assert tasks_of([(0.0, 3.0), (1.0, 3.0), (2.0, 3.0)]) == 3.0


@pytest.mark.skipif(not GROUND_TRUTH.is_dir(), reason=f"no {GROUND_TRUTH}: set IOTWIN_SHARED")
@pytest.mark.parametrize("run", PROGRAMS)
def test_the_programs_of_a_real_kernel_are_counted(run: str) -> None:
    source = open_source([str(GROUND_TRUTH / run / "sar.txt.gz")])
    assert active_tasks(source.recordings) == pytest.approx(PROGRAMS[run], abs=0.2)
