"""The pytest plugin that puts sim.engine's Environment in the place of SimPy's.

SimPy's tests take their environment from the name ``simpy.Environment``.
"""

import pytest
import simpy

from sim.engine import calendar
from sim.engine.environment import Environment

simpy.Environment = Environment  # type: ignore[misc]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "benchmark(group): a timed test of SimPy's, not selected")


def pytest_report_header() -> str:
    kind = "interpreted" if str(calendar.__file__).endswith(".py") else "compiled"
    return f"SimPy {simpy.__version__}'s tests on sim.engine.Environment ({kind})"
