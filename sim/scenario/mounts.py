"""On which mount a path lies, and in which order mounts are made.

Models: the longest mount point that a path begins with; mount points before what lies below them.
Linux counterpart: fs/namei.c (path_lookup crosses mounts); the order of /etc/fstab.
Invariants: "/" is the first; a path has one mount at most.
Left out: links and "..": paths are taken as they are written.
"""

from collections.abc import Iterable

from sim.scenario.spec import MountSpec


def mount_point_of(path: str, mounts: Iterable[str]) -> str:
    """Return where the file system of a path is mounted: the longest that fits; "" for none."""
    fitting = (where for where in mounts if path.startswith(where.rstrip("/") + "/"))
    return max(fitting, key=len, default="")


def by_depth(mount: tuple[str, MountSpec]) -> tuple[int, str]:
    """Sort key of a mount: "/" first, then by the number of components."""
    path = mount[0].rstrip("/")
    return path.count("/"), path
