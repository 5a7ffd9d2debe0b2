"""Sleeping locks: the mutex, and the read-write semaphore of an inode.

Models: waiters sleep uninterruptibly, so they count as load, and outside io_schedule(), so they are
not iowait, whatever the owner does (mutex_lock_io of 4.11 on is a matter of the caller's).
Theory of operation. Unlocking frees the lock and wakes the oldest waiter. Nothing is handed over:
the waiter has to come and take the lock, and whoever asks before it is there takes it first
(*stealing*); then the waiter goes back to sleep in front of all others. So it is a race. The waiter
needs a CPU and a context switch; who unlocked runs already, and so do those who ask for the first
time. With one CPU the waiter cannot come before who unlocked has slept or used its slice: a task
that renames, unlinks, creates and writes in one directory does all of that at one go, and its data
are on their way before the next task has renamed anything. That is what decides which of several
writers' data go out before a journal's commit block. With an idle CPU the waiter is there within
microseconds, and wins unless the next request comes sooner.

A race is decided by when things happen, and a task's effects precede their cost (task.py). So where
somebody waits, the lock is free once the debt of who unlocks is worked off, and who asks for it
works its own debt off first. Who finds the lock's owner on the way out, on another CPU, spins until
then (*optimistic spinning*), and is there before any sleeper.

A lock is kept for a waiter that was overtaken too often (*handoff*): a mutex of 4.10 or later for
the first waiter that was woken in vain, a rw_semaphore of 5.3 or later for one that has waited for
more than a tick or two, too.

A read-write semaphore has one writer or many readers.
 - It is held until its holder has worked off what it did under it, though nobody waits: who asks
   within that time spins or sleeps. Tasks may be ahead of their CPUs by a millisecond, so who asks
   when another task had it within the last one works its debt off before it asks; and so do all
   for a while. One who has it alone does not, and pays for nothing of this.
 - Who asks for it behind a sleeper sleeps too, readers behind a writer; a writer that is running
   may still steal it, a reader of 5.11 and later if no reader has it.
 - Readers are handed the lock when the first sleeper is one: all that sleep (from 5.3 on), or all
   in front of the first writer. They need a CPU and a switch then, and no writer gets in between.
 - But where writers spin, one of them is there before the reader at the head gets anything. So
   readers starve beside a few writers that are never done, to 5.2 for ever, from 5.3 on until the
   handoff: eight milliseconds with ticks of four.
 - Writers spin on a writer, from 5.3 on also on readers, if these are gone within some 10 us.
   Readers spin on a writer from 5.3 to 5.10 only.
A downgrade makes a writer a reader, and lets the readers in that sleep in front.
The lock of a regular file to 4.6 (i_mutex) is such a semaphore with the rules of a mutex, that
nobody takes shared.

Of a directory's lock, a Mutex, ``Holdings`` has the CPU time for which it is held where nobody
waits, and spinning until it is free. Code under a lock that does not sleep happens at one instant
of simulated time and leaves a debt of CPU time, so that two CPUs would both be found to hold the
lock while they work the debts off. The holdings are therefore kept as intervals of time: from where
the debt stood when the lock was taken, for what was charged while it was held. One that would
overlap another CPU's is moved behind it, into the first gap that is long enough; the time until
then is spent spinning, which is CPU time too, and charged.

Estimate: eight writers of one directory, with four calls each of 100 us under its lock: handed on
in turn, all first data are ready after 4 x 8 x 100 us; stolen, the first after 0.4 ms. Four writers
that hold a semaphore for 4 us and are away for 1 us: 250,000 times a second, four CPUs busy; of
four readers beside them each gets it once in 8 to 12 ms, so 400 times a second in all.
Linux counterpart: kernel/mutex.c, kernel/locking/mutex.c: __mutex_lock_common, mutex_spin_on_owner
 (0d66bf6d3514, 2.6.30), __mutex_unlock_slowpath (2.6.16; before, a semaphore), MUTEX_FLAG_HANDOFF
 (9d659ae14b54, 4.10); kernel/locking/rwsem.c: rwsem_down_write_slowpath, rwsem_try_write_lock,
 rwsem_mark_wake, rwsem_down_read_slowpath, rwsem_rspin_threshold, downgrade_write,
 RWSEM_WAIT_TIMEOUT; the releases are in features.py.
Invariants: a lock has at most one owner, who alone unlocks it, and no readers then; sleepers get it
 in FIFO order; once it is kept for one of them, nobody else gets it before. Times for which
 different tasks hold a semaphore do not overlap, unless they read; nor do the holdings of different
 CPUs. A machine with one CPU never spins. Nobody sleeps for a semaphore that is free.
Left out: spinning on an owner that runs and will yet sleep, and of the first waiter; the 10 us of
 spinning on readers that turn out to stay; a rw_semaphore to 3.9 is handed to who waits. An owner
 that is preempted while it works its debt off is believed to be done when it would have been.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from sim.sched.features import Features
from sim.sched.task import DEBT_LIMIT_NS, TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.units import NS_PER_S

_EVER_NS: Final = 1 << 62
WAITS_PER_S: Final = 250  # RWSEM_WAIT_TIMEOUT: DIV_ROUND_UP(HZ, 250) ticks
READERS_STAY_NS: Final = 10_000  # rwsem_rspin_threshold(), but for the 0.5 us a reader
RIVALS_NS: Final = 100_000_000  # Shorter is less exact where tasks seldom meet; longer is slower.

Patience: TypeAlias = Callable[[Task], int]


def patience_of_mutex(task: Task) -> int:
    """Return until when a waiter bears to be woken in vain: not at all, or for ever."""
    sched = task.sched
    return sched.calendar.now if sched.features.mutex_handoff else _EVER_NS


def patience_of_rwsem(task: Task) -> int:
    """Return until when a waiter bears to be overtaken: so many whole ticks (time_after)."""
    sched = task.sched
    if not sched.features.rwsem_handoff:
        return _EVER_NS
    ticks = -(-NS_PER_S // (sched.tick_ns * WAITS_PER_S)) + 1
    return (sched.calendar.now // sched.tick_ns + ticks) * sched.tick_ns


class Waiter:
    """A task that sleeps for a lock (struct mutex_waiter, struct rwsem_waiter)."""

    __slots__ = ("granted", "patient_until_ns", "reads", "task")

    def __init__(self, task: Task, patient_until_ns: int, reads: bool) -> None:
        self.task = task
        self.patient_until_ns = patient_until_ns
        self.reads: bool = reads
        self.granted: bool = False  # a reader that has been handed the lock


class Mutex:
    """A mutex (struct mutex)."""

    __slots__ = ("_free_ns", "_kept_for", "_patience", "_waiters", "owner")

    def __init__(self, patience: Patience = patience_of_mutex) -> None:
        """``patience(task)`` is until when a waiter lets itself be overtaken."""
        self._patience = patience
        self.owner: Task | None = None
        self._free_ns: int = -1  # when who has unlocked it will have got there; -1: it has not
        self._waiters: deque[Waiter] = deque()
        self._kept_for: Waiter | None = None  # whom nobody may overtake any more

    def trylock_fast(self, task: Task) -> bool:
        """Take the lock if nobody else has it or wants it."""
        if self.owner is not None or self._waiters:
            return False
        self.owner = task
        return True

    def trylock(self, task: Task) -> bool:
        """Take the lock if it is free, whoever waits for it."""
        if self._kept_for is not None or not self._is_free(task.sched.calendar.now):
            return False
        self.owner = task
        return True

    def lock(self, task: Task, wchan: str = "mutex_lock") -> Blocking[None]:
        """Take the lock; sleep until it is free and nobody is there before."""
        if not self.trylock_fast(task):
            yield from self._contend(task, wchan)

    def _contend(self, task: Task, wchan: str) -> Blocking[None]:
        """Take a lock that others have or want: steal it, spin for it or sleep for it."""
        if task.system_debt_ns or task.user_debt_ns:
            yield
        while not self.trylock(task):
            ends_ns = self._spin_until_ns(task)
            if ends_ns <= task.sched.calendar.now:
                yield from self._wait(task, wchan)
                return
            yield from self._spin(task, ends_ns)

    def _spin(self, task: Task, ends_ns: int) -> Blocking[None]:
        """Spend the CPU's time until then."""
        task.charge_system(ends_ns - task.sched.calendar.now)
        yield

    def _is_free(self, now: int) -> bool:
        """Return whether nobody has it."""
        return self.owner is None

    def _spin_until_ns(self, task: Task) -> int:
        """Return when the lock's owner, if it runs, will have freed it; -1: not to be spun for."""
        owner = self.owner
        if owner is None or self._kept_for is not None:
            return -1
        sched = owner.sched
        return self._free_ns if sched.features.mutex_spins and sched.on_cpu(owner) else -1

    def _wait(self, task: Task, wchan: str) -> Blocking[None]:
        """Sleep until woken as the first waiter, and there before anybody else."""
        assert self.owner is not task, f"{task} locks twice"
        waiter = Waiter(task, self._patience(task), False)
        self._waiters.append(waiter)
        while True:
            self._look_when_free(task)
            task.state = TASK_UNINTERRUPTIBLE
            task.wchan = wchan
            yield
            if self._waiters[0] is not waiter:
                continue
            now = task.sched.calendar.now
            if self._is_free(now):
                break
            if now > waiter.patient_until_ns:
                self._kept_for = waiter
        self._waiters.popleft()
        self._kept_for = None
        self.owner = task

    def _look_when_free(self, task: Task) -> None:
        """See that a sleeper is woken: here who unlocks does, as it finds the waiter."""

    def unlock(self, task: Task) -> None:
        """Free the lock and wake the oldest waiter, once the work done under it is paid for."""
        assert self.owner is task, f"{task} unlocks what it does not hold"
        assert self._free_ns < 0, f"{task} unlocks twice"
        if not self._waiters:
            self.owner = None
            return
        debt_ns = task.user_debt_ns + task.system_debt_ns
        if not debt_ns:
            self._free(task)
            return
        calendar = task.sched.calendar
        self._free_ns = calendar.now + debt_ns
        calendar.post_at(self._free_ns, self._free, task)

    def _free(self, task: Any) -> None:
        """Let go of the lock; wake the oldest waiter (__mutex_unlock_slowpath)."""
        self._free_ns = -1
        self.owner = None
        task.sched.wake_up_for(task, self._waiters[0].task)

    def is_locked(self) -> bool:
        """Return whether somebody holds it."""
        return self.owner is not None

    def waiting(self) -> int:
        """Return how many tasks sleep for it."""
        return len(self._waiters)


