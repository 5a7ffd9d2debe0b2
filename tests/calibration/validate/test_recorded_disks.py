"""The disk model against a disk that was measured: an emulated one under a real kernel.

Real drives: tests/calibration/test_drive_recorded.py. The data are not part of the project: the
tests are skipped, visibly, where they are absent.
"""

import json
import os
from pathlib import Path

import pytest

from tests.drivers.drives import await_ms, drive, random_reads

HDD7200 = Path(__file__).with_name("hdd7200.toml")
SHARED = Path(os.environ.get("IOTWIN_SHARED", "../shared"))
GROUND_TRUTH = SHARED / "groundtruth"

needs_ground_truth = pytest.mark.skipif(
    not GROUND_TRUTH.is_dir(), reason=f"no {GROUND_TRUTH}: set IOTWIN_SHARED"
)


def recorded_await_ms(family, name):
    found = []
    for path in sorted((GROUND_TRUTH / family).glob(f"{name}.r*/run.json")):
        found.append(json.loads(path.read_text(encoding="utf-8"))["summary"]["r_await"])
    return sorted(found)[len(found) // 2]


@needs_ground_truth
@pytest.mark.parametrize(
    "family, name, in_flight",
    [
        ("a_randread", "randread-jobs1-hdd7200", 1),
        ("a_randread", "randread-qd4-hdd7200", 4),
        ("a_randread", "randread-jobs16-hdd7200", 16),
        ("u_a_randread", "randread-jobs1-hdd7200", 1),
        ("u_a_randread", "randread-jobs4-hdd7200", 4),
        ("u_a_randread", "randread-jobs16-hdd7200", 16),
    ],
)
def test_random_reads_take_as_long_as_recorded(family, name, in_flight):
    rig = random_reads(drive(HDD7200), in_flight, count=4000)
    assert await_ms(rig) == pytest.approx(recorded_await_ms(family, name), rel=0.10)
