"""The disk model against disks that were measured: an emulated one under a real kernel, five real.

The data are not part of the project: the tests are skipped, visibly, where they are absent.
"""

import gzip
import json
import os
from pathlib import Path
from statistics import fmean

import pytest

from sim.block.bio import READ, WRITE
from sim.block.request import Request
from sim.drivers.hdd import Hdd, HddParams
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from tests.drivers.drives import await_ms, drive, random_reads

SHARED = Path(os.environ.get("IOTWIN_SHARED", "../shared"))
GROUND_TRUTH = SHARED / "groundtruth"
TRACES = SHARED / "disktraces"

needs_ground_truth = pytest.mark.skipif(
    not GROUND_TRUTH.is_dir(), reason=f"no {GROUND_TRUTH}: set IOTWIN_SHARED"
)
needs_traces = pytest.mark.skipif(not TRACES.is_dir(), reason=f"no {TRACES}: set IOTWIN_SHARED")


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
    rig = random_reads(drive("rig/hdd7200"), in_flight, count=4000)
    assert await_ms(rig) == pytest.approx(recorded_await_ms(family, name), rel=0.10)


def trace(name):
    """Return (op, sector, sectors, measured us, think us) of each request."""
    with gzip.open(TRACES / f"{name}.trace.gz", "rt") as lines:
        fields = [line.split() for line in lines]
    return [
        (WRITE if f[0] == "W" else READ, int(f[2]), int(f[3]), float(f[4]), float(f[5]))
        for f in fields
    ]


def from_data_sheet(name, overhead_ns, write_cache):
    """Return the drive that its data sheet describes, with an overhead usual in its time."""
    sheet = json.loads((TRACES / "drives.json").read_text(encoding="utf-8"))[name]
    turn_ns = 60e9 / sheet["rpm"]
    switch_ns = sheet["head_switch_ms"] * 1e6
    track_ns = turn_ns + switch_ns + (sheet["seek_ms_single"] * 1e6 - switch_ns) / sheet["surfaces"]
    rates = [
        sheet[f"blocks_per_track_{side}"] * 512 / track_ns * 1e9 for side in ("outer", "inner")
    ]
    return Hdd(
        HddParams(
            capacity_bytes=sheet["blocks_512"] * 512,
            rpm=sheet["rpm"],
            heads=sheet["surfaces"],
            outer_rate_bytes_per_s=rates[0],
            inner_rate_bytes_per_s=rates[1],
            seek_track_ns=int(sheet["seek_ms_single"] * 1e6),
            seek_average_ns=int(sheet["seek_ms_average"] * 1e6),
            seek_full_ns=int(sheet["seek_ms_full"] * 1e6),
            head_switch_ns=int(switch_ns),
            overhead_ns=overhead_ns,
            interface_rate_bytes_per_s=20e6,
            queue_depth=1,
            buffer_bytes=1 << 20,
            segments=16,
            write_cache=write_cache,
        )
    )


def replay(device, requests):
    """Issue each request its think time after the one before; return access times (us)."""
    calendar = Calendar()
    took_us = []

    def issue(_=None):
        op, sector, sectors, _, _ = requests[len(took_us)]
        device.submit(Request(op, sector, sectors, calendar.now))

    def complete(request):
        think_us = requests[len(took_us)][4]
        took_us.append((calendar.now - request.start_ns) / 1e3)
        if len(took_us) < len(requests):
            calendar.post(round(think_us * 1e3), issue, None)

    device.attach("trace", calendar, Streams(1), complete)
    issue()
    calendar.run()
    return took_us


def demerit(found, measured):
    """Return the RMS distance of two distributions, in per cent of the measured mean."""
    pairs = zip(sorted(found), sorted(measured), strict=True)
    return 100 * fmean((a - b) ** 2 for a, b in pairs) ** 0.5 / fmean(measured)


@needs_traces
@pytest.mark.parametrize(
    "name, overhead_ns, write_cache",
    [
        ("atlas10k", 500_000, True),
        ("ibm18es", 500_000, True),
        ("cheetah9LP", 500_000, True),
        # SCSI drives of 1992: narrow, slow buses, transfers not overlapped with the medium.
        ("dec_rz26", 2_000_000, False),
        ("hp_c2490a", 2_000_000, False),
    ],
)
def test_a_disk_described_by_its_data_sheet_is_as_fast_as_measured(name, overhead_ns, write_cache):
    requests = trace(name)
    measured = [request[3] for request in requests]
    found = replay(from_data_sheet(name, overhead_ns, write_cache), requests)
    assert fmean(found) == pytest.approx(fmean(measured), rel=0.12)
    assert demerit(found, measured) < 20
