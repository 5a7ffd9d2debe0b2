"""The calendar: what happens next, in simulated nanoseconds.

Models: entries ``(time_ns, key, function, argument)``, in order.  Everything that happens in the
twin is such an entry: a disk's completion, a scheduler tick, a SimPy event (see environment.py).
An entry is never a process: running one is one call of a plain function, ``function(argument)``.

Entries are in two heaps, before and behind a *horizon*. What runs next is in the near one, which
stays small however many time-outs of seconds and minutes are pending; an entry at the horizon, run
before all others there, brings over what the far heap has next. (The levels of the kernel's timer
wheel are for the same.)

Linux counterpart: none; it takes the place of real time. The interface follows the kernel's timers
(kernel/time/hrtimer.c), whose handlers are plain functions in interrupt context as well.

Invariants:
- ``now`` is an int and never decreases; an entry runs exactly at its time, unless cancelled.
- Entries of one time run by priority (URGENT first), then in the order in which they were posted.
  ``key`` holds both, ``(priority - NORMAL) * 2**52 + sequence number``, so that ordering costs one
  comparison and no two entries are ever equal. ``shuffle_ties`` replaces the order of posting by a
  random one: what then changes in a result, depended on chance.
- Entries of the far heap are due at the horizon or later, and while there are some, the near heap
  has the entry that moves the horizon.
- No entry of a cancelled timer calls anything; dead entries are at most half of large heaps.

Left out: calendar queues and timing wheels of more levels. With the dozen entries in the near heap,
C's heapq costs less than any bookkeeping in Python, and stays the same file when mypyc compiles it.
"""

import random
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any, Final, TypeAlias

Handler: TypeAlias = Callable[[Any], object]  # what it returns is dropped
Entry: TypeAlias = tuple[int, int, Handler, Any]

# SimPy's two priorities: process starts and interrupts come before ordinary events.
URGENT: Final = 0
NORMAL: Final = 1
PRIORITY_SHIFT: Final = 52
LAST_KEY: Final = 1 << 200  # Sorts behind every entry of its time: where run_until() stops.
FIRST_KEY: Final = -LAST_KEY  # Sorts before every entry of its time: the horizon.
# What is due later goes to the far heap: farther than disks and ticks, nearer than time-outs.
# The mail storm takes 0.7 of the time it takes with one heap of 600.
NEAR_NS: Final = 100_000_000
DEAD_ENTRIES_MIN: Final = 256  # Below this many cancelled entries, compaction is not worth a look.


class StopRun(BaseException):
    """End the running loop; raised by the calendar's own entries, never seen outside."""


class Timer:
    """A handler due once, at ``when_ns``; ``cancel()`` prevents it (like hrtimer_cancel)."""

    __slots__ = ("arg", "calendar", "fn", "when_ns")

    def __init__(self, calendar: "Calendar", when_ns: int, fn: Handler, arg: Any) -> None:
        self.calendar = calendar
        self.when_ns = when_ns
        self.fn: Handler | None = fn
        self.arg: Any = arg

    def is_pending(self) -> bool:
        """Return whether the handler is still to be called."""
        return self.fn is not None

    def cancel(self) -> bool:
        """Prevent the call; return False when it already happened or was cancelled before."""
        if self.fn is None:
            return False
        self.fn = None
        self.arg = None
        self.calendar.note_dead_entry()
        return True


def _expire(timer: Timer) -> None:
    """Call a timer's handler, or skip the entry that a cancelled timer left in the heap."""
    fn = timer.fn
    if fn is None:
        timer.calendar.forget_dead_entry()
        return
    arg = timer.arg
    timer.fn = None
    timer.arg = None
    fn(arg)


