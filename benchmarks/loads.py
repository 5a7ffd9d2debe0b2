"""Loads for a trial on a real disk: programs that ask by themselves, at random moments.

`python -m benchmarks.loads KIND DIR --programs 4 --rate 15 --seconds 60` starts so many programs.
Each has work to do at moments that it draws (Poisson), so that the load is twice as much with twice
as many programs. KIND says what a program does at such a moment:

 mail   a message of 6 KB: written under another name, fsync, renamed, fsync of the folder; the
        twentieth before it is read and removed
 log    8 KiB of its own file of 16 MiB written over, one after another, and fdatasync
 reads  8 KiB read at a random place of a file of 4 GiB, past the page cache (O_DIRECT)
"""

import argparse
import contextlib
import mmap
import os
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

BODY: Final = b"x" * 6000
QUEUED: Final = 20  # messages of a program, before the oldest is removed
BLOCK: Final = 8192
LOG_BYTES: Final = 16 * 2**20
READ_BYTES: Final = 4 * 2**30
CHUNK: Final = 2**20

Work = Callable[[], None]


def mail(folder: Path, program: int, _chance: random.Random) -> Work:
    """Return what takes a message into a queue, and removes an older one."""
    handle = os.open(folder, os.O_RDONLY)
    queue: list[Path] = []
    number = 0

    def work() -> None:
        nonlocal number
        number += 1
        path, unfinished = (folder / f"{letter}{program}.{number}" for letter in "qt")
        with unfinished.open("wb") as file:
            file.write(BODY)
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(path)
        os.fsync(handle)
        queue.append(path)
        if len(queue) > QUEUED:
            oldest = queue.pop(0)
            oldest.read_bytes()
            oldest.unlink()

    return work


def log(folder: Path, program: int, _chance: random.Random) -> Work:
    """Return what writes over the next block of a file that is there, and syncs its data."""
    path = folder / f"log{program}"
    _lay(path, LOG_BYTES)
    handle = os.open(path, os.O_WRONLY)
    at = 0

    def work() -> None:
        nonlocal at
        os.pwrite(handle, BODY[:1] * BLOCK, at)
        os.fdatasync(handle)
        at = (at + BLOCK) % LOG_BYTES

    return work


def reads(folder: Path, _program: int, chance: random.Random) -> Work:
    """Return what reads a block at a random place from the disk."""
    path = folder / "big"
    handle = os.open(path, os.O_RDONLY | os.O_DIRECT)
    page = mmap.mmap(-1, BLOCK)  # whose address O_DIRECT takes

    def work() -> None:
        os.preadv(handle, [page], BLOCK * chance.randrange(READ_BYTES // BLOCK))

    return work


KINDS: Final[Mapping[str, Callable[[Path, int, random.Random], Work]]] = {
    "mail": mail,
    "log": log,
    "reads": reads,
}


def _lay(path: Path, size: int) -> None:
    """Write a file of that size to the disk, if it is not there."""
    if path.exists() and path.stat().st_size == size:
        return
    with path.open("wb") as file:
        for _ in range(size // CHUNK):
            file.write(os.urandom(CHUNK))
        file.flush()
        os.fsync(file.fileno())


def _take_turns(work: Work, chance: random.Random, rate: float, seconds: float) -> None:
    """Work at random moments, so many a second; what is late is done at once."""
    due = time.monotonic()
    end = due + seconds
    while (due := due + chance.expovariate(rate)) < end:
        time.sleep(max(0.0, due - time.monotonic()))
        work()


def main() -> None:
    """Start the programs, and wait for them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loads", description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("folder", metavar="DIR", type=Path, help="where its files are")
    parser.add_argument("--programs", type=int, default=4)
    parser.add_argument("--rate", type=float, default=15.0, help="a second, of each program")
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.kind == "reads":
        _lay(options.folder / "big", READ_BYTES)
    for program in range(options.programs):
        if os.fork() == 0:
            chance = random.Random(program)
            work = KINDS[options.kind](options.folder, program, chance)
            _take_turns(work, chance, options.rate, options.seconds)
            os._exit(0)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


if __name__ == "__main__":
    main()
