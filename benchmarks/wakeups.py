"""Measure how late sleeps end on this host, by their length: python -m benchmarks.wakeups.

A CPU that was idle for long sleeps deeper, and wakes later; on a virtual machine the CPU of the
host below it does. What is left of a sleep that was too long is how late the CPU came back, with
some microseconds of the timer and of Python. It takes five seconds and no root. The host must do
nothing else: a CPU that is kept awake does not sleep deeply.
"""

import ctypes
import sys
import time
from statistics import median
from typing import Final

LENGTHS_MS: Final = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
EACH_S: Final = 0.5
LEAST: Final = 10  # sleeps of each length
PR_SET_TIMERSLACK: Final = 29  # include/uapi/linux/prctl.h


def late_us(length_ms: float) -> list[float]:
    """Return how late each sleep ended, us, ascending."""
    length_ns = int(length_ms * 1e6)
    found = []
    for _ in range(max(LEAST, int(EACH_S * 1000 / length_ms))):
        begin_ns = time.perf_counter_ns()
        time.sleep(length_ns / 1e9)
        found.append((time.perf_counter_ns() - begin_ns - length_ns) / 1000)
    return sorted(found)


def main() -> None:
    """Print a line for each length."""
    if ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0):
        print("wakeups: 50 us of timer slack are in each figure", file=sys.stderr)
    print(f"{'sleep ms':>8} {'late us':>8}  {'80 % between'}")
    for length_ms in LENGTHS_MS:
        late = late_us(length_ms)
        low, high = late[len(late) // 10], late[len(late) * 9 // 10]
        print(f"{length_ms:>8g} {median(late):>8.0f}  {low:.0f} .. {high:.0f}")


if __name__ == "__main__":
    main()
