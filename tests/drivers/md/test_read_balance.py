"""Which mirror is read: the same questions, answered by each release's policy."""

import pytest

from sim.block.genhd import BlockDevice
from sim.block.part_stat import DiskStats
from sim.drivers.md.dm import Member
from sim.drivers.md.features import features
from sim.drivers.md.raid1 import raid1_balance
from sim.drivers.md.raid10 import raid10_balance

OLD, NEW = (2, 6, 16), (4, 4)


def mirrors(count=2, rotational=True):
    made = []
    for number in range(count):
        device = BlockDevice(DiskStats(f"sd{number}", 8, 0), 1 << 20)
        device.rotational = rotational
        made.append(Member(number, device))
        made[-1].nr_pending = 5  # busy, so that heads decide
        made[-1].head_position = 1000 * number
    return made


def chosen(balance, members, sector, nr_sectors=8):
    """Return the number of the mirror that a read goes to."""
    return balance.choose([(m, sector) for m in members], sector, nr_sectors)[0].index


@pytest.mark.parametrize("kernel", [OLD, NEW])
def test_the_nearest_head_reads(kernel):
    members = mirrors(3)
    balances = [raid1_balance(features(kernel)) for _ in range(3)]
    sectors = (100, 1100, 1900)
    found = [chosen(b, members, s) for b, s in zip(balances, sectors, strict=True)]
    assert found == [0, 1, 2]


@pytest.mark.parametrize("kernel", [OLD, NEW])
def test_a_sequence_stays_where_it_is_though_others_are_idle(kernel):
    balance = raid1_balance(features(kernel))
    members = mirrors()
    first = chosen(balance, members, 100)
    members[1 - first].nr_pending = 0
    assert [chosen(balance, members, s) for s in (108, 116, 124)] == [first] * 3


@pytest.mark.parametrize("kernel", [OLD, NEW])
def test_an_idle_mirror_reads_though_its_head_is_far(kernel):
    members = mirrors()
    members[1].nr_pending = 0
    assert chosen(raid1_balance(features(kernel)), members, 5) == 1


def test_two_sequences_share_one_memory_to_3_5_and_have_their_own_from_3_6():
    followed = {}
    for kernel in (OLD, NEW):
        balance = raid1_balance(features(kernel))
        members = mirrors()
        members[1].head_position = 100_000
        places = []
        for step in range(3):
            for start in (0, 100_000):
                at = start + 8 * step
                places.append(chosen(balance, members, at))
                members[places[-1]].head_position = 50_000  # elsewhere meanwhile
        followed[kernel] = places
    assert followed[NEW] == [0, 1, 0, 1, 0, 1]
    assert followed[OLD] != followed[NEW]


def test_ssds_share_by_what_is_pending_from_3_6():
    members = mirrors(rotational=False)
    members[0].nr_pending, members[1].nr_pending = 9, 2
    assert chosen(raid1_balance(features(OLD)), members, 5) == 0
    assert chosen(raid1_balance(features(NEW)), members, 5) == 1


def test_a_member_that_is_being_filled_is_not_read():
    for kernel in (OLD, NEW):
        members = mirrors()
        members[0].in_sync = False
        assert chosen(raid1_balance(features(kernel)), members, 0) == 1


def test_far_copies_are_read_at_the_lowest_address_from_2_6_25():
    copies = list(zip(mirrors(), (1_000, 0), strict=True))
    copies[0][0].head_position = 1_000
    assert raid10_balance(features((2, 6, 24)), 2).choose(copies, 0, 8)[0].index == 0
    assert raid10_balance(features((2, 6, 25)), 2).choose(copies, 0, 8)[0].index == 1


def test_near_copies_on_ssds_share_by_what_is_pending_from_5_4():
    members = mirrors(rotational=False)
    members[0].nr_pending, members[1].nr_pending = 9, 2
    assert chosen(raid10_balance(features((5, 3)), 1), members, 5) == 0
    assert chosen(raid10_balance(features((5, 4)), 1), members, 5) == 1
