"""Requests by age: what cfq's and bfq's queues have in common."""

import pytest

from sim.block.bfq import BfqQueue
from sim.block.bio import READ, Request
from sim.block.cfq import CfqQueue


@pytest.mark.parametrize("queue", [CfqQueue(1, 0), BfqQueue(1, 4, 100, 0)], ids=["cfq", "bfq"])
def test_a_turn_takes_one_request_for_its_age(queue):
    queue.fifo += [Request(READ, 0, 8, 0), Request(READ, 100, 8, 5)]
    assert queue.expired_head(0) is None  # none is older,
    oldest = queue.fifo[0]
    assert queue.expired_head(6) is oldest  # and having looked in vain does not count.
    assert queue.expired_head(6) is None
    queue.fifo_expired = False  # the next turn
    assert queue.expired_head(6) is oldest
