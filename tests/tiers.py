"""Which tests belong together, and which twin they try: the tiers, in the order in which they run.

unit: a part, or a few of them together; on the sources of this checkout, interpreted, so that a
 test may put something of its own into a part's place and a change is tried without a build.
conformance: what all classes of the registry and all source files must be; on the sources, too.
laws: what holds whatever the numbers are; on the installed twin, compiled, where one of these very
 sources is. Both give the same bytes (tests/test_compiled.py).
cases: whole simulations, the command line, recordings; on the installed twin, too.
"""

import atexit
import importlib
import os
import pkgutil
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from importlib.machinery import PathFinder
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
TIERS = ("unit", "conformance", "laws", "cases")
ON_SOURCES = TIERS[:2]

# Files below tests/; a file that nothing names is of tier unit. The tests of cases stand beside
# them, in scenarios/.
NAMED = {
    "conformance": (
        "benchmarks/*",
        "engine/test_simpy_suite.py",
        "house/*",
        "test_conformance.py",
        "test_tidy.py",
    ),
    "laws": (
        "block/test_bfq.py",
        "block/test_conservation.py",
        "drivers/md/test_laws.py",
        "drivers/md/test_resync.py",
        "drivers/test_data_sheets.py",
        "drivers/test_queueing_laws.py",
        "drivers/test_ssd_ftl.py",
        "fs/test_dcache.py",
        "fs/test_durable.py",
        "fs/test_external_journal.py",
        "fs/test_group_commit.py",
        "fs/test_inode_lock.py",
        "fs/test_power_cut.py",
        "fs/test_storm_of_calls.py",
        "fs/xfs/test_log.py",
        "mm/test_anon.py",
        "mm/test_balance_dirty.py",
        "mm/test_memcontrol.py",
        "mm/test_swapfile.py",
        "mm/test_vmscan.py",
        "mm/test_vmstat.py",
        "mm/test_zram.py",
        "mm/test_zswap.py",
        "sched/test_affinity.py",
        "sched/test_bandwidth.py",
        "sched/test_cputime.py",
        "sched/test_groups.py",
        "sched/test_queueing.py",
        "sched/test_work_conservation.py",
        "test_laws.py",
    ),
    "cases": (
        "calibration/*",
        "cli/*",
        "docs/test_add.py",
        "docs/test_page_in_node.py",
        "docs/test_shown_blocks.py",
        "lab/*",
        "lesson/*",
        "oracle/*",
        "report/*",
        "serve/*",
        "study/*",
        "user/*",
        "test_compiled.py",
        "test_determinism.py",
        "test_neighbours.py",
        "test_page_cache.py",
        "test_scenarios.py",
        "test_scenarios_run.py",
        "test_simulate.py",
    ),
}


def tier_of(path: Path) -> str:
    """Return the tier of a test file."""
    if path.is_relative_to(TOP / "scenarios"):
        return "cases"
    name = path.relative_to(TOP / "tests").as_posix()
    for tier, patterns in NAMED.items():
        if any(fnmatch(name, pattern) for pattern in patterns):
            return tier
    return TIERS[0]


def is_checkout(place: str) -> bool:
    """Return whether an entry of Python's path is this checkout."""
    return Path(place or ".").resolve() == TOP


def why_not_installed(places: Sequence[str]) -> str:
    """Return why no compiled twin of these sources is in such a path; an empty text if one is."""
    spec = PathFinder.find_spec("sim", [place for place in places if not is_checkout(place)])
    if spec is None or spec.origin is None:
        return "no twin is installed (make fast)"
    home = Path(spec.origin).parents[1]
    for source, installed in _what_decides():
        copy = home / installed
        if not copy.exists() or copy.read_bytes() != source.read_bytes():
            path = source.relative_to(TOP)
            return f"the installed twin is not of these sources, see {path} (make fast)"
    if not (home / "sim" / "_compiled.txt").exists():
        return "the installed twin is not compiled (make fast)"
    return ""


def _what_decides() -> Iterator[tuple[Path, Path]]:
    """Yield the files that decide a result, and where each lies in an installed twin."""
    for folder in ("sim", "calibration", "scenarios", "labs"):
        for pattern in ("*.py", "*.toml"):
            for source in sorted((TOP / folder).rglob(pattern)):
                if not source.name.startswith("test_"):
                    yield source, source.relative_to(TOP)


def _linked() -> str:
    """Return a folder, there until this process ends, in which nothing is but a link to `tests`."""
    folder = tempfile.mkdtemp(prefix="iotwin-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.symlink(TOP / "tests", Path(folder) / "tests", target_is_directory=True)
    return folder


def take_installed() -> None:
    """Have the twin and its scenarios imported as installed, here and in processes of tests.

    `tests` and `benchmarks` still come from the checkout, which is what stands last. Processes of
    tests find `tests` by a link that stands first: some package has its own installed under this
    name. The packages of the cases are imported at once: pytest would take those of their tests'
    folders.
    """
    others = (place for place in sys.path if not is_checkout(place))
    sys.path[:] = [_linked(), *others, str(TOP)]
    before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    places = [place for place in before if place and not is_checkout(place)]
    os.environ["PYTHONPATH"] = os.pathsep.join(places)
    os.environ["PYTHONSAFEPATH"] = "1"  # else `python -m sim` looks into the folder it stands in
    home = importlib.import_module("scenarios")
    for case in pkgutil.iter_modules(home.__path__, "scenarios."):
        if case.ispkg:
            importlib.import_module(case.name)
