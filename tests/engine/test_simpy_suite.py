"""SimPy's own tests pass on the twin's Environment."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.simpy_suite.__main__ import EXIT_SKIPPED

REPOSITORY = Path(__file__).resolve().parents[2]


def test_simpys_own_tests_pass_on_the_twins_environment() -> None:
    command = [sys.executable, "-m", "tests.simpy_suite", "-q"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode == EXIT_SKIPPED:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr
