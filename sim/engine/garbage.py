"""When Python looks for cycles while time is simulated.

Models: nothing; it saves time. The twin makes no cycles (tests/test_cycles.py), and looking for
them was 5 % of a storm.
Linux counterpart: none.
Invariants: the thresholds are afterwards what they were before.
Left out: switching it off altogether, for programs around the twin may make cycles.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

OBJECTS: Final = 50_000  # so many more than before, some 10 MB, until Python looks


@contextmanager
def rare_collections() -> Iterator[None]:
    """Let Python look for cycles seldom."""
    thresholds = gc.get_threshold()
    gc.set_threshold(OBJECTS, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
