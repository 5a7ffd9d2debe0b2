"""What holds for all tests, those of cases too: tiers (tests/tiers.py), and trying of properties.

    python3 bootstrap.py test --tier unit
    python3 bootstrap.py test --hypothesis-profile=hunt

Properties are tried with the same examples in every run, unless one goes hunting: a property that
fails on one run in a thousand tells nothing about the change that happened to meet it. Whoever
changes code hunts for new examples, many more of them.
"""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests.tiers import ON_SOURCES, TIERS, take_installed, tier_of, why_not_installed

settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("hunt", max_examples=1000, deadline=None, print_blob=True)
settings.load_profile("steady")

# A test simulates; it does not look up what another one, or the user, simulated before.
os.environ["IOTWIN_STORE"] = "none"

TWIN = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the choice of a tier."""
    told = "run the tests of one tier; laws and cases on the compiled twin, where there is one"
    parser.addoption("--tier", choices=TIERS, help=told)


def pytest_configure(config: pytest.Config) -> None:
    """Choose the twin before any test file imports one."""
    config.stash[TWIN] = "the sources of this checkout, interpreted"
    if config.getoption("tier") in (None, *ON_SOURCES):
        return
    if "sim" in sys.modules:  # by a folder's conftest.py
        raise pytest.UsageError("--tier: name files of that tier only")
    reason = why_not_installed(sys.path)
    if not reason:
        take_installed()
        config.stash[TWIN] = "as installed, compiled"
    elif os.environ.get("IOTWIN_COMPILED") == "required":
        raise pytest.UsageError(f"IOTWIN_COMPILED=required: {reason}")
    else:
        config.stash[TWIN] += f": {reason}"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files of other tiers."""
    tier = config.getoption("tier")
    if tier is None or not collection_path.match("test_*.py"):
        return None
    return tier_of(collection_path) != tier or None


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say which twin was tried."""
    tier = config.getoption("tier")
    named = f"tier {tier}: " if tier else ""
    terminalreporter.write_line(f"{named}twin: {config.stash[TWIN]}")
