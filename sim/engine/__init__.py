"""The engine: simulated time and what happens in it, chance, tracepoints.

Kernel parts import the module they use (``from sim.engine.calendar import Calendar``); the names
here are for programs around the twin.
"""

from sim.engine.calendar import NORMAL, URGENT, Calendar, Timer
from sim.engine.environment import Environment, call_when
from sim.engine.rng import Streams
from sim.engine.trace import Record, Tracer, format_record

__all__ = [
    "NORMAL",
    "URGENT",
    "Calendar",
    "Environment",
    "Record",
    "Streams",
    "Timer",
    "Tracer",
    "call_when",
    "format_record",
]
