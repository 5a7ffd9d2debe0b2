"""Run the tests: ``python -m tests [ARGS]``, which `make test` calls; ARGS go to pytest.

Arguments that name tests or a tier run just those, in one run of pytest. Otherwise all tiers
(tests/tiers.py) run one after the other on all cores, each as a run of pytest of its own with
pytest's closing line. The time of each is told at the end; the exit code is that of the first that
failed.
"""

import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.tiers import TIERS, TOP

NOT_A_FAILURE = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
# A file's tests stay together: they share what their first one has simulated.
ALL_CORES = ("-n", "auto", "--dist", "loadfile")


def names_tests(word: str) -> bool:
    """Return whether an argument names a tier, a folder, a file or a test."""
    if word.startswith("-"):
        return word.partition("=")[0] == "--tier"
    return Path(word.partition("::")[0]).exists()


def run_pytest(arguments: Sequence[str]) -> int:
    """Run pytest in the checkout; return its exit code."""
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, cwd=TOP, check=False).returncode


def run_tiers(arguments: Sequence[str]) -> int:
    """Run all tiers; return the exit code of the first that failed, or of the last."""
    cores = ALL_CORES if find_spec("xdist") is not None else ()
    codes: list[int] = []
    told: list[str] = []
    for tier in TIERS:
        print(f"\n-- tier {tier}", flush=True)
        begin_s = time.monotonic()
        codes.append(run_pytest([f"--tier={tier}", *cores, *arguments]))
        result = "" if codes[-1] in NOT_A_FAILURE else f" (exit code {codes[-1]})"
        told.append(f"{tier} {time.monotonic() - begin_s:.0f} s{result}")
        if codes[-1] not in (*NOT_A_FAILURE, pytest.ExitCode.TESTS_FAILED):
            break  # interrupted, or an argument that pytest does not know
    print(f"\ntiers: {', '.join(told)}", flush=True)
    failed = [code for code in codes if code not in NOT_A_FAILURE]
    return failed[0] if failed else min(codes)


def main(arguments: Sequence[str]) -> int:
    """Run what the arguments ask for; return an exit code of pytest."""
    if any(names_tests(word) for word in arguments):
        return run_pytest(arguments)
    return run_tiers(arguments)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(pytest.ExitCode.INTERRUPTED)
