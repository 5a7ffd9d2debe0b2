"""Recorded columns of a fit: of which file's reports they are."""

from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.dataset import DataSet
from calibration.fit.recorded import columns_of, reports_of
from calibration.samples import Recording, Sample
from sim.scenario import load
from sim.scenario.cases import shipped_fits
from sim.scenario.fitted import FitError

METRICS = ("cpu.iowait_pct", "disk.sda.w_per_s")
DATA_SET = DataSet(
    name="d", folder=Path(), title="", files=(), attachments=(), sha256={}, interval_s=10.0
)

SCENARIOS = sorted({path.name.partition(".")[0] for path in shipped_fits()})


def sample(report: int, name: str, column: str, value: float) -> Sample:
    return Sample(
        time_s=None,
        kind="cpu" if name == "all" else "device",
        name=name,
        column=column,
        value=value,
        since_boot=False,
        report=report,
        line=1,
    )


def recording(name: str, shares: list[float], writes: list[float]) -> Recording:
    rows = [sample(i, "all", "iowait_pct", value) for i, value in enumerate(shares)]
    rows += [sample(i, "sda", "w_per_s", value) for i, value in enumerate(writes)]
    return Recording(source=f"/folder/{name}", formats=(), samples=tuple(rows))


def test_shares_of_the_cpu_are_of_the_reports_of_the_disks_in_any_order_of_the_files() -> None:
    files = [
        recording("iostat.txt", [80.0, 90.0, 70.0], [1.0, 2.0, 3.0]),
        recording("top.txt", [82.0], []),
        recording("vmstat.txt", [10.0, 20.0], []),
    ]
    for order in permutations(files):
        found = reports_of(order, DATA_SET, METRICS)
        assert found == {"cpu.iowait_pct": [80.0, 90.0, 70.0], "disk.sda.w_per_s": [1.0, 2.0, 3.0]}


@given(st.lists(st.floats(0, 100), min_size=1, max_size=5))
def test_a_column_of_one_file_is_taken_from_it_with_or_without_disks(shares: list[float]) -> None:
    disks = recording("iostat.txt", [], [1.0])
    found = reports_of([disks, recording("top.txt", shares, [])], DATA_SET, METRICS)
    assert found["cpu.iowait_pct"] == shares


@pytest.mark.parametrize("writes", [[1.0], []])
def test_where_two_files_have_a_column_and_both_or_neither_the_disks_nothing_is_chosen(
    writes: list[float],
) -> None:
    files = [recording("sar.txt", [20.0], writes), recording("iostat.txt", [10.0], writes)]
    with pytest.raises(FitError, match=r"'d': 'cpu.iowait_pct' is in iostat.txt, sar.txt, and"):
        reports_of(files, DATA_SET, METRICS)


def test_factomds_shares_of_the_cpu_are_of_iostats_reports_as_its_account_says() -> None:
    scenario = load("factomd")
    assert scenario.calibrate is not None
    columns = {one.metric: one for one in columns_of(scenario, scenario.calibrate, ["before"])}
    # The three reports; top, later, had 82.3 and 0.6.
    assert columns["cpu.iowait_pct"].value == pytest.approx((83.93 + 89.55 + 72.87) / 3)
    assert columns["cpu.steal_pct"].value == pytest.approx((1.42 + 1.23 + 8.46) / 3)
    assert columns["cpu.steal_pct"].sampling > 0


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_column_of_a_shipped_fit_is_in_dispute_between_files(name: str) -> None:
    spec = load(name).calibrate
    assert spec is not None
    columns = columns_of(load(name), spec, list(spec.against))
    assert len(columns) == sum(len(one.columns) for one in spec.against.values())
