"""The parts of simulation-based calibration; the count itself is python -m benchmarks.coverage."""

from pathlib import Path

import numpy as np
import pytest

from calibration.fit.columns import matrix
from calibration.fit.sbc import (
    FIRST,
    SECOND,
    Synthetic,
    coverage,
    fit_shared,
    halves_of,
    record,
    shared_wave,
    synthesise,
)
from sim.study.laboratory import Laboratory
from sim.study.trial import Trial
from tests.calibration import server_of_formulas as server
from tests.cli.small import small_file


def test_coverage_is_the_share_of_ranks_in_the_middle_nine_tenths() -> None:
    assert coverage([0.01, 0.05, 0.5, 0.95, 0.99]) == pytest.approx(0.6)
    assert coverage(list(np.linspace(0.0005, 0.9995, 1000))) == pytest.approx(0.9)


def test_the_halves_of_a_storm_have_all_of_its_messages(tmp_path: Path) -> None:
    trial = Trial(small_file(tmp_path), None, (), seed=5)
    [found] = Laboratory(measure=halves_of).figures([trial])
    name = "messages_accepted"
    assert found[FIRST + name] + found[SECOND + name] == found[name] == 60
    assert found[FIRST + "duration_s"] == pytest.approx(found["duration_s"] / 2)


def test_a_synthetic_recording_is_the_simulation_with_the_declared_spread() -> None:
    columns = server.recorded()
    synthetic = Synthetic(
        number=0, truth=np.zeros(3), figures={"before": {"rate": 40.0, "busy": 30.0}}
    )
    values = matrix(columns, [synthetic.figures])[0]
    drawn = np.array([[one.target for one in record(columns, synthetic, i)] for i in range(400)])
    spreads = [one.spread for one in columns]
    assert drawn.mean(axis=0) == pytest.approx(values, abs=0.01)
    assert drawn.std(axis=0) == pytest.approx(spreads, rel=0.1)
    assert [one.spread for one in record(columns, synthetic, 0)] == spreads


def test_a_column_that_the_simulation_lacks_is_not_recorded() -> None:
    synthetic = Synthetic(number=0, truth=np.zeros(3), figures={"before": {"busy": 30.0}})
    assert [one.metric for one in record(server.recorded(), synthetic, 1)] == ["busy"]


def test_one_wave_shared_by_all_recordings_covers_their_truths() -> None:
    """Twelve fits of three parameters are 36 intervals: 28 or fewer inside is one in forty."""
    plan = server.plan()
    wave = shared_wave(plan, server.Formulas())
    assert len(wave.points) == plan.simulations
    truths = synthesise(plan, 12, server.Formulas())
    outcomes = [fit_shared(plan, wave, server.recorded(), one) for one in truths]
    assert all(one.second == {} for one in outcomes)
    assert coverage([rank for one in outcomes for rank in one.ranks]) >= 0.78
