"""A server beside the clock on the wall: so many simulated seconds a second.

Models: someone who lets the twin run, step by step, each when it is due, and shows each to others.
Linux counterpart: none.
Invariants: steps are of equal simulated time and none is left out; a twin that is too slow is late,
 and what it shows is still of whole steps.
Left out: catching up by larger steps.
"""

import time
from collections.abc import Callable
from typing import Final

from sim.study.tree.whole import Server
from sim.units import NS_PER_S

STEP_S: Final = 0.1  # of the wall's time: what a reader's interval may be wrong by
LATE_S: Final = 1.0  # less is the start of a program
LATE_SHARE: Final = 0.1  # of the rates that a program with a clock of its own shows


class Pace:
    """Takes a server on, `speed` simulated seconds a second, and shows its trees."""

    def __init__(self, server: Server, speed: float, show: Callable[[Server], object]) -> None:
        self._server = server
        self._show = show
        self._speed = speed
        self._step_ns = max(1, int(STEP_S * speed * NS_PER_S))
        self._begin_s = time.monotonic()
        self._steps = 0

    def wait_s(self) -> float:
        """Return how long it is until the next step is due, 0 if it is late."""
        due_s = self._begin_s + (self._steps + 1) * STEP_S
        return max(0.0, due_s - time.monotonic())

    def step(self, *, beyond: bool) -> None:
        """Let the next step happen, and show what is there then."""
        self._steps += 1
        self._server.run_to(self._server.now_ns() + self._step_ns, beyond=beyond)
        self._show(self._server)

    def kept(self) -> float:
        """Return the simulated seconds a second since the beginning, the last step's among them."""
        passed_s = time.monotonic() - self._begin_s
        return self._speed * self._steps * STEP_S / max(passed_s, STEP_S)

    def is_late(self) -> bool:
        """Return whether the twin has fallen back by a second and by more than a tenth."""
        late_s = time.monotonic() - self._begin_s - self._steps * STEP_S
        return late_s > LATE_S and self.kept() < (1 - LATE_SHARE) * self._speed
