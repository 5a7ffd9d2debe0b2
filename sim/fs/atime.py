"""When reading a file changes its inode: the mount options strictatime, relatime, noatime.

Theory of operation
 - strictatime, the default to 2.6.29 ("atime" then): at each read, but once a second, as fine as
   ext3 notes times.
 - relatime, the default from 2.6.30: only if the file was written since it was read last, or a day
   has passed, so that reading alone is no metadata.
Linux counterpart: fs/inode.c update_atime 2.6.16, touch_atime and relatime_need_update 2.6.30.
Invariants: what is not due now does not come due before `atime_stays_ns` by the clock alone.
Left out: nodiratime, lazytime; the change time in relatime's comparison (a write moves both).
"""

from typing import Final

from sim.fs.super import Inode
from sim.units import NS_PER_S

RULES: Final = ("atime", "strictatime", "relatime", "noatime")  # the first two are the same
DAY_NS: Final = 86400 * NS_PER_S


def is_due(rule: str, inode: Inode, now_ns: int) -> bool:
    """Return whether the access time changes, by the second, and shall."""
    before_ns = inode.atime_ns
    if rule == "noatime" or now_ns // NS_PER_S == before_ns // NS_PER_S:
        inode.atime_stays_ns = (now_ns // NS_PER_S + 1) * NS_PER_S
        return False
    recent = before_ns > inode.mtime_ns and now_ns - before_ns < DAY_NS
    return rule != "relatime" or not recent