@dataclass(frozen=True, kw_only=True)
class LockRules:
    """What one release does about those who cannot have a semaphore at once."""

    patience: Patience
    wchan: str  # where writers sleep
    spins: bool  # writers spin on a writer that runs,
    spins_on_readers: bool  # on readers too, for a while
    readers_spin: bool
    readers_steal: bool
    wakes_all_readers: bool


def rwsem_rules(has: Features) -> LockRules:
    """Return those of a rw_semaphore (struct rw_semaphore)."""
    return LockRules(
        patience=patience_of_rwsem,
        wchan="rwsem_down_write_slowpath",
        spins=has.rwsem_spins,
        spins_on_readers=has.rwsem_spins_on_readers,
        readers_spin=has.rwsem_readers_spin,
        readers_steal=has.rwsem_readers_steal,
        wakes_all_readers=has.rwsem_wakes_all_readers,
    )


def mutex_rules(has: Features) -> LockRules:
    """Return those of a mutex, which has no readers."""
    return LockRules(
        patience=patience_of_mutex,
        wchan="mutex_lock",
        spins=has.mutex_spins,
        spins_on_readers=False,
        readers_spin=False,
        readers_steal=False,
        wakes_all_readers=False,
    )


class RwSemaphore(Mutex):
    """A lock that one writer has, or many readers, until their debts are worked off."""

    __slots__ = (
        "_exclusive_ns",
        "_last",
        "_look_ns",
        "_rivals_until_ns",
        "_rules",
        "_shared_ns",
        "_spinners",
        "_unlocker",
        "readers",
    )

    def __init__(self, rules: LockRules) -> None:
        super().__init__(rules.patience)
        self._rules = rules
        self.readers: int = 0  # that have it and have not unlocked it
        # When the last writer that has unlocked it gets or got there, and the last of the readers.
        self._exclusive_ns: int = -DEBT_LIMIT_NS
        self._shared_ns: int = -DEBT_LIMIT_NS
        self._last: Task | None = None  # who alone had it since all before were done with it
        self._rivals_until_ns: int = 0  # till then all work their debts off before they ask
        self._unlocker: Task | None = None
        self._spinners: list[Task] = []
        self._look_ns: int = -1  # when _look() is due; -1: it is not

    # -- Writers

    def trylock_fast(self, task: Task) -> bool:
        """Take the lock if nobody else has it or wants it, nor had it within the last while."""
        if self.owner is not None or self.readers or self._waiters:
            return False
        if self._last is not task or self._rivals_until_ns:
            if not self._is_over(task, self._all_done_ns()):
                return False
            self._last = task
        self.owner = task
        return True

    def _is_over(self, task: Task, done_ns: int) -> bool:
        """Return whether what ended then cannot concern a task, whatever it owes."""
        now = task.sched.calendar.now
        if self._rivals_until_ns <= now:
            self._rivals_until_ns = 0
            if done_ns + DEBT_LIMIT_NS <= now:
                return True
        return done_ns <= now and not task.system_debt_ns and not task.user_debt_ns

    def _all_done_ns(self) -> int:
        """Return when all that have unlocked it will have got there, or have."""
        exclusive_ns, shared_ns = self._exclusive_ns, self._shared_ns
        return exclusive_ns if exclusive_ns > shared_ns else shared_ns

    def _is_free(self, now: int) -> bool:
        """Return whether nobody has it, and nobody is on the way out."""
        return self.owner is None and not self.readers and self._all_done_ns() <= now

    def _contend(self, task: Task, wchan: str) -> Blocking[None]:
        """Take a lock that others have or want, or had within the last while."""
        self._rivals_until_ns = task.sched.calendar.now + RIVALS_NS
        return Mutex._contend(self, task, self._rules.wchan)

    def trylock(self, task: Task) -> bool:
        """Take the lock if it is free, whoever waits for it."""
        if not Mutex.trylock(self, task):
            return False
        self._last = task
        return True

    def _spin(self, task: Task, ends_ns: int) -> Blocking[None]:
        """Spend the CPU's time until then, being there before any sleeper."""
        self._spinners.append(task)
        task.charge_system(ends_ns - task.sched.calendar.now)
        yield
        self._spinners.remove(task)

    def _spin_until_ns(self, task: Task) -> int:
        """Return when those on the way out will be gone; -1: not to be spun for."""
        rules = self._rules
        if not rules.spins or self._kept_for is not None or self.owner is not None or self.readers:
            return -1
        now = task.sched.calendar.now
        if self._shared_ns > now:
            stays = self._shared_ns - now > READERS_STAY_NS
            return -1 if stays or not rules.spins_on_readers else self._shared_ns
        unlocker = self._unlocker
        runs = unlocker is not None and task.sched.on_cpu(unlocker)
        return self._exclusive_ns if runs else -1

    def _wait(self, task: Task, wchan: str) -> Blocking[None]:
        """Sleep until woken as the first waiter, and there before anybody else."""
        yield from Mutex._wait(self, task, wchan)
        self._last = task

    def unlock(self, task: Task) -> None:
        """Free the lock, as from when the work done under it is paid for (up_write)."""
        assert self.owner is task, f"{task} unlocks what it does not hold"
        self.owner = None
        self._unlocker = task
        self._exclusive_ns = owed_until_ns(task)
        if self._waiters:
            self._look_when_free(task)

    def downgrade(self, task: Task) -> None:
        """Go on as a reader, and let in the readers that sleep in front (downgrade_write)."""
        assert self.owner is task, f"{task} downgrades what it does not hold"
        self.owner = None
        self._unlocker = task
        self.readers += 1
        if self._waiters and self._waiters[0].reads:
            self._grant(task)

    # -- Readers

    def trylock_shared_fast(self, task: Task) -> bool:
        """Take the lock shared if no writer has it, wants it or had it within the last while."""
        if self.owner is not None or self._waiters:
            return False
        last = self._last
        if last is not task or self._rivals_until_ns:
            if not self._is_over(task, self._exclusive_ns):
                return False
            if last is not None:
                alone = not self.readers and self._shared_ns <= task.sched.calendar.now
                self._last = task if alone else None
        self.readers += 1
        return True

    def lock_shared(self, task: Task, wchan: str = "rwsem_down_read_slowpath") -> Blocking[None]:
        """Take the lock as one of its readers; sleep until it is handed over (down_read)."""
        if self.trylock_shared_fast(task):
            return
        self._rivals_until_ns = task.sched.calendar.now + RIVALS_NS
        if task.system_debt_ns or task.user_debt_ns:
            yield
        rules = self._rules
        now = task.sched.calendar.now
        while self._kept_for is None:
            may_pass = not self._waiters or (rules.readers_steal and self._is_free(now))
            if may_pass and self.owner is None and self._exclusive_ns <= now:
                self._last = None
                self.readers += 1
                if self._waiters and self._waiters[0].reads:
                    self._grant(task)
                return
            ends_ns = self._spin_until_ns(task) if rules.readers_spin else -1
            if ends_ns <= now:
                break
            yield from self._spin(task, ends_ns)
            now = task.sched.calendar.now
        assert self.owner is not task, f"{task} locks twice"
        waiter = Waiter(task, self._patience(task), True)
        self._waiters.append(waiter)
        self._look_when_free(task)
        while not waiter.granted:
            task.state = TASK_UNINTERRUPTIBLE
            task.wchan = wchan
            yield

    def unlock_shared(self, task: Task) -> None:
        """Be no reader any more, as from when the work done under it is paid for (up_read)."""
        assert self.readers, f"{task} unlocks what it does not hold"
        self.readers -= 1
        self._unlocker = task
        done_ns = owed_until_ns(task)
        if done_ns > self._shared_ns:
            self._shared_ns = done_ns
        if self._waiters and not self.readers:
            self._look_when_free(task)

    # -- Handing it on

    def _look_when_free(self, task: Task) -> None:
        """Have _look() called when those who have unlocked the lock will be done with it."""
        head = self._waiters[0]
        if self.owner is not None or (self.readers and not head.reads):
            return  # Who has it looks itself.
        when_ns = self._exclusive_ns if head.reads else self._all_done_ns()
        calendar = task.sched.calendar
        if when_ns <= calendar.now:
            self._wake(task)
        elif self._look_ns < 0 or when_ns < self._look_ns:
            self._look_ns = when_ns
            calendar.post_at(when_ns, self._look, task)

    def _look(self, task: Any) -> None:
        """Hand the lock on if it is free, or look again."""
        self._look_ns = -1
        if self._waiters:
            self._look_when_free(task)

    def _wake(self, task: Task) -> None:
        """Wake a writer that is first, or hand the lock to readers that are (rwsem_mark_wake)."""
        head = self._waiters[0]
        unlocker = task if self._unlocker is None else self._unlocker
        sched = task.sched
        if not head.reads:
            sched.wake_up_for(unlocker, head.task)
            return
        is_patient = sched.calendar.now <= head.patient_until_ns
        if is_patient and any(sched.on_cpu(spinner) for spinner in self._spinners):
            return  # It takes the lock now, and looks when it unlocks.
        self._grant(unlocker)

    def _grant(self, unlocker: Task) -> None:
        """Hand the lock to the readers that sleep, or to those of them in front of a writer."""
        granted: list[Waiter] = []
        left: deque[Waiter] = deque()
        for waiter in self._waiters:
            if waiter.reads and (self._rules.wakes_all_readers or not left):
                granted.append(waiter)
            else:
                left.append(waiter)
        self._waiters = left
        self._last = None
        for waiter in granted:
            self.readers += 1
            waiter.granted = True
            unlocker.sched.wake_up_for(unlocker, waiter.task)


