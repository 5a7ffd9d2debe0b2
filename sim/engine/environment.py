"""SimPy on the twin's calendar.

Models: the world around the servers (clients, operators, faults, a user's own ideas) as SimPy
processes. ``Environment`` is a ``simpy.Environment``: processes, conditions, interrupts, resources
and stores are SimPy's own code, and so are ``run()`` and ``step()``. Only the queue below them is
replaced, by the calendar that also carries the kernel's bare timers. So both kinds of happening
share one clock and one order; SimPy's tests pass unchanged (tests/simpy_suite).

Linux counterpart: none.

Invariants:
- ``now`` is the calendar's time, in nanoseconds.
- SimPy events and bare timers of one time run by priority, then in the order of posting.
- Loops: ``calendar.run_until()`` is the fast one; ``run()`` is SimPy's, which stops *before* the
  ordinary events of its ``until``. ``step()`` runs one SimPy event and the bare timers before it.

Fractions of a nanosecond: the kernel has none, SimPy's users may (``timeout(0.5)``). Such an event
waits in a heap of its own, and an entry of the calendar at the next whole nanosecond, ahead of all
others there, stands for "the earliest fraction": as many entries as fractions, so each runs, in
order, at its exact ``now``, while the calendar already shows the nanosecond that it belongs to.

Left out: SimPy's ``RealtimeEnvironment``, which is useless here (and works, on SimPy's own queue).
"""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from math import ceil, inf, isnan
from types import MethodType
from typing import Any, Final

import simpy
from simpy.core import BoundClass, SimTime, StopSimulation
from simpy.events import Event, EventPriority

from sim.engine.calendar import NORMAL, Calendar, Entry, StopRun

FRACTION_PRIORITY: Final = -500  # Before what SimPy or the kernel posts at the whole nanosecond.
FOREVER_NS: Final = 1 << 200  # Where an event at infinity stands.

__all__ = ["Environment", "Event", "call_when"]


class Environment(simpy.Environment):
    """A ``simpy.Environment`` whose events live on ``calendar``."""

    def __init__(self, initial_time: SimTime = 0, calendar: Calendar | None = None) -> None:
        # SimPy's constructor would make a queue, a counter and a clock: here they are properties.
        self.calendar = Calendar(ceil(initial_time)) if calendar is None else calendar
        self._active_proc: simpy.Process | None = None
        self._fractions: list[tuple[float, int, int, Event]] = []
        self._exact: float | None = None  # the fraction running now, and
        self._exact_entry: int = 0  # how many entries the calendar had run when it began
        self._firing: Entry | None = None  # an event met by the calendar's own loop
        self._handler: Callable[[Any], object] = self._fire  # one object, so that `is` finds it
        self._post = self.calendar.post  # Bound once: 1.1x in benchmarks, SimPy's timeouts.
        self._run_to = self.calendar.run_to
        self._bind_event_classes()
        if not isinstance(initial_time, int) and initial_time != self.calendar.now:
            self._set_exact(float(initial_time))

    def _bind_event_classes(self) -> None:
        """Bind process(), timeout() and so on early, as SimPy does for its own class only."""
        for name, attribute in vars(simpy.Environment).items():
            if type(attribute) is BoundClass:
                setattr(self, name, MethodType(attribute.cls, self))

    # -- What SimPy's code reads.

    @property
    def now(self) -> SimTime:
        """Return the time in ns: an int, unless the running event was posted for a fraction."""
        if self._exact is not None:
            if self.calendar.entries_run() == self._exact_entry:
                return self._exact
            self._exact = None
        return self.calendar.now

    def schedule(
        self, event: Event, priority: EventPriority = simpy.events.NORMAL, delay: SimTime = 0
    ) -> None:
        """Post ``event`` to be processed in ``delay`` ns."""
        if priority == NORMAL and self._exact is None and type(delay) is int:
            self._post(delay, self._handler, event)
            return
        calendar = self.calendar
        when = self.now + delay
        when_ns = int(when) if when == when // 1 and when < inf else None
        if when_ns is not None:
            calendar.post_priority(when_ns, priority, self._handler, event)
        else:
            self._schedule_fraction(event, priority, float(when))

    def _schedule_fraction(self, event: Event, priority: int, when: float) -> None:
        if isnan(when):
            raise ValueError(f"{event}: not a time: {when}")
        when_ns = ceil(when) if when < inf else FOREVER_NS
        heappush(self._fractions, (when, priority, self.calendar.entries_posted(), event))
        self.calendar.post_priority(when_ns, FRACTION_PRIORITY, self._handler, None)

    def peek(self) -> SimTime:
        """Return when the next event or bare timer is due, infinity when there is none."""
        entry = self.calendar.next_entry()
        if entry is None:
            return inf
        if entry[2] is self._handler and entry[3] is None:
            return self._fractions[0][0]
        return entry[0]

    @property
    def _queue(self) -> list[Any]:  # type: ignore[override]
        """Return a heap of one, the next SimPy event; run the bare timers that are due before."""
        entry = self._firing
        if entry is not None:
            self._firing = None
        else:
            try:
                entry = self._run_to(self._handler)
            except StopRun:  # calendar.stop() under run()
                raise StopSimulation(None) from None
            except IndexError as error:  # SimPy would take it for the end of its queue.
                raise RuntimeError(f"a bare timer failed at {self.calendar.now} ns") from error
            if entry is None:
                return []
        if entry[3] is not None:
            return [entry]
        exact_entry = heappop(self._fractions)
        self._set_exact(exact_entry[0])
        return [exact_entry]

    @property
    def _eid(self) -> "count[int]":  # type: ignore[override]
        """Return SimPy's counter of events, which its tests read."""
        return count(self.calendar.entries_posted())

    # -- Between the calendar and SimPy.

    def _fire(self, event: Event | None) -> None:
        """Process an event that the calendar's own loop has come to (SimPy's step(), shortened)."""
        if event is not None:
            callbacks = event.callbacks
            event.callbacks = None  # type: ignore[assignment]
            for callback in callbacks:
                callback(event)
            if event._ok or hasattr(event, "_defused"):
                return
            event.callbacks = []  # Nobody took the failure: SimPy raises it.
        self._firing = (self.calendar.now, 0, self._handler, event)
        self.step()

    def _set_exact(self, when: float) -> None:
        self._exact = when
        self._exact_entry = self.calendar.entries_run()


def call_when(event: Event, fn: Callable[[Any], object], arg: Any) -> None:
    """Call ``fn(arg)`` when ``event`` is processed, at once if it is: how a task waits for SimPy.

    A plain function may do so too. The other way round, a SimPy process yields an
    ``environment.event()``, and the kernel's side calls its ``succeed()``.
    """
    if event.processed:
        fn(arg)
    else:
        event.callbacks.append(_Call(fn, arg))


class _Call:
    """A callback that drops the event and passes its own argument."""

    __slots__ = ("arg", "fn")

    def __init__(self, fn: Callable[[Any], object], arg: Any) -> None:
        self.fn = fn
        self.arg = arg

    def __call__(self, event: Event) -> None:
        self.fn(self.arg)
