"""The calendar: what happens next, in simulated nanoseconds.

Models: entries ``(time_ns, key, function, argument)``, in order.  Everything that happens in the
twin is such an entry: a disk's completion, a scheduler tick, a SimPy event (see environment.py).
An entry is never a process: running one is one call of a plain function, ``function(argument)``.

What runs next is in a sorted list, *near*, which stays short however many time-outs of seconds and
minutes are pending in a heap, *far*. When near is empty, it gets what far has next. (The levels of
the kernel's timer wheel are for the same.)

Linux counterpart: none; it takes the place of real time. The interface follows the kernel's timers
(kernel/time/hrtimer.c), whose handlers are plain functions in interrupt context as well.

Invariants:
- ``now`` is an int and never decreases; an entry runs exactly at its time, unless cancelled.
- Entries of one time run by priority (URGENT first), then in the order in which they were posted.
  ``key`` holds both, ``(priority - NORMAL) * 2**52 + sequence number``, so that ordering costs one
  comparison and no two entries are ever equal. ``shuffle_ties`` replaces the order of posting by a
  random one: what then changes in a result, depended on chance.
- Each near entry comes before each far one. What is due before the *horizon* goes into near.
- No entry of a cancelled timer calls anything; dead entries are at most half of many.

Left out: calendar queues, wheels of more levels: near is short, most new entries go to its front.
"""

import random
from bisect import insort
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any, Final, TypeAlias, cast

from mypy_extensions import i64

Handler: TypeAlias = Callable[[Any], object]  # what it returns is dropped
Entry: TypeAlias = tuple[int, int, Handler, Any]

