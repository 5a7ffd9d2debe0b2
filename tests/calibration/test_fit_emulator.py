"""The emulator on functions that are known."""

import numpy as np
import pytest

from calibration.fit.emulator import Emulator, EmulatorError
from calibration.fit.space import Array

RANDOM = np.random.default_rng(11)
POINTS = RANDOM.random((90, 3))
NAMES = ("one", "other")


def truth(points: Array) -> Array:
    return np.stack(
        [
            3 + 2 * points[:, 0] + points[:, 1] ** 2,
            10 - 4 * points[:, 1] + np.sin(3 * points[:, 0]),
        ],
        axis=1,
    )


def noisy(correlation: float) -> Array:
    covariance = 0.01 * np.array([[1, correlation], [correlation, 1]])
    return truth(POINTS) + RANDOM.multivariate_normal([0, 0], covariance, len(POINTS))


def test_it_predicts_a_smooth_function_between_its_points() -> None:
    emulator = Emulator(POINTS, truth(POINTS), NAMES)
    new = np.random.default_rng(1).random((50, 3))
    assert emulator.predict(new)[0] == pytest.approx(truth(new), abs=0.03)
    assert (emulator.explained > 0.99).all()


def test_it_tells_the_chance_of_a_run_from_the_surface() -> None:
    assert Emulator(POINTS, noisy(0), NAMES).chance == pytest.approx([0.1, 0.1], rel=0.3)


def test_points_left_out_lie_in_their_intervals() -> None:
    errors = Emulator(POINTS, noisy(0), NAMES).errors
    assert np.mean(np.abs(errors) < 1.645) == pytest.approx(0.9, abs=0.06)


def test_columns_that_a_run_moves_together_are_correlated() -> None:
    covariance = Emulator(POINTS, noisy(0.8), NAMES).covariance
    assert covariance[0, 1] / covariance[0, 0] > 0.5


def test_a_column_that_some_runs_lack_is_emulated_from_the_others() -> None:
    columns = noisy(0)
    columns[::3, 1] = np.nan
    emulator = Emulator(POINTS, columns, NAMES)
    assert np.isnan(emulator.errors[::3, 1]).all()
    assert emulator.predict(POINTS)[0] == pytest.approx(truth(POINTS), abs=0.3)


def test_a_column_that_hardly_any_run_has_is_an_error_that_names_it() -> None:
    columns = noisy(0)
    columns[5:, 1] = np.nan
    with pytest.raises(EmulatorError, match="other: 5 of 90 simulations give it"):
        Emulator(POINTS, columns, NAMES)


def test_all_columns_together_are_predicted_as_scikit_learn_predicts_each() -> None:
    columns = noisy(0.3)
    columns[::4, 0] = np.nan
    emulator = Emulator(POINTS, columns, NAMES)
    new = np.random.default_rng(2).random((7, 3)) * 1.5
    means, deviations = emulator.predict(new)
    for i, one in enumerate(emulator.surfaces):
        mean, deviation = one.process.predict(new, return_std=True)
        assert means[:, i] == pytest.approx(one.mean + one.scale * mean, rel=1e-6)
        assert deviations[:, i] == pytest.approx(one.scale * deviation, rel=1e-5)
