"""Kernel releases as numbers, and tables of what changed when.

Linux counterpart: include/linux/version.h; the string is that of `uname -r`.
Invariants: tables are ascending; a release before a table's first row is an error, not a guess.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

Version = tuple[int, ...]
T = TypeVar("T")


def parse_release(release: str) -> Version:
    """Return (2, 6, 16) for "2.6.16.60-0.21-smp", (5, 10) for "5.10-rc3"; ValueError otherwise."""
    match = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", release)
    if match is None:
        raise ValueError(f'kernel release {release!r}: expected numbers such as "2.6.32" or "5.10"')
    return tuple(int(part) for part in match.groups() if part is not None)


def in_force(table: Sequence[tuple[Version, T]], version: Version) -> T:
    """Return the last row of the table whose version is not after `version`."""
    found = [row for since, row in table if since <= version]
    if not found:
        oldest = ".".join(str(part) for part in table[0][0])
        raise ValueError(f"kernel {'.'.join(map(str, version))}: the oldest modelled is {oldest}")
    return found[-1]
