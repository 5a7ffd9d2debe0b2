"""free: memory and swap, in use and free.

Models: `free [-bkmg] [-t] [-s DELAY [-c COUNT]]` of two generations, `-o` of the older one, `-h -w`
of the newer.
Linux counterpart: procps 3.2.x free.c; procps-ng 4.0.2 src/free.c, library/meminfo.c. In kB, with
the names of /proc/meminfo:

    to 3.3.9    used = MemTotal - MemFree; the second line counts Buffers + Cached as free
    4.0         used = MemTotal - MemAvailable; buff/cache = Buffers + Cached + SReclaimable

Invariants: amounts are cut down to whole units, as the tool's shifts do.
Left out: -l, units above GiB and those of 1000, 3.3.10 to 3.3.17, whose "used" was MemTotal less
free, buffers and caches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sim.tools.parse import parse_meminfo
from sim.tools.snapshot import Snapshot
from sim.tools.usage import ONCE, Sampling, ToolUsageError, parse_letters, positive

SHIFTS = {"b": 0, "k": 10, "m": 20, "g": 30}  # bytes to the unit
HUMAN = "h"
HUMAN_WIDTH = 5
_MEANING = {
    "b": "-b bytes",
    "k": "-k KiB",
    "m": "-m MiB",
    "g": "-g GiB",
    "h": "-h human units",
    "o": "-o without the line of buffers",
    "t": "-t total",
    "w": "-w buffers and cache apart",
    "s": "-s DELAY",
    "c": "-c COUNT",
}


@dataclass(frozen=True, slots=True)
class FreeOptions:
    """A command line of free, understood; `unit` is a letter of SHIFTS, or HUMAN."""

    letters: frozenset[str]
    unit: str
    sampling: Sampling


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeLayout:
    """All in which one generation of free differs from another."""

    name: str
    flags: str
    render: Callable[[Mapping[str, int], FreeOptions], str]


def parse_options(arguments: Sequence[str], layout: FreeLayout) -> FreeOptions:
    """Return what the arguments (without the tool's name) ask; raise ToolUsageError."""
    allowed = ", ".join(_MEANING[letter] for letter in (*layout.flags, "s", "c"))
    found = parse_letters("free", arguments, flags=layout.flags, valued="sc", allowed=allowed)
    units = [letter for letter in found if letter in (*SHIFTS, HUMAN)]
    if len(units) > 1:
        raise ToolUsageError("free", f"-{units[0]} and -{units[1]} exclude each other", allowed)
    numbers = {
        letter: positive("free", letter, found[letter], allowed)
        for letter in "sc"
        if letter in found
    }
    if "c" in numbers and "s" not in numbers:
        raise ToolUsageError("free", "-c needs -s", allowed)
    sampling = Sampling(numbers["s"], numbers.get("c")) if "s" in numbers else ONCE
    return FreeOptions(frozenset(found), units[0] if units else "k", sampling)


def run_free(
    options: FreeOptions, snapshots: Iterable[Snapshot], *, layout: FreeLayout
) -> Iterator[str]:
    """Yield one text per reading, with an empty line after each that is repeated."""
    left = options.sampling.count
    for number, snapshot in enumerate(snapshots, start=1):
        text = layout.render(parse_meminfo(snapshot.text("meminfo")), options)
        yield text + layout_pause(layout, options, last=number == left)
        if number == left:
            return


def layout_pause(layout: FreeLayout, options: FreeOptions, *, last: bool) -> str:
    """Return what stands between two readings; 3.2 writes it after the last one too."""
    if options.sampling.interval_s is None or (last and layout is not PROCPS_3_2):
        return ""
    return "\n"


def _render_3_2(memory: Mapping[str, int], options: FreeOptions) -> str:
    def row(label: str, *kb: int) -> str:
        return f"{label:<7}" + "".join(f" {_amount(n, options.unit):>10}" for n in kb) + "\n"

    total, free = memory["MemTotal"], memory["MemFree"]
    buffers, cached = memory.get("Buffers", 0), memory.get("Cached", 0)
    swap = _swap(memory)
    text = "             total       used       free     shared    buffers     cached\n"
    text += row("Mem:", total, total - free, free, 0, buffers, cached)
    if "o" not in options.letters:
        evictable = buffers + cached
        used = _amount(total - free - evictable, options.unit)
        text += f"-/+ buffers/cache: {used:>10} {_amount(free + evictable, options.unit):>10}\n"
    text += row("Swap:", *swap)
    if "t" in options.letters:
        text += row("Total:", total + swap[0], total - free + swap[1], free + swap[2])
    return text


def _render_4_0(memory: Mapping[str, int], options: FreeOptions) -> str:
    def row(label: str, kb: Sequence[int]) -> str:
        cells = [f"{_amount(n, options.unit):>11}" for n in kb]
        return f"{label:<9}{' '.join(cells)}\n"

    total, free = memory["MemTotal"], memory["MemFree"]
    used = memory_used(memory)
    caches = [memory.get("Buffers", 0), memory_cached(memory)]
    swap = _swap(memory)
    apart = "w" in options.letters
    cache_titles = ("buffers", "cache") if apart else ("buff/cache",)
    titles = ("total", "used", "free", "shared", *cache_titles, "available")
    text = " " * 9 + " ".join(f"{title:>11}" for title in titles) + "\n"
    shown = caches if apart else [sum(caches)]
    text += row("Mem:", [total, used, free, memory.get("Shmem", 0), *shown, _available(memory)])
    text += row("Swap:", swap)
    if "t" in options.letters:
        text += row("Total:", [total + swap[0], used + swap[1], free + swap[2]])
    return text


def memory_used(memory: Mapping[str, int]) -> int:
    """Return what is in use and cannot be had without swapping, kB (procps 4.0)."""
    return memory["MemTotal"] - _available(memory)


def memory_cached(memory: Mapping[str, int]) -> int:
    """Return page cache and slab that can be had back, kB (procps 3.3.10 on)."""
    return memory.get("Cached", 0) + memory.get("SReclaimable", 0)


def _available(memory: Mapping[str, int]) -> int:
    """Return MemAvailable; procps takes MemFree of a kernel before 3.14."""
    return memory.get("MemAvailable", memory["MemFree"])


def _swap(memory: Mapping[str, int]) -> tuple[int, int, int]:
    """Return swap space in all, used and free, kB."""
    total, free = memory.get("SwapTotal", 0), memory.get("SwapFree", 0)
    return total, total - free, free


def _amount(kb: int, unit: str) -> str:
    if unit == HUMAN:
        return _human(kb << 10)
    return str((kb << 10) >> SHIFTS[unit])


def _human(size: int) -> str:
    """Return bytes in the first unit that needs no more than five characters (scale_size)."""
    if len(f"{size}B") < HUMAN_WIDTH:
        return f"{size}B"
    for power, prefix in enumerate("KMGTP", start=1):
        scaled = size / 1024**power
        for text in (f"{scaled:.1f}{prefix}i", f"{int(scaled)}{prefix}i"):
            if len(text) <= HUMAN_WIDTH:
                return text
    raise ValueError(f"{size} bytes: more than any machine has")


PROCPS_3_2 = FreeLayout(name="procps-3.2", flags="bkmgot", render=_render_3_2)
PROCPS_4_0 = FreeLayout(name="procps-4.0", flags="bkmghtw", render=_render_4_0)