def owed_until_ns(task: Task) -> int:
    """Return when the task's debt of CPU time will be worked off, if nothing keeps it."""
    return task.sched.calendar.now + task.user_debt_ns + task.system_debt_ns


class Holdings:
    """When one lock is held, as far as that is still to come."""

    __slots__ = ("_intervals", "_last_cpu")

    def __init__(self) -> None:
        self._intervals: list[tuple[int, int, int]] = []  # start, end, CPU; by start
        self._last_cpu: int = -1

    def add(self, task: Task, begun_ns: int, transfer_ns: int) -> None:
        """Take note that `task` held the lock from `begun_ns`, its owed_until_ns(), until now's.

        What it had to spin, and `transfer_ns` if another CPU had the lock last, is charged.
        """
        now_ns = task.sched.calendar.now
        ends_ns = owed_until_ns(task)
        length_ns = ends_ns - begun_ns
        self._forget(now_ns)
        if self._last_cpu not in (-1, task.cpu):
            length_ns += transfer_ns
        starts_ns = self._first_gap(begun_ns, length_ns, task.cpu)
        task.charge_system(starts_ns + length_ns - ends_ns)
        self._intervals.append((starts_ns, starts_ns + length_ns, task.cpu))
        self._intervals.sort()
        self._last_cpu = task.cpu

    def _forget(self, now_ns: int) -> None:
        """Drop what is over."""
        if self._intervals and self._intervals[0][1] <= now_ns:
            self._intervals = [held for held in self._intervals if held[1] > now_ns]

    def _first_gap(self, begun_ns: int, length_ns: int, cpu: int) -> int:
        """Return the first time from `begun_ns` on at which no other CPU holds it for so long."""
        for start_ns, end_ns, holder in self._intervals:
            if holder != cpu and start_ns < begun_ns + length_ns and end_ns > begun_ns:
                begun_ns = end_ns
        return begun_ns
