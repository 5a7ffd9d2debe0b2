"""Recorded columns: on their scale of comparison, as sure as is declared."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.fit.columns import RecordedColumn, matrix, recorded_columns
from calibration.fit.recorded import columns_of
from sim.scenario import load
from sim.scenario.calibrate import AgainstSpec, ColumnSpec
from sim.study.recorded import Figure, FigureSet


def column(value: float, unit: str, **more: float) -> RecordedColumn:
    parts = {"resolution": 0.0, "sampling": 0.0, "discrepancy": 0.0} | more
    return RecordedColumn(
        name="c", part="before", metric="m", unit=unit, value=value, bounds=None, **parts
    )


@given(st.floats(0.2, 99.8), st.sampled_from(["%", "s", "/s", "tasks", ""]))
def test_the_scale_is_undone(value: float, unit: str) -> None:
    one = column(value, unit)
    assert one.unscaled(one.scaled(np.array([value])))[0] == pytest.approx(value)


@given(st.floats(1, 98), st.sampled_from(["%", "s", "/s"]))
def test_a_small_spread_is_the_same_on_both_scales(value: float, unit: str) -> None:
    one = column(value, unit, resolution=1e-4)
    ends = one.scaled(np.array([value - 1e-4, value + 1e-4]))
    assert one.spread == pytest.approx((ends[1] - ends[0]) / 2, rel=1e-3)


def test_the_parts_of_a_spread_add_up_as_variances() -> None:
    one = column(100.0, "s", resolution=3.0, sampling=4.0, discrepancy=0.12)
    assert one.spread * (100.0 + 1) == pytest.approx(13.0)


def test_a_figure_in_words_is_as_sure_as_its_bounds() -> None:
    figure = Figure(value=None, text="some minutes", low=60, high=600)
    figures = FigureSet(
        data_set="d", name="before", title="", kind="reproduction", figures={"m": figure}
    )
    spec = ColumnSpec(metric="m", discrepancy_percent=0, source="test")
    against = AgainstSpec(figures="before", what_if=None, columns=(spec,), left_out={})
    [one] = recorded_columns(against, figures, {}, {"m": "s"})
    assert one.unscaled(np.array([one.target - 1.645 * one.spread]))[0] == pytest.approx(60, abs=1)
    assert one.unscaled(np.array([one.target + 1.645 * one.spread]))[0] == pytest.approx(600, abs=5)


def test_reports_give_mean_and_scatter_instead_of_the_account() -> None:
    figure = Figure(value=5.0, text="5", low=4, high=6)
    figures = FigureSet(
        data_set="d", name="before", title="", kind="reproduction", figures={"m": figure}
    )
    spec = ColumnSpec(metric="m", discrepancy_percent=0, source="test")
    against = AgainstSpec(figures="before", what_if=None, columns=(spec,), left_out={})
    [one] = recorded_columns(against, figures, {"m": [6.0, 8.0]}, {"m": "/s"})
    assert (one.value, one.sampling) == (7.0, pytest.approx(1.0))


def test_the_recorded_storm_is_read_from_the_text_without_its_last_report() -> None:
    scenario = load("sendmail")
    assert scenario.calibrate is not None
    columns = {one.metric: one for one in columns_of(scenario, scenario.calibrate, ["before"])}
    assert columns["cpu.user_pct"].value == pytest.approx((5.92 + 5.05) / 2)
    assert columns["disk.sdb.avgrq_sectors"].value == pytest.approx((44.12 + 45.20) / 2)
    assert columns["duration_s"].value == 187  # the account: no text has it


def test_a_figure_that_a_run_lacks_is_missing_in_the_matrix() -> None:
    found = matrix([column(5.0, "s"), column(5.0, "%")], [{"before": {}}, {"before": {"m": 50.0}}])
    assert np.isnan(found[0]).all()
    assert found[1] == pytest.approx([np.log(51), 0])