# SimPy's two priorities: process starts and interrupts come before ordinary events.
URGENT: Final = 0
NORMAL: Final = 1
PRIORITY_SHIFT: Final = 52
LAST_KEY: Final = 1 << 200  # Sorts behind every entry of its time: where run_until() stops.
# How far the horizon is set: farther than disks and ticks take, nearer than most time-outs.
NEAR_NS: Final = 100_000_000
# Inserting into a longer list takes time. Looked at when so many more were posted: a power of two.
NEAR_ENTRIES_MAX: Final = 1024
NEAR_LOOK_MASK: Final = NEAR_ENTRIES_MAX - 1
SHORT_ENTRIES_MAX: Final = 8  # So few are looked through from the front; more are bisected.
COMPILED: Final = not __file__.endswith(".py")
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
        "_dead",
        "_far",
        "_horizon_ns",
        "_insert",
        "_limit",
        "_near",
        "_removed",
        "_running",
        "_searches",
        "_sequence",
        "_shuffle",
        "_untyped_near",
        "now",
    )

    def __init__(self, now_ns: int = 0) -> None:
        self.now: int = now_ns  # ns; read freely, written by the loop only
        self._near: list[Entry] = []  # sorted
        # The same list. To get an Entry from it, compiled code unpacks the whole of it.
        self._untyped_near: list[tuple[Any, ...]] = cast("Any", self._near)
        self._far: list[Entry] = []  # a heap
        self._horizon_ns: int = now_ns
        self._sequence: int = 0  # entries ever posted
        self._removed: int = 0  # of these, taken out without having run
        self._dead: int = 0  # entries of cancelled timers still there
        self._running: bool = False
        self._limit: bool = False  # the entry that ends run_until() is there
        self._shuffle: _ShuffledKeys | None = None
        # Attributes, so that shuffling ties costs the ordinary run no test per entry.
        self._insert: Callable[[list[Entry], Entry], None] = insort
        self._searches: bool = COMPILED

    # -- Posting.

    def post(self, delay_ns: int, fn: Handler, arg: Any) -> None:
        """Call ``fn(arg)`` in ``delay_ns``; cannot be cancelled, costs least."""
        if delay_ns < 0:
            raise ValueError(f"delay of {delay_ns} ns: must not be negative")
        self.post_at(self.now + delay_ns, fn, arg)

    def post_at(self, when_ns: int, fn: Handler, arg: Any) -> None:
        """Call ``fn(arg)`` at ``when_ns``, which must not be in the past."""
        if when_ns < self.now:
            raise ValueError(f"{when_ns} ns is in the past: it is {self.now} ns")
        self._sequence = sequence = self._sequence + 1
        if when_ns >= self._horizon_ns:
            self._post_far((when_ns, sequence, fn, arg))
            return
        near = self._near
        if self._searches:
            near.insert(self._place_near(when_ns, sequence), (when_ns, sequence, fn, arg))
        else:
            self._insert(near, (when_ns, sequence, fn, arg))
        if not sequence & NEAR_LOOK_MASK:
            self._shorten_near()

    def _place_near(self, when_ns: int, key: int) -> int:
        """Return where an entry goes in near, as insort() would place it.

        insort() compares any objects, this compiled numbers: 1.1x in the compiled io_uring.
        """
        near = self._untyped_near
        low: i64 = 0
        high: i64 = len(near)
        while low < high:
            # Most new entries go to the front of the list.
            middle = (low + high) >> 1 if high - low > SHORT_ENTRIES_MAX else low
            entry = near[middle]
            there_ns: int = entry[0]
            if when_ns <= there_ns:
                there_key: int = entry[1]
                if when_ns < there_ns or key < there_key:
                    if middle == low:
                        break
                    high = middle
                    continue
            low = middle + 1
        return low

    def post_priority(self, when_ns: int, priority: int, fn: Handler, arg: Any) -> None:
        """Call ``fn(arg)`` at ``when_ns``, before what is due then with a higher ``priority``."""
        if when_ns < self.now:
            raise ValueError(f"{when_ns} ns is in the past: it is {self.now} ns")
        self._sequence = sequence = self._sequence + 1
        key = ((priority - NORMAL) << PRIORITY_SHIFT) + sequence
        if when_ns < self._horizon_ns:
            self._insert(self._near, (when_ns, key, fn, arg))
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
        near = self._near
        if (near or self._refill()) and near[0][0] <= when_ns:
            return False
        self._sequence += 1
        self.now = when_ns
        return True

    # -- Near and far.

    def _post_far(self, entry: Entry) -> None:
        """Post what is due at the horizon or later."""
        if self._shuffle is not None:
            entry = self._shuffle.shuffled(entry)
        self._place(entry)

    def _place(self, entry: Entry) -> None:
        """Put an entry where it belongs."""
        near = self._near
        if entry[0] < self._horizon_ns or (near and entry < near[-1]):
            insort(near, entry)
        else:
            heappush(self._far, entry)

    def _refill(self) -> bool:
        """Bring what far has next into the empty near list; return False if far is empty too."""
        far = self._far
        if not far:
            return False
        near = self._near
        horizon_ns = far[0][0] + NEAR_NS
        while far and far[0][0] < horizon_ns and len(near) < NEAR_ENTRIES_MAX // 4:
            near.append(heappop(far))
        self._horizon_ns = min(horizon_ns, far[0][0]) if far else horizon_ns
        return True

    def _shorten_near(self) -> None:
        """Put the later part of a long near list back."""
        near = self._near
        if len(near) > NEAR_ENTRIES_MAX:
            kept = NEAR_ENTRIES_MAX // 4
            self._far.extend(near[kept:])
            heapify(self._far)
            del near[kept:]
            self._horizon_ns = self._far[0][0]

    # -- Running.

    def run_until(self, when_ns: int) -> None:
        """Run all that is due up to and including ``when_ns``; leave ``now`` there."""
        if when_ns < self.now:
            raise ValueError(f"{when_ns} ns is in the past: it is {self.now} ns")
        if self._running:
            raise RuntimeError("the calendar is already running")
        # A last entry that stops the loop spares it a look at the time of the next one.
        self._sequence += 1
        self._place((when_ns, LAST_KEY, _reach_limit, self))
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
        near = self._near
        try:
            while True:  # and not "while near", which CPython 3.11 takes for no loop to specialise
                if not near and not self._refill():
                    break
                # Not "_", which mypyc would make an object of: 1.01x in the compiled storm.
                when_ns, _key, fn, arg = near.pop(0)
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
        near = self._near
        while near or self._refill():
            entry = near.pop(0)
            when_ns, _key, fn, arg = entry
            self.now = when_ns
            if fn is handler:
                return entry
            fn(arg)
        return None

    def step(self) -> None:
        """Run the next entry; IndexError when there is none."""
        if not self._near:
            self._refill()
        self.now, _key, fn, arg = self._near.pop(0)
        fn(arg)

    def stop(self) -> None:
        """End run() or run_until() after the entry that is running now."""
        self._sequence = sequence = self._sequence + 1
        self._near.insert(0, (self.now, sequence - LAST_KEY, _stop, None))

    # -- Looking.

    def peek(self) -> int | None:
        """Return when the next entry is due (ns), None when there is none."""
        entry = self.next_entry()
        return None if entry is None else entry[0]

    def next_entry(self) -> Entry | None:
        """Return the next entry that will do something, None when there is none."""
        near = self._near
        while near or self._refill():
            entry = near[0]
            if entry[2] is not _expire or entry[3].is_pending():
                return entry
            del near[0]
            self.forget_dead_entry()
        return None

    def next_timer_ns(self, is_meant: Callable[[Any], bool], at_most_ns: int) -> int:
        """Return how far away the next timer is whose argument `is_meant`, at most so far."""
        soonest_ns = self.now + at_most_ns
        for entry in self._near:
            if entry[0] >= soonest_ns:
                return at_most_ns
            if _is_set_for(entry, is_meant):
                return entry[0] - self.now
        for entry in self._far:
            if entry[0] < soonest_ns and _is_set_for(entry, is_meant):
                soonest_ns = entry[0]
        return soonest_ns - self.now

    def pending(self) -> int:
        """Return how many entries are still to run."""
        return self._entries() - self._dead

    def entries_posted(self) -> int:
        """Return how many entries were ever posted."""
        return self._sequence

    def entries_run(self) -> int:
        """Return how many entries the loop has taken so far (a cancelled one taken counts)."""
        return self._sequence - self._removed - self._entries()

    def _entries(self) -> int:
        return len(self._near) + len(self._far)

    # -- Ties and dead entries.

    def shuffle_ties(self, seed: int) -> None:
        """Test mode: from now on, entries of equal time and priority run in a random order."""
        self._shuffle = _ShuffledKeys(seed)
        self._insert = self._shuffle.insert
        self._searches = False

    def note_dead_entry(self) -> None:
        """Count a cancelled timer's entry; sweep when more than half are dead."""
        self._dead += 1
        if self._dead > DEAD_ENTRIES_MIN and self._dead * 2 > self._entries():
            self._sweep()

    def forget_dead_entry(self) -> None:
        """Count down: the loop met a cancelled timer's entry."""
        assert self._dead > 0
        self._dead -= 1

    def _sweep(self) -> None:
        """Take the dead entries out, in place: the running loop holds the same list."""
        size = self._entries()
        self._near[:] = filter(_is_alive, self._near)
        self._far[:] = filter(_is_alive, self._far)
        heapify(self._far)
        assert size - self._entries() == self._dead
        self._removed += self._dead
        self._dead = 0

    def _take_out_limit(self) -> None:
        """Remove the entry that would have ended run_until()."""
        for entries in (self._near, self._far):
            entries[:] = [entry for entry in entries if entry[2] is not _reach_limit]
        heapify(self._far)
        self._removed += 1
        self._limit = False

    def pass_limit(self) -> None:
        """End run_until(): its last entry has been met."""
        self._limit = False
        raise StopRun


def _reach_limit(calendar: Calendar) -> None:
    calendar.pass_limit()


def _stop(_: Any) -> None:
    raise StopRun


def _is_set_for(entry: Entry, is_meant: Callable[[Any], bool]) -> bool:
    return entry[2] is _expire and entry[3].is_pending() and is_meant(entry[3].arg)


def _is_alive(entry: Entry) -> bool:
    return entry[2] is not _expire or entry[3].is_pending()


class _ShuffledKeys:
    """Puts a random number between an entry's priority and its sequence."""

    __slots__ = ("_random",)

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def shuffled(self, entry: Entry) -> Entry:
        """Return ``entry`` with its sequence number (low 52 bits) made the last criterion."""
        when_ns, key, fn, arg = entry
        priority = key >> PRIORITY_SHIFT
        sequence = key - (priority << PRIORITY_SHIFT)
        draw = self._random.getrandbits(40)
        return when_ns, (((priority << 40) + draw) << PRIORITY_SHIFT) + sequence, fn, arg

    def insert(self, entries: list[Entry], entry: Entry) -> None:
        """Insert an entry, shuffled."""
        insort(entries, self.shuffled(entry))
