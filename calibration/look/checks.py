"""Does the recording agree with itself: laws that hold whatever the server did.

Models: the doubts of somebody who has seen counters lie.
Linux counterpart: block/genhd.c and block/blk-core.c (io_ticks), Documentation/admin-guide/iostats.
Invariants: a check says what it compared, in numbers; its tolerance is made of what printing rounds
and of requests in flight at both ends of the interval, nothing else; each finding names its check.
Left out: checks between tools (the readers' tests compare those).
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Final, Literal

from calibration.look.devices import RATE_MIN_PER_S, STACKED
from calibration.look.intervals import (
    BUSY,
    COUNTED,
    ROUNDING,
    ROUNDING_PCT,
    Interval,
    Row,
    await_of,
    bytes_of,
    is_overcounted,
    rate_of,
    with_busy_time,
)
from calibration.look.laws import requests_in_system
from sim.block.features import IN_FLIGHT, features

HALF: Final = 0.005  # what two printed decimals round away
TICK_S: Final = 0.01  # a jiffy of HZ = 100, the coarsest
MIB_HALF: Final = HALF * 2**20
DIRECTIONS: Final = {"r": "read", "w": "write", "d": "discard"}
SPREADS: Final = 6.0  # standard deviations: no chance
TOGETHER: Final = 4.0  # twice what M/M/1 gives at half the utilisation, where the check ends
HAS_SHARES: Final = {"user_pct", "idle_pct"}
SAMPLED_SINCE: Final = (5, 0)  # io_ticks: 5b18b5a73760, block: delete part_round_stats


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a check found: "wrong" if the recording contradicts itself, "note" if it may mislead."""

    check: str
    severity: Literal["wrong", "note"]
    where: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What the checks look at."""

    intervals: Sequence[Interval]
    kernel: tuple[int, ...]


def laws_of(checked: Checked) -> list[str]:
    """Return the laws that could be held against this recording: their columns are there."""
    rows = [row for _at, _one, row in _rows(checked)]
    return [
        name
        for name in CHECKS
        if (name in NEEDS and any(NEEDS[name](row) for row in rows))
        or (name == "shares" and any(set(one.cpu) >= HAS_SHARES for one in checked.intervals))
        or (name == "regular" and sum(bool(one.length_s) for one in checked.intervals) > 1)
    ]


def run_checks(checked: Checked) -> list[Finding]:
    """Return what all the checks find, in their order."""
    return [finding for check in CHECKS.values() for finding in check(checked)]


def release(kernel: str | None) -> tuple[int, ...]:
    """Return the numbers of a release; () if there is none."""
    found = re.match(r"\d+(\.\d+)*", kernel or "")
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def _shares(checked: Checked) -> Iterator[Finding]:
    """The states of the CPU add up to 100 %."""
    for number, one in enumerate(checked.intervals):
        states = [name for name in (*BUSY, "iowait_pct", "idle_pct") if name in one.cpu]
        total = sum(one.cpu[name] for name in states if not name.startswith("guest"))
        if set(states) >= HAS_SHARES and abs(total - 100) > 2 * HALF * len(states):
            # vmstat prints whole numbers.
            whole = all(float(one.cpu[name]).is_integer() for name in states)
            if not whole or abs(total - 100) > len(states) / 2:
                yield _wrong("shares", _at(number, "CPU"), f"the states add up to {total:.2f} %")


def _full(checked: Checked) -> Iterator[Finding]:
    """A device is busy 100 % of the time at most."""
    for at, one, row in _rows(checked):
        most = 100 * (1 + 2 * TICK_S / (one.length_s or 1)) + HALF
        if row.get("util_pct", 0.0) > most:
            yield _wrong("util", at, f"util is {row['util_pct']:.2f} %")


def _little(checked: Checked) -> Iterator[Finding]:
    """aqu-sz = X await."""
    for at, one, row in _rows(checked):
        response = await_of(row)
        if "aqu_sz" in row and response is not None:
            rate, queue = rate_of(row), row["aqu_sz"]
            law = requests_in_system(rate, response)
            rounding = HALF + HALF * (rate + response) / 1000
            slack = rounding + _in_flight_slack(queue, rate, response, one.length_s or 1)
            if not -slack <= queue - law <= slack + _flushing(row):
                yield _wrong(
                    "little",
                    at,
                    f"aqu-sz is {queue:.2f}, but X await = {rate:.2f} x"
                    f" {response:.2f} ms = {law:.2f}",
                )


def _in_flight_slack(queue: float, rate: float, response_ms: float, length_s: float) -> float:
    """Return by how much Little's law may miss in a finite interval.

    Requests in flight at either end have queued here and complete elsewhere; where load changes
    they are older than the mean: 5 % (assumed; recorded: 3 % in a storm that ends). Each response
    time is a difference of jiffies.
    """
    ends = 2 * queue * response_ms / 1000 / length_s
    jiffies = math.sqrt(rate * length_s) * TICK_S / length_s
    return ends + 0.05 * queue + jiffies


def _utilisation(checked: Checked) -> Iterator[Finding]:
    """util = X svctm."""
    for at, _one, row in _rows(checked):
        if "svctm_ms" in row and "util_pct" in row:
            rate, service, util = rate_of(row), row["svctm_ms"], row["util_pct"]
            if abs(util - rate * service / 10) > HALF + HALF * (rate + service) / 10 + 1e-9:
                yield _wrong(
                    "utilisation",
                    at,
                    f"util is {util:.2f} %, but X svctm = {rate:.2f} x"
                    f" {service:.2f} ms = {rate * service / 10:.2f} %",
                )


def _response(checked: Checked) -> Iterator[Finding]:
    """await >= svctm: a request in flight makes the device busy."""
    for at, one, row in _rows(checked):
        rate, response = rate_of(row), await_of(row)
        if rate and response is not None and "util_pct" in row:
            service = row["util_pct"] * 10 / rate
            slack = 2 * HALF + (10 * HALF + 1000 * TICK_S / (one.length_s or 1)) / rate
            if response < service - slack and not _is_sampled(checked):
                yield _wrong(
                    "response",
                    at,
                    f"await {response:.2f} ms is less than the {service:.2f} ms that the"
                    " device is busy for each request",
                )


def _directions(checked: Checked) -> Iterator[Finding]:
    """await is the mean of r_await and w_await, weighted by r/s and w/s."""
    for at, _one, row in _rows(checked):
        parts = [
            (row[f"{x}_per_s"], row[f"{x}_await_ms"])
            for x in "rwd"
            if {f"{x}_per_s", f"{x}_await_ms"} <= set(row)
        ]
        rate = sum(weight for weight, _value in parts)
        if not rate or "await_ms" not in row or abs(rate - rate_of(row)) > HALF:
            continue
        mean = sum(weight * value for weight, value in parts) / rate
        # The counts behind two decimals of a rate are known to HALF of a request per second.
        values = [value for _weight, value in parts]
        spread = 2 * (max(values) - min(values)) * HALF / rate
        if abs(mean - row["await_ms"]) > 2 * HALF + spread + 1e-9:
            yield _wrong(
                "directions",
                at,
                f"await is {row['await_ms']:.2f} ms, but the mean of both"
                f" directions is {mean:.2f} ms",
            )


def _sizes(checked: Checked) -> Iterator[Finding]:
    """Bytes per second = X times the size of a request."""
    for at, _one, row in _rows(checked):
        for what, rate, size, moved in _sized(row):
            law = rate * size
            rounding = 3 * MIB_HALF + HALF * (512 * rate + size)
            if abs(law - moved) > rounding:
                yield _wrong(
                    "sizes",
                    at,
                    f"{moved / 1e6:.2f} MB/s {what}, but requests x size = {law / 1e6:.2f} MB/s",
                )


def _sized(row: Row) -> Iterator[tuple[str, float, float, float]]:
    """Yield what was moved, requests/s, size and bytes/s: of all requests, or by direction."""
    moved = bytes_of(row)
    if "areq_bytes" in row and moved is not None and rate_of(row):
        # areq-sz is of discards too (rd_stats.c, compute_ext_disk_stats: nr_ios, sectors of all).
        asked = moved + row.get("discard_bytes_per_s", 0.0)
        yield "asked for", rate_of(row), row["areq_bytes"], asked
    for letter, word in DIRECTIONS.items():
        columns = (f"{letter}_per_s", f"{letter}areq_bytes", f"{word}_bytes_per_s")
        if all(column in row for column in columns) and row[columns[0]]:
            rate, size, bytes_per_s = (row[column] for column in columns)
            yield word, rate, size, bytes_per_s


def _regular(checked: Checked) -> Iterator[Finding]:
    """The reports follow each other at equal intervals."""
    lengths = [one.length_s for one in checked.intervals if one.length_s]
    usual = median(lengths) if lengths else 0.0
    # Clocks are printed in whole seconds.
    odd = [x for x in lengths if abs(x - usual) > max(0.1 * usual, 1.0)]
    if odd:
        yield _wrong(
            "regular",
            "",
            f"{len(odd)} of {len(lengths)} intervals are not of {usual:g} s:"
            f" {min(odd):g} to {max(odd):g} s",
        )


def _missing(checked: Checked) -> Iterator[Finding]:
    """A row that was cut, refused or not printed says nothing: neither busy nor idle."""
    names = dict.fromkeys(name for one in checked.intervals for name in one.devices)
    for name in names:
        missing = sum(name not in one.devices for one in checked.intervals)
        if missing:
            yield Finding(
                check="rows",
                severity="note",
                where=name,
                text=f"{missing} of {len(checked.intervals)} reports have no row of it: its means"
                " are over the others",
            )


def _io_ticks(checked: Checked) -> Iterator[Finding]:
    """From 5.0 on the kernel counts jiffies and no time: of more than requests were there, tell."""
    whole = counts_whole_jiffies(checked)
    if whole and any(True for _row in _rows(checked)):
        yield Finding(
            check="io_ticks",
            severity="note",
            where="",
            text="from Linux 5.0 to 6.9 util is counted in whole jiffies at a request's begin and"
            " end: with short requests it is too high or too low, svctm from it likewise",
        )
    counted: dict[str, list[Row]] = {}
    for one in with_busy_time(checked.intervals, overcounted(checked)):
        for name, row in one.devices.items():
            if is_overcounted(row):
                counted.setdefault(name, []).append(row)
    in_step = "" if whole else ": its requests come in step with the jiffies that util counts"
    for name, rows in counted.items():
        yield Finding(
            check="io_ticks",
            severity="note",
            where=name,
            text=f"util is {fmean(row[COUNTED] for row in rows):.1f} % in {len(rows)} of"
            f" {len(checked.intervals)} intervals where X await allows"
            f" {fmean(row['util_pct'] for row in rows):.1f} % at most, which is used{in_step}",
        )


def _together(checked: Checked) -> Iterator[Finding]:
    """A device that is mostly idle while requests wait serves several at a time, or bursts."""
    worst: dict[str, tuple[float, float, float]] = {}
    for at, _one, row in _rows(checked):
        rate, util = rate_of(row), row.get("util_pct", 0.0) / 100
        name = at.split(",")[0]
        if name.startswith(STACKED) or rate < RATE_MIN_PER_S or not 0 < util < 0.5:
            continue
        ratio = (await_of(row) or 0.0) / (1000 * util / rate)
        if ratio > TOGETHER:
            worst[name] = max(worst.get(name, (0.0, 0.0, 0.0)), (ratio, util, 1 / (1 - util)))
    for name, (ratio, util, alone) in worst.items():
        yield Finding(
            check="together",
            severity="note",
            where=name,
            text=f"await is {ratio:.1f} times util / X at {100 * util:.0f} % util, where a queue of"
            f" independent requests gives {alone:.1f}: they come in bursts or are served together;"
            " svctm is no service time",
        )


CHECKS: Final[Mapping[str, Callable[[Checked], Iterator[Finding]]]] = {
    "shares": _shares,
    "util": _full,
    "little": _little,
    "utilisation": _utilisation,
    "response": _response,
    "directions": _directions,
    "sizes": _sizes,
    "regular": _regular,
    "rows": _missing,
    "io_ticks": _io_ticks,
    "together": _together,
}
# What a row of a device needs for a law to say something about it.
NEEDS: Final[Mapping[str, Callable[[Row], bool]]] = {
    "util": lambda row: "util_pct" in row,
    "little": lambda row: "aqu_sz" in row and await_of(row) is not None,
    "utilisation": lambda row: {"svctm_ms", "util_pct"} <= set(row),
    "response": lambda row: "util_pct" in row and await_of(row) is not None,
    "directions": lambda row: {"await_ms", "r_await_ms", "r_per_s"} <= set(row),
    "sizes": lambda row: any(_sized(row)),
}


def _is_sampled(checked: Checked) -> bool:
    return checked.kernel >= SAMPLED_SINCE


def counts_whole_jiffies(checked: Checked) -> bool:
    """Return whether util of this kernel is no busy time, not even on average."""
    return _is_sampled(checked) and features(checked.kernel).io_ticks != IN_FLIGHT


def overcounted(checked: Checked) -> frozenset[str]:
    """Return the devices whose util may be more than they were busy for.

    From 5.0 to 6.9 all are. Later kernels count the jiffies that end while a request is there,
    which is right on average, unless requests come in step with the jiffies (a timer starts them).
    By hand: with X await = 0.11 for 120 s, 1300 jiffies of 10 ms end so, give or take 36: util is
    11 % and 0.3 more or less. One of 22 % is no chance.
    """
    if not _is_sampled(checked):
        return frozenset()
    names = frozenset(name for one in checked.intervals for name in one.devices)
    if counts_whole_jiffies(checked):
        return names
    return frozenset(name for name in names if _is_in_step(name, checked.intervals))


def _is_in_step(name: str, intervals: Sequence[Interval]) -> bool:
    seconds = counted_s = most_s = 0.0
    for one in intervals:
        row = one.devices.get(name, {})
        response = await_of(row)
        if "util_pct" in row and response is not None:
            length_s = one.length_s or 1
            seconds += length_s
            counted_s += length_s * row["util_pct"] / 100
            most_s += length_s * (requests_in_system(rate_of(row), response) + _flushing(row))
    chance_s = SPREADS * math.sqrt(most_s * TICK_S)
    return counted_s > ROUNDING * most_s + ROUNDING_PCT / 100 * seconds + chance_s


def _flushing(row: Row) -> float:
    """Return how many flushes are with the device: util and the queue have them, no rate does."""
    return requests_in_system(row.get("f_per_s", 0.0), row.get("f_await_ms", 0.0))


def _rows(checked: Checked) -> Iterator[tuple[str, Interval, Row]]:
    for number, one in enumerate(checked.intervals):
        for name, row in one.devices.items():
            yield _at(number, name), one, row


def _at(number: int, name: str) -> str:
    return f"{name}, interval {number + 1}"


def _wrong(check: str, where: str, text: str) -> Finding:
    return Finding(check=check, severity="wrong", where=where, text=text)
