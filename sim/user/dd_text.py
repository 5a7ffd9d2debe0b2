"""What dd prints when it ends: records in and out, bytes, seconds, rate.

Models: print_stats() in the wordings of its releases.
Counterpart: coreutils src/dd.c print_stats, gnulib lib/human.c (human_autoscale,
human_round_to_nearest): 5.2, 5.97, 6.10, 8.24.
Invariants: the rate is bytes through elapsed time, the seconds are printed with %g; an exact amount
 below ten of its unit has a decimal, a rate below a hundred.
Left out: translations; truncated records; errors of reading, which no device here has.
"""

from collections.abc import Callable, Mapping
from typing import Final

from sim.units import NS_PER_S

SI_UNITS: Final = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
IEC_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def final_lines(
    full_in: int, partial_in: int, full_out: int, partial_out: int, size: int, elapsed_ns: int,
    wording: str,
) -> str:  # fmt: skip
    """Return dd's three lines for `size` bytes copied in `elapsed_ns`."""
    last = WORDINGS[wording](size, max(elapsed_ns, 1) / NS_PER_S)
    return (
        f"{full_in}+{partial_in} records in\n{full_out}+{partial_out} records out\n{last}\n"
    )  # fmt: skip


def amount(size: int, base: int, units: tuple[str, ...]) -> str:
    """Return bytes with a unit; below ten of it with one decimal ("2.1 GB", "11 GB")."""
    if size < base:
        return f"{size} {units[0]}"
    power = 1
    while power + 1 < len(units) and size >= base ** (power + 1):
        power += 1
    value = size / base**power
    if round(value, 1) < 10:
        return f"{value:.1f} {units[power]}"
    if round(value) < base:
        return f"{value:.0f} {units[power]}"
    return f"1.0 {units[power + 1]}"


def rate(bytes_per_s: float) -> str:
    """Return a rate in decimal units; below a hundred of one with one decimal ("62.7 MB")."""
    power = 0
    while power + 1 < len(SI_UNITS) and bytes_per_s >= 999.5 * 1000.0**power:
        power += 1
    value = bytes_per_s / 1000.0**power
    digits = 1 if round(value, 1) < 100 else 0
    return f"{value:.{digits}f} {SI_UNITS[power]}"


def _transferred(size: int, seconds: float) -> str:
    return f"{size} bytes transferred in {seconds:.6f} seconds ({size / seconds:.0f} bytes/sec)"


def _seconds(size: int, seconds: float) -> str:
    shown = amount(size, 1000, SI_UNITS)
    return f"{size} bytes ({shown}) copied, {seconds:g} seconds, {rate(size / seconds)}/s"


def _si(size: int, seconds: float) -> str:
    shown = amount(size, 1000, SI_UNITS)
    return f"{size} bytes ({shown}) copied, {seconds:g} s, {rate(size / seconds)}/s"


def _both(size: int, seconds: float) -> str:
    """From 8.24: units only where they say something."""
    parts = [amount(size, 1000, SI_UNITS)] if size >= 1000 else []
    parts += [amount(size, 1024, IEC_UNITS)] if size >= 1024 else []
    shown = f" ({', '.join(parts)})" if parts else ""
    return f"{size} bytes{shown} copied, {seconds:g} s, {rate(size / seconds)}/s"


def trouble(path: str, was_open: bool, reason: str, wording: str) -> str:
    """Return what dd says when it cannot open a file, or go on with one that is open."""
    if wording == "8.24":
        doing, quoted = ("error writing" if was_open else "failed to open"), f"'{path}'"
    else:
        doing, quoted = ("writing" if was_open else "opening"), f"`{path}'"
    return f"dd: {doing} {quoted}: {reason}\n"


# First release of coreutils with a wording -> it.
WORDINGS: Final[Mapping[str, Callable[[int, float], str]]] = {
    "5.0": _transferred,
    "5.91": _seconds,
    "6.10": _si,
    "8.24": _both,
}
