"""Kernel releases as numbers, and tables of what changed when.

Models: that a mechanism is of its release: the row of the newest release that is not newer.
Linux counterpart: include/linux/version.h; the text is that of `uname -r`.
Invariants: tables are ascending by release; a release before a table's first row is an error.
Left out: distribution kernels, which mix releases; say the release whose behaviour is meant.
"""

import re
from collections.abc import Sequence
from typing import Final, TypeAlias, TypeVar

from sim.units import Value

KernelVersion: TypeAlias = tuple[int, ...]
T = TypeVar("T")

OLDEST: Final = (2, 6, 0)
NEWEST: Final = (7, 2)  # the newest whose behaviour was compared with recordings
# (first release that has it, name of the parameter, its default from there on, source)
Change: TypeAlias = tuple[KernelVersion, str, Value, str]


def kernel_version(release: str) -> KernelVersion:
    """Return (2, 6, 16) for "2.6.16.60-0.21-smp", (5, 10) for "5.10-rc3"; ValueError otherwise."""
    match = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", release)
    if match is None:
        raise ValueError(f'kernel release {release!r}: expected numbers such as "2.6.32" or "5.10"')
    return tuple(int(part) for part in match.groups() if part is not None)


def numbers(version: KernelVersion) -> str:
    """Return "2.6.16" for (2, 6, 16)."""
    return ".".join(map(str, version))


def is_modelled(version: KernelVersion) -> bool:
    """Return whether the tables of versions are meant for that release; a bare 2.6 is none."""
    return version >= OLDEST and version[:2] <= NEWEST


def in_force(table: Sequence[tuple[KernelVersion, T]], version: KernelVersion) -> T:
    """Return the last row of the table whose release is not after `version`."""
    found: T | None = None
    for since, row in table:
        if since <= version:
            found = row
    if found is None:
        raise ValueError(f"kernel {numbers(version)}: the oldest is {numbers(table[0][0])}")
    return found


def changed_defaults(changes: Sequence[Change], kernel: str) -> dict[str, tuple[Value, str]]:
    """Return parameter -> (default, source) of this release, where it is not the declared one."""
    version = kernel_version(kernel)
    found: dict[str, tuple[Value, str]] = {}
    for since, name, value, source in changes:
        if version >= since:
            found[name] = (value, source)
    return found
