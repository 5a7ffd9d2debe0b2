"""The engine: simulated time and what happens in it, chance, statistics, tracepoints.

Kernel parts import the module they use (``from sim.engine.calendar import Calendar``); the names
here are for programs around the twin.
"""

from sim.engine.calendar import NORMAL, URGENT, Calendar, Timer
from sim.engine.rng import Streams

__all__ = ["NORMAL", "URGENT", "Calendar", "Streams", "Timer"]
