"""noop and deadline: lists of what is served in which order."""

import pytest

from sim.block.anticipatory import Anticipatory, AsParams
from sim.block.bfq import BfqQueue
from sim.block.bio import BIO_SYNC, READ, Request
from sim.block.cfq import Cfq, CfqParams, CfqQueue
from sim.block.deadline import Deadline, DeadlineParams
from sim.block.features import (
    DRIVER_KINDS,
    LOOP,
    NVME,
    SCSI,
    VIRTIO_BLK,
    XEN_BLKFRONT,
    default_elevator,
)
from sim.block.noop import Noop, NoopParams
from sim.registry import lookup, names
from sim.sched.version import kernel_version, numbers
from tests.block.disks import MS, Rig, ram
from tests.sched.rig import RELEASES


def order(rig):
    return [page for page, _ in rig.run().issued()]


def busy(elevator, **driver):
    """Return a rig whose driver is busy with page 0 until 1 ms, page 1000 being chosen."""
    rig = Rig(ram(**driver), elevator)
    rig.write(0, flags=BIO_SYNC)
    rig.write(1000, flags=BIO_SYNC)
    return rig


def deadline(**changes):
    return Deadline(DeadlineParams(sequential_batches=False, **changes))


def test_noop_serves_in_order_of_arrival():
    rig = busy(Noop(NoopParams()))
    for page in (5, 9, 7, 3):
        rig.write(page)
    assert order(rig) == [0, 1000, 5, 9, 7, 3]


def test_deadline_goes_upwards_from_the_head_and_then_from_the_oldest():
    rig = busy(deadline())
    for page in (1500, 500, 1200, 300):
        rig.write(page)
    # Behind 1000 nothing waited when it was chosen, so the sweep begins with the oldest.
    assert order(rig) == [0, 1000, 1500, 500, 1200, 300]


def test_deadline_prefers_reads_until_writes_were_passed_over_twice():
    rig = busy(deadline(fifo_batch=1))
    for number in range(4):
        rig.write(2000 + 10 * number)
        rig.read(5000 + 10 * number)
    kinds = "".join("r" if page >= 5000 else "w" for page in order(rig)[2:])
    assert kinds == "rrwrrwww"


def test_deadline_serves_a_batch_of_sixteen():
    rig = busy(deadline())
    for number in range(20):
        rig.read(5000 + 10 * number)
    rig.write(2000)
    rig.write(2010)
    kinds = "".join("r" if page >= 5000 else "w" for page in order(rig)[2:])
    assert kinds == "r" * 16 + "r" * 4 + "ww"


def test_deadline_turns_back_to_what_has_expired():
    rig = busy(deadline(fifo_batch=1, read_expire_ns=20 * MS), latency_ns=10 * MS)
    rig.read(100)
    for number in range(8):
        rig.read(2000 + 10 * number)
    served = order(rig)
    assert served.index(100) <= 4


def test_deadline_of_2_6_16_ends_a_batch_where_sectors_do_not_follow():
    rig = busy(Deadline(DeadlineParams()))
    for number in range(4):
        rig.write(2000 + 10 * number)
        rig.read(5000 + 10 * number)
    kinds = "".join("r" if page >= 5000 else "w" for page in order(rig)[2:])
    assert kinds == "rrwrrwww"


def test_deadline_of_2_6_16_begins_a_sweep_at_the_lowest_sector():
    rig = busy(Deadline(DeadlineParams()))
    for page in (1500, 500, 1200, 300):
        rig.write(page)
    assert order(rig) == [0, 1000, 300, 500, 1200, 1500]


def test_deadline_follows_a_front_merge_and_an_absorption():
    rig = busy(deadline())
    for page in (500, 300, 299, 302, 301):
        rig.write(page)
    assert rig.run().issued() == [(0, 1), (1000, 1), (500, 1), (299, 4)]


def test_deadline_gives_united_requests_the_place_of_the_older_one():
    """302 waits longest; 300 and 301, which join it from below, go with it before 600."""
    rig = busy(deadline())
    for page in (302, 600, 300, 301):
        rig.write(page)
        rig.calendar.run_until(rig.calendar.now + 100_000)
    assert rig.run().issued() == [(0, 1), (1000, 1), (300, 3), (600, 1)]


def test_deadline_goes_on_behind_what_was_next_and_has_joined_another():
    """At 1700 in the sweep, 1698 and 1699 come and take it with them: 1800 is next."""
    rig = busy(deadline())
    for page in (1500, 1700, 1800, 50):
        rig.write(page)
    rig.calendar.run_until(1_500_000)  # 1500 is chosen
    rig.write(1698)
    rig.write(1699)
    assert order(rig) == [0, 1000, 1500, 1800, 1698, 50]


