"""The menu governor: which idle state a CPU enters.

Models: a guess how long the CPU will be idle: the time to its next timer, times what such guesses
were worth lately (a factor for each magnitude, apart for CPUs on which somebody waits for I/O), or
less if the last eight idle times were alike. Then the deepest state that pays within the guess and
whose exit is short against it: shorter by 1 + 10 for each task that waits for I/O there.
Linux counterpart: drivers/cpuidle/governors/menu.c 2.6.32 to 4.4: menu_select, menu_update,
 detect_repeating_patterns (get_typical_interval since 3.12), performance_multiplier.
Invariants: without states below POLL the choice is POLL; no state above the limit is chosen.
Left out: the load average's part in the multiplier (an idle CPU's load is near 0), the state "C1
 rather than POLL" for guesses below 5 us; the tick that stays on for short sleeps (4.17 on); teo.

By hand: one task waits for a disk on this CPU, 5 ms a read: an exit of up to 5000 / 11 = 454 us is
allowed, so C6 (82 to 200 us). With an SSD, 0.3 ms: 27 us, so C1E.
"""

from typing import Final

from sim.sched.cpuidle import US, CState
from sim.sched.version import KernelVersion, in_force

BUCKETS: Final = 12
INTERVALS: Final = 8
RESOLUTION: Final = 1024
DECAY: Final = 8
INTERESTING_NS: Final = 50_000 * US  # MAX_INTERESTING: longer ones count as right
STEADY_US: Final = 20  # a standard deviation that is small whatever the mean
IOWAIT_MULTIPLIER: Final = 10
# 1f85f87d4f81 "add a repeating pattern detector" (2.6.35).
DETECTS_PATTERNS: Final = ((2, 6, 0), False), ((2, 6, 35), True)
# 38f83090f515 "Remove iowait influence" (6.12).
COUNTS_IOWAIT: Final = ((2, 6, 0), True), ((6, 12), False)


def which_bucket(ns: int, nr_iowait: int) -> int:
    """Return the bucket of a time: below 10 us, 100 us, ... 100 ms, above; with waiters 6 on."""
    bucket = BUCKETS // 2 if nr_iowait else 0
    limit_ns = 10 * US
    while ns >= limit_ns and limit_ns <= 100_000 * US:
        bucket += 1
        limit_ns *= 10
    return bucket


def typical_interval_us(intervals_us: list[int]) -> int | None:
    """Return the mean of the last intervals if they are alike, up to two long ones apart."""
    kept = sorted(intervals_us)
    while len(kept) * 4 >= INTERVALS * 3:
        mean = sum(kept) // len(kept)
        variance = sum((one - mean) ** 2 for one in kept) / len(kept)
        if variance <= STEADY_US**2 or mean * mean > 36 * variance:
            return mean
        kept.pop()
    return None


class Menu:
    """One CPU's guesses (struct menu_device)."""

    __slots__ = (
        "_bucket", "_counts_iowait", "_detects", "_expected_ns", "_factors", "_intervals_us",
        "_limit_ns", "states",
    )  # fmt: skip

    def __init__(self, states: tuple[CState, ...], limit_ns: int, kernel: KernelVersion) -> None:
        self.states = states
        self._limit_ns = limit_ns
        self._detects: bool = in_force(DETECTS_PATTERNS, kernel)
        self._counts_iowait: bool = in_force(COUNTS_IOWAIT, kernel)
        self._factors: list[int] = [RESOLUTION * DECAY] * BUCKETS
        self._intervals_us: list[int] = []
        self._expected_ns: int = 0
        self._bucket: int = 0

    def select(self, next_timer_ns: int, nr_iowait: int) -> int:
        """Return the number of the state to enter; the next timer is that far away."""
        self._expected_ns = next_timer_ns
        self._bucket = which_bucket(next_timer_ns, nr_iowait)
        predicted_ns = self._predict_ns()
        waiters = nr_iowait if self._counts_iowait else 0
        limit_ns = min(self._limit_ns, predicted_ns // (1 + IOWAIT_MULTIPLIER * waiters))
        chosen = 0
        for number, state in enumerate(self.states):
            if state.target_residency_ns <= predicted_ns and state.exit_latency_ns <= limit_ns:
                chosen = number
        return chosen

    def _predict_ns(self) -> int:
        """Return how long the CPU will be idle, as far as it can know."""
        factor = self._factors[self._bucket]
        predicted_ns = self._expected_ns * factor // (RESOLUTION * DECAY)
        if self._detects and len(self._intervals_us) == INTERVALS:
            typical_us = typical_interval_us(self._intervals_us)
            if typical_us is not None:
                predicted_ns = min(predicted_ns, typical_us * US)
        return predicted_ns

    def reflect(self, idle_ns: int) -> None:
        """Learn from how long it was (menu_update)."""
        factor = self._factors[self._bucket]
        factor -= factor // DECAY
        if self._expected_ns > 0 and idle_ns < INTERESTING_NS:
            factor += RESOLUTION * min(idle_ns, self._expected_ns) // self._expected_ns
        else:
            factor += RESOLUTION
        self._factors[self._bucket] = max(factor, 1)
        self._intervals_us.append(idle_ns // US)
        if len(self._intervals_us) > INTERVALS:
            self._intervals_us.pop(0)
