"""CPU shares recorded on real kernels: Linux 7.2 with one CPU, 6.18 with two."""

import json
import os
from pathlib import Path

import pytest

from tests.sched.rig import Rig

SHARED = Path(os.environ.get("IOTWIN_SHARED", "../shared"))
RUNS = SHARED / "groundtruth"

pytestmark = pytest.mark.skipif(not RUNS.is_dir(), reason=f"no recordings at {RUNS}")


def recorded(run):
    content = json.loads((RUNS / run / "run.json").read_text())
    cpus = content["result"]["cpu"]
    return [cpu["nice"] for cpu in cpus], [cpu["share"] for cpu in cpus], content["kernel"]


def simulated(nices, seconds, cpus, hz):
    rig = Rig(cpus, (6, 18), hz=hz)
    hogs = rig.hogs(*nices)
    return rig.run(seconds).shares(hogs)


@pytest.mark.parametrize("run", ["cpu0,0,0,0-20s.r1", "cpu0,0,5,10-20s.r1", "cpu0,0,5,10-20s.r2"])
def test_shares_on_one_cpu_are_the_recorded_ones(run):
    nices, shares, kernel = recorded(f"u_g_cpu/{run}")
    assert simulated(nices, 20, 1, int(kernel["hz"])) == pytest.approx(shares, rel=0.02)


TWO_CPUS = ["cpu0,0,0,0-20s.r2", "cpu0,0,5,10-20s.r2", "cpu0,0,0,19,19-20s.r2"]


@pytest.mark.parametrize("run", TWO_CPUS)
def test_shares_on_two_cpus_are_near_the_recorded_ones(run):
    nices, shares, kernel = recorded(f"g_cpu/{run}")
    got = simulated(nices, 20, 2, int(kernel["hz"]))
    assert got == pytest.approx(shares, abs=0.03)