@pytest.mark.parametrize("ahead, order_of_them", [(150, [1150, 900]), (250, [900, 1250])])
def test_a_way_back_counts_twice(ahead, order_of_them):
    """Behind page 1000: a read 101 pages back, or one further ahead (back_seek_penalty 2)."""
    rig = busy(Anticipatory(AsParams()))
    for page in (900, 1000 + ahead):
        rig.read(page)
    assert order(rig)[2:] == order_of_them


def test_cfq_serves_one_process_upwards_from_the_head():
    rig = busy(Cfq(CfqParams()))
    for page in (1500, 500, 1200, 300):
        rig.write(page)
    assert order(rig)[1:] == [1000, 1200, 1500, 300, 500]


@pytest.mark.parametrize("kernel, changed", [("2.6.16", False), ("2.6.24", True)])
def test_versions_set_the_defaults(kernel, changed):
    found = DeadlineParams.kernel_defaults(kernel)
    assert ("sequential_batches" in found) is changed


@pytest.mark.parametrize(
    "kind, queues, expected",
    [
        # block/Kconfig.iosched to 4.18; drivers/scsi/Kconfig 4.19: SCSI_MQ_DEFAULT y
        (SCSI, 1, "2.6.16 anticipatory, 2.6.18 cfq, 4.18 cfq, 4.19 mq-deadline, 6.18 mq-deadline"),
        (SCSI, 4, "4.18 cfq, 4.19 none"),
        # drivers/block/nvme-core.c, later drivers/nvme/host/pci.c: no request queue, then blk-mq
        (NVME, 8, "3.10 noop, 3.13 none, 4.4 none, 4.18 none, 6.8 none"),
        (NVME, 1, "4.4 none, 4.10 none, 4.11 mq-deadline, 6.8 mq-deadline"),
        (VIRTIO_BLK, 1, "3.12 cfq, 3.13 none, 4.10 none, 4.11 mq-deadline"),
        (XEN_BLKFRONT, 1, "2.6.18 noop, 2.6.32 cfq, 4.2 cfq, 4.3 none, 4.11 mq-deadline"),
        (LOOP, 1, "2.6.32 noop, 4.0 none, 4.11 mq-deadline, 5.14 mq-deadline, 5.15 none"),
    ],
)
def test_a_queue_without_a_choice_gets_the_elevator_of_its_driver_and_release(
    kind, queues, expected
):
    for release, elevator in (row.split() for row in expected.split(", ")):
        assert default_elevator(kernel_version(release), kind, queues) == elevator


@pytest.mark.parametrize("queues", [1, 4])
@pytest.mark.parametrize("kind", DRIVER_KINDS.values(), ids=list(DRIVER_KINDS))
@pytest.mark.parametrize("release", RELEASES, ids=numbers)
def test_the_elevator_of_its_time_is_in_that_release(release, kind, queues):
    assert lookup("elevator", default_elevator(release, kind, queues)).is_in(release)


@pytest.mark.parametrize(
    "release, expected",
    [
        ((2, 6, 5), "anticipatory deadline noop"),
        ((2, 6, 16), "anticipatory cfq deadline noop"),
        ((2, 6, 32, 71), "anticipatory cfq deadline noop"),
        ((2, 6, 33), "cfq deadline noop"),
        ((3, 13), "cfq deadline none noop"),
        ((4, 20, 17), "bfq cfq deadline kyber mq-deadline none noop"),
        ((5, 0), "bfq kyber mq-deadline none"),
        ((7, 2, 7), "bfq kyber mq-deadline none"),
    ],
    ids=str,
)
def test_a_release_has_the_elevators_of_its_block_layers(release, expected):
    found = sorted(name for name in names("elevator") if lookup("elevator", name).is_in(release))
    assert found == expected.split()


def test_elevators_are_registered():
    assert lookup("elevator", "deadline").cls is Deadline


# -- Requests by age: what the queues of cfq and bfq have in common.


@pytest.mark.parametrize("queue", [CfqQueue(1, 0), BfqQueue(1, 4, 100, 0)], ids=["cfq", "bfq"])
def test_a_turn_takes_one_request_for_its_age(queue):
    queue.fifo += [Request(READ, 0, 8, 0), Request(READ, 100, 8, 5)]
    assert queue.expired_head(0) is None  # none is older,
    oldest = queue.fifo[0]
    assert queue.expired_head(6) is oldest  # and having looked in vain does not count.
    assert queue.expired_head(6) is None
    queue.fifo_expired = False  # the next turn
    assert queue.expired_head(6) is oldest