class Calendar:
    """Simulated time and all that is due, in order."""

    __slots__ = (
        "_dead", "_far", "_heap", "_horizon_ns", "_horizon_posted", "_limit", "_push", "_removed",
        "_running", "_sequence", "now",
    )  # fmt: skip

    def __init__(self, now_ns: int = 0) -> None:
        self.now: int = now_ns  # ns; read freely, written by the loop only
        self._heap: list[Entry] = []  # the near one
        self._far: list[Entry] = []
        self._horizon_ns: int = now_ns
        self._horizon_posted: bool = False  # the entry that moves the horizon is in the near heap
        self._sequence: int = 0  # entries ever pushed, the horizon's left out
        self._removed: int = 0  # of these, taken out without having run
        self._dead: int = 0  # entries of cancelled timers still in the heap
        self._running: bool = False
        self._limit: bool = False  # the entry that ends run_until() is in the heap
        # An attribute, so that shuffling ties costs the ordinary run no test per entry.
        self._push: Callable[[list[Entry], Entry], None] = heappush

    # -- Posting. post() and post_at() are the hottest functions of the twin: no sharing of code.

    def post(self, delay_ns: int, fn: Handler, arg: Any) -> None:
        """Call ``fn(arg)`` in ``delay_ns``; cannot be cancelled, costs least."""
        if delay_ns < 0:
            raise ValueError(f"delay of {delay_ns} ns: must not be negative")
        self._sequence = sequence = self._sequence + 1
        when_ns = self.now + delay_ns
        if when_ns < self._horizon_ns:
            self._push(self._heap, (when_ns, sequence, fn, arg))
        else:
            self._post_far((when_ns, sequence, fn, arg))

    def post_at(self, when_ns: int, fn: Handler, arg: Any) -> None:
        """Call ``fn(arg)`` at ``when_ns``, which must not be in the past."""
        if when_ns < self.now:
            raise ValueError(f"{when_ns} ns is in the past: it is {self.now} ns")
        self._sequence = sequence = self._sequence + 1
        if when_ns < self._horizon_ns:
            self._push(self._heap, (when_ns, sequence, fn, arg))
        else:
            self._post_far((when_ns, sequence, fn, arg))

    def post_priority(self, when_ns: int, priority: int, fn: Handler, arg: Any) -> None:
        """Call ``fn(arg)`` at ``when_ns``, before what is due then with a higher ``priority``."""
        if when_ns < self.now:
            raise ValueError(f"{when_ns} ns is in the past: it is {self.now} ns")
        self._sequence = sequence = self._sequence + 1
        key = ((priority - NORMAL) << PRIORITY_SHIFT) + sequence
        if when_ns < self._horizon_ns:
            self._push(self._heap, (when_ns, key, fn, arg))
        else:
            self._post_far((when_ns, key, fn, arg))

    def call_after(self, delay_ns: int, fn: Handler, arg: Any) -> Timer:
        """Call ``fn(arg)`` in ``delay_ns`` unless the timer returned is cancelled before."""
        return self.call_at(self.now + delay_ns, fn, arg)

    def call_at(self, when_ns: int, fn: Handler, arg: Any) -> Timer:
        """Call ``fn(arg)`` at ``when_ns`` unless the timer returned is cancelled before."""
        timer = Timer(self, when_ns, fn, arg)
        self.post_at(when_ns, _expire, timer)
        return timer

    def advance(self, when_ns: int) -> bool:
        """Go to ``when_ns`` at once if nothing is due until then; False if something is.

        For a handler that would post itself again as the last thing it does: a loop in it does the
        same, in the same order, without an entry (which is counted all the same).
        """
        heap = self._heap
        if heap and heap[0][0] <= when_ns:
            return False
        self._sequence += 1
        self.now = when_ns
        return True

    # -- The horizon.

    def _post_far(self, entry: Entry) -> None:
        """Put an entry behind the horizon, unless that can be moved on to let it in."""
        if not self._far:
            self._horizon_ns = max(self._horizon_ns, self.now + NEAR_NS)
            if entry[0] < self._horizon_ns:
                self._push(self._heap, entry)
                return
        self._push(self._far, entry)
        if not self._horizon_posted:
            self._post_horizon()

    def _post_horizon(self) -> None:
        self._horizon_posted = True
        heappush(self._heap, (self._horizon_ns, FIRST_KEY, _reach_horizon, self))

    def move_horizon(self) -> None:
        """Set the horizon a little behind the next far entry; its own entry has been met."""
        self._horizon_posted = False
        far = self._far
        if not far:
            return
        self._horizon_ns = horizon_ns = far[0][0] + NEAR_NS
        while far and far[0][0] < horizon_ns:
            heappush(self._heap, heappop(far))
        if far:
            self._post_horizon()

    # -- Running.

    def run_until(self, when_ns: int) -> None:
        """Run all that is due up to and including ``when_ns``; leave ``now`` there."""
        if when_ns < self.now:
            raise ValueError(f"{when_ns} ns is in the past: it is {self.now} ns")
        if self._running:
            raise RuntimeError("the calendar is already running")
        # A last entry that stops the loop spares it a look at the time of the next one.
        self._sequence += 1
        heappush(self._heap, (when_ns, LAST_KEY, _reach_limit, self))
        self._limit = True
        try:
            self.run()
        finally:
            if self._limit:  # The loop ended for another reason.
                self._take_out_limit()

    def run(self) -> None:
        """Run until nothing is due any more, or stop() is called."""
        if self._running:
            raise RuntimeError("the calendar is already running")
        self._running = True
        heap = self._heap
        pop = heappop
        try:
            while heap:
                when_ns, _, fn, arg = pop(heap)
                self.now = when_ns
                fn(arg)
        except StopRun:
            pass
        finally:
            self._running = False

    def run_to(self, handler: Handler) -> Entry | None:
        """Run entries up to the first of ``handler``; return that one unrun, None if none is left.

        SimPy's own loop is fed with this: what it gets are its events, what is run are bare timers.
        """
        heap = self._heap
        pop = heappop
        while heap:
            entry = pop(heap)
            when_ns, _, fn, arg = entry
            self.now = when_ns
            if fn is handler:
                return entry
            fn(arg)
        return None

    def step(self) -> None:
        """Run the next entry; IndexError when there is none."""
        if self._heap and self._heap[0][2] is _reach_horizon:
            heappop(self._heap)
            self.move_horizon()
        self.now, _, fn, arg = heappop(self._heap)
        fn(arg)

    def stop(self) -> None:
        """End run() or run_until() after the entry that is running now."""
        self._sequence = sequence = self._sequence + 1
        heappush(self._heap, (self.now, sequence - LAST_KEY, _stop, None))

    # -- Looking.

    def peek(self) -> int | None:
        """Return when the next entry is due (ns), None when there is none."""
        entry = self.next_entry()
        return None if entry is None else entry[0]

    def next_entry(self) -> Entry | None:
        """Return the next entry that will do something, None when there is none."""
        heap = self._heap
        while heap:
            entry = heap[0]
            if entry[2] is _reach_horizon:
                heappop(heap)
                self.move_horizon()
            elif entry[2] is _expire and not entry[3].is_pending():
                heappop(heap)
                self.forget_dead_entry()
            else:
                return entry
        return None

    def pending(self) -> int:
        """Return how many entries are still to run."""
        return self._in_heaps() - self._dead

    def entries_posted(self) -> int:
        """Return how many entries were ever posted."""
        return self._sequence

    def entries_run(self) -> int:
        """Return how many entries the loop has taken so far (a cancelled one taken counts)."""
        return self._sequence - self._removed - self._in_heaps()

    def _in_heaps(self) -> int:
        return len(self._heap) + len(self._far) - self._horizon_posted

    # -- Ties and dead entries.

    def shuffle_ties(self, seed: int) -> None:
        """Test mode: from now on, entries of equal time and priority run in a random order."""
        self._push = _ShuffledPush(seed).push

    def note_dead_entry(self) -> None:
        """Count a cancelled timer's entry; sweep when more than half of the heaps is dead."""
        self._dead += 1
        if self._dead > DEAD_ENTRIES_MIN and self._dead * 2 > self._in_heaps():
            self._sweep()

    def forget_dead_entry(self) -> None:
        """Count down: the loop met a cancelled timer's entry."""
        assert self._dead > 0
        self._dead -= 1

    def _sweep(self) -> None:
        """Take the dead entries out, in place: the running loop holds the same list."""
        size = self._in_heaps()
        for heap in (self._heap, self._far):
            heap[:] = [entry for entry in heap if entry[2] is not _expire or entry[3].is_pending()]
            heapify(heap)
        assert size - self._in_heaps() == self._dead
        self._removed += self._dead
        self._dead = 0

    def _take_out_limit(self) -> None:
        """Remove the entry that would have ended run_until()."""
        heap = self._heap
        heap[:] = [entry for entry in heap if entry[2] is not _reach_limit]
        heapify(heap)
        self._removed += 1
        self._limit = False

    def pass_limit(self) -> None:
        """End run_until(): its last entry has been met."""
        self._limit = False
        raise StopRun


def _reach_limit(calendar: Calendar) -> None:
    calendar.pass_limit()


def _reach_horizon(calendar: Calendar) -> None:
    calendar.move_horizon()


def _stop(_: Any) -> None:
    raise StopRun


class _ShuffledPush:
    """heappush() that puts a random number between an entry's priority and its sequence."""

    __slots__ = ("_random",)

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def push(self, heap: list[Entry], entry: Entry) -> None:
        """Push ``entry`` with its sequence number (low 52 bits) made the last criterion."""
        when_ns, key, fn, arg = entry
        priority = key >> PRIORITY_SHIFT
        sequence = key - (priority << PRIORITY_SHIFT)
        draw = self._random.getrandbits(40)
        key = (((priority << 40) + draw) << PRIORITY_SHIFT) + sequence
        heappush(heap, (when_ns, key, fn, arg))
