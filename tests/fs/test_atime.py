"""When reading changes an inode, by mount option."""

import pytest

from sim.fs.atime import DAY_NS, RULES, is_due
from sim.fs.super import Inode
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
    assert is_due(rule, inode(now_ns - 3 * minute_ns, now_ns - minute_ns), now_ns) is unread
    assert is_due(rule, inode(now_ns - minute_ns, now_ns - 3 * minute_ns), now_ns) is read_since
    assert is_due(rule, inode(now_ns - DAY_NS, 0), now_ns) is a_day_ago


@pytest.mark.parametrize("rule", RULES)
def test_a_second_has_one_access_time(rule):
    read = inode(NS_PER_S, 2 * NS_PER_S)
    assert not is_due(rule, read, 2 * NS_PER_S - 1)
    assert read.atime_stays_ns == 2 * NS_PER_S
