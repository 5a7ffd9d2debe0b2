"""Measure what a read of a disk takes longer after a pause: python -m benchmarks.pauses FILE.

FILE lies on the disk, has 256 KiB or more, and is not being written. It is read 4 KiB at a time
past the page cache (O_DIRECT): after a sleep, and at once again. What the first takes longer is
what the way to the disk loses while nothing is asked: what serves a virtual disk sleeps, and others
fill its caches. From the table follow `refill` (what is more after 50 ms) and `cache_life` (after
so long it is 63 % of that) of the device `multiserver`. It takes a second and no root. The host
must do nothing else: then nobody else asks the disk.
"""

import mmap
import os
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Final

PAUSES_MS: Final = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
EACH_MS: Final = 100.0
LEAST: Final = 10  # pauses of each length
MOST: Final = 100
PAGE: Final = 4096
PAGES: Final = 64


def more_us(read_us: Callable[[], float], pause_ms: float) -> tuple[list[float], list[float]]:
    """Return what each read took at once again, and what the one before took longer; ascending."""
    again, more = [], []
    for _ in range(min(MOST, max(LEAST, int(EACH_MS / pause_ms)))):
        time.sleep(pause_ms / 1000)
        first, second = read_us(), read_us()
        again.append(second)
        more.append(first - second)
    return sorted(again), sorted(more)


def reader_of(path: str) -> Callable[[], float]:
    """Return a function that reads the next page and tells how long it took, us; OSError."""
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    if os.fstat(file).st_size < PAGES * PAGE:
        raise OSError(f"{path} has fewer than {PAGES * PAGE // 1024} KiB")
    page = mmap.mmap(-1, PAGE)  # aligned, as O_DIRECT wants it
    number = 0

    def read_us() -> float:
        nonlocal number
        number += 1
        begin_ns = time.perf_counter_ns()
        os.preadv(file, [page], number % PAGES * PAGE)
        return (time.perf_counter_ns() - begin_ns) / 1000

    return read_us


def main() -> None:
    """Print a line for each pause."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m benchmarks.pauses FILE")
    try:
        read_us = reader_of(sys.argv[1])
        for _ in range(PAGES):  # so that the disk has each page at hand
            read_us()
        print(f"{'pause ms':>8} {'again us':>8} {'more us':>8}  80 % between")
        for pause_ms in PAUSES_MS:
            again, more = more_us(read_us, pause_ms)
            low, high = more[len(more) // 10], more[len(more) * 9 // 10]
            told = f"{pause_ms:>8g} {median(again):>8.0f} {median(more):>8.0f}"
            print(f"{told}  {low:.0f} .. {high:.0f}")
    except OSError as error:
        sys.exit(f"pauses: {error}")


if __name__ == "__main__":
    main()
