"""Runs of pg_test_fsync: its figures under the names of the recorder's index.

Models: the recorder keeps, as a test's section, the last line before it: that is the heading, or
the end of the remark under the heading. So the sections of one and of two writes have one name.
Linux counterpart: none; the output of pg_test_fsync, PostgreSQL 15.
Invariants: "SECTION: TEST /s", operations a second; of two tests with one name the last stands
there, as in the index, and the first one under its own heading, which the index does not have.
Left out: microseconds of an operation, which say the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sim.results import Record
from sim.user.pg_test_fsync import (
    DESCRIPTORS,
    ONE_WRITE,
    SIZES,
    TESTS,
    TWO_WRITES,
    UNSYNCED,
    rates,
)

_REMARK: Final = "(in wal_sync_method preference order, except fdatasync is Linux's default)"
SECTIONS: Final[Mapping[str, str]] = {
    ONE_WRITE: _REMARK,
    TWO_WRITES: _REMARK,
    SIZES: "open_sync sizes.)",
    DESCRIPTORS: "descriptor.)",
    UNSYNCED: UNSYNCED,
}
Line = tuple[str, str, float | None]  # section as recorded, test, operations a second


def named(lines: Sequence[Line]) -> dict[str, float | None]:
    """Return the figures by name; of two with one name the first goes under its own heading."""
    found: dict[str, float | None] = {}
    for number, (section, test, per_s) in enumerate(lines):
        again = any(later[:2] == (section, test) for later in lines[number + 1 :])
        found[f"{ONE_WRITE if again else section}: {test} /s"] = per_s
    return found


def predicted_result(records: Iterable[Record]) -> dict[str, float | None]:
    """Return what the simulated program said."""
    lines = [
        (SECTIONS[test.section], test.name, per_s)
        for test, per_s in zip(TESTS, rates(records), strict=True)
    ]
    return named(lines)


def measured_result(tests: Iterable[Mapping[str, Any]]) -> dict[str, float | None]:
    """Return what was recorded."""
    return named([(test["section"], test["test"], test["ops_per_s"]) for test in tests])
