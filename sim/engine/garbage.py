"""When Python looks for cycles while time is simulated.

The twin makes no cycles (tests/test_cycles.py), and looking for them took 5 % of a storm's time. So
the thresholds are raised during a run and set back after it. Collection is not switched off,
because programs around the twin may make cycles.
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
