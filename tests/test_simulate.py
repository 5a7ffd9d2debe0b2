"""What simulate() does to the Python around it: nothing that stays."""

import gc

import pytest

from sim.machine import simulate
from tests.test_determinism import small


def test_python_looks_for_cycles_afterwards_as_before() -> None:
    before = gc.get_threshold()
    simulate(small(), 5)
    assert gc.get_threshold() == before


def test_python_looks_for_cycles_as_before_when_a_run_fails() -> None:
    def fail(_done_ns: int, _end_ns: int) -> None:
        raise KeyboardInterrupt

    before = gc.get_threshold()
    with pytest.raises(KeyboardInterrupt):
        simulate(small(), 5, progress=fail)
    assert gc.get_threshold() == before
