"""When reading changes an inode, by mount option."""

import pytest

from sim.fs.super import ATIME_RULES, DAY_NS, Inode, relatime_need_update
from sim.units import NS_PER_S
from tests.fs.machine import Machine


def inode(read_ns: int, written_ns: int) -> Inode:
    found = Machine().mount_ext3().root
    found.atime_ns, found.mtime_ns = read_ns, written_ns
    return found


@pytest.mark.parametrize(
    ("rule", "unread", "read_since", "a_day_ago"),
    [
        ("strictatime", True, True, True),
        ("atime", True, True, True),
        ("relatime", True, False, True),
        ("noatime", False, False, False),
    ],
)
def test_each_rule_has_its_own_answer(rule, unread, read_since, a_day_ago):
    now_ns = 3 * DAY_NS
    minute_ns = 60 * NS_PER_S
    assert (
        relatime_need_update(rule, inode(now_ns - 3 * minute_ns, now_ns - minute_ns), now_ns)
        is unread
    )
    assert (
        relatime_need_update(rule, inode(now_ns - minute_ns, now_ns - 3 * minute_ns), now_ns)
        is read_since
    )
    assert relatime_need_update(rule, inode(now_ns - DAY_NS, 0), now_ns) is a_day_ago


@pytest.mark.parametrize("rule", ATIME_RULES)
def test_a_second_has_one_access_time(rule):
    read = inode(NS_PER_S, 2 * NS_PER_S)
    assert not relatime_need_update(rule, read, 2 * NS_PER_S - 1)
    assert read.atime_stays_ns == 2 * NS_PER_S
