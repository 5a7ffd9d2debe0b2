"""A server whose figures are formulas of the fitted parameters, in place of a simulation.

The chain does not know what computes the figures of a trial; here it is arithmetic with chance, so
that a test of the chain takes seconds and knows the answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from calibration.fit.chain import Plan
from calibration.fit.columns import RecordedColumn
from sim.scenario.calibrate import AgainstSpec, CalibrateSpec, ColumnSpec, PriorSpec
from sim.scenario.cases import data_sets
from sim.study.trial import Figures, Trial
from sim.units import parse_quantity

WORKERS, THINK, IDLE = "process.w.count", "process.w.think", "process.w.idle"
PRIORS = (
    PriorSpec(path=WORKERS, dim="count", distribution="log-uniform", low=2, high=64, source="test"),
    PriorSpec(
        path=THINK, dim="time_ns", distribution="log-normal", low=5e6, high=2e9, source="test"
    ),
    PriorSpec(path=IDLE, dim="number", distribution="uniform", low=0, high=1, source="test"),
)
TRUTH = {WORKERS: "16", THINK: "0.2 s", IDLE: "0.5"}
UNITS = {"rate": "/s", "busy": "%"}


def figures(trial: Trial) -> Figures:
    """Return throughput of a think-and-wait loop, and how busy it keeps a CPU."""
    values = dict(trial.values)
    workers = int(values[WORKERS])
    think_s = parse_quantity(values[THINK], "time_ns") / 1e9
    chance = np.random.default_rng(trial.seed).normal(0, 0.03)
    rate = workers / (think_s + 0.1) * float(np.exp(chance))
    if trial.what_if == "fast":
        rate = workers / (think_s + 0.01) * float(np.exp(chance))
    return {"rate": rate, "busy": 100 * workers / (workers + 20)}


def plan(seed: int = 1, simulations: int = 48) -> Plan:
    """Return a plan that fits both figures; nothing depends on `idle`."""
    columns = tuple(ColumnSpec(metric=name, discrepancy_percent=2, source="test") for name in UNITS)
    against = AgainstSpec(figures="before", what_if=None, columns=columns, left_out={})
    spec = CalibrateSpec(
        recording="sendmail",
        folder=data_sets()["sendmail"],
        duration_ns=None,
        priors=PRIORS,
        against={"before": against},
    )
    return Plan(
        scenario="formulas",
        spec=spec,
        states=("before",),
        seed=seed,
        simulations=simulations,
        members=32,
    )


def recorded(
    truth: dict[str, str] = TRUTH, discrepancy: float = 0.02
) -> tuple[RecordedColumn, ...]:
    """Return what was recorded of a server with those parameters."""
    seen = figures(Trial("formulas", None, tuple(truth.items()), 99))
    return tuple(
        RecordedColumn(
            name=f"before: {name}",
            part="before",
            metric=name,
            unit=unit,
            value=seen[name],
            resolution=0.0,
            sampling=0.0,
            discrepancy=discrepancy,
            bounds=None,
        )
        for name, unit in UNITS.items()
    )


@dataclass
class Formulas:
    """Gives the figures of trials that nobody has to simulate, in place of a laboratory."""

    of: Callable[[Trial], Figures] = figures
    planned: int = 0

    def figures(self, trials: Sequence[Trial]) -> list[Figures]:
        """Compute them."""
        return [self.of(trial) for trial in trials]
