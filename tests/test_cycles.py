"""What a run leaves to Python's collector of cycles: nothing.

What has ended (connections, inodes, transactions, tasks) is gone when nobody holds it; so a long
run needs no more memory than a short one, and looking for cycles costs it nothing.
"""

import gc

import pytest

from sim.machine import Machine
from sim.scenario import load

SECOND_NS = 1_000_000_000


@pytest.mark.parametrize("queue", [None, "tmpfs"])
def test_what_a_mail_server_is_done_with_is_in_no_cycle(queue: str | None) -> None:
    machine = Machine(load("sendmail", what_if=queue), seed=1)
    machine.run_until(SECOND_NS)
    gc.collect()
    gc.freeze()  # What other tests left is none of this one's business.
    gc.disable()
    try:
        machine.run_until(20 * SECOND_NS)
        assert sum(record.name == "message_accepted" for record in machine.records) > 20
        assert gc.collect() == 0
    finally:
        gc.enable()
        gc.unfreeze()
