"""A recording in ten lines: what the server does, and what is short of what.

Models: what an administrator says on the telephone before anybody asks.
Linux counterpart: none.
Invariants: every number is one of the look's, which prints them all; a line is left out where
nothing was recorded for it; there are never more than LINES_MAX.
Left out: laws and checks beyond their number: `iotwin look` has them.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from calibration.look.devices import DeviceLook, lowest
from calibration.look.halves import changes
from calibration.look.intervals import await_of
from calibration.look.processes import ProcessLook
from calibration.look.steal import stretch_of
from calibration.look.summary import Look
from calibration.look.tasks import Active
from sim.report.tables import figure
from sim.units import format_quantity

LINES_MAX: Final = 10
DEVICES_MAX: Final = 4
SLEEPERS_MAX: Final = 3  # commands
ASLEEP_MIN: Final = 0.01  # tasks
CHANGES_MAX: Final = 3
DIRECTIONS: Final = {"r_await_ms": "read", "w_await_ms": "write"}
DIFFERS: Final = 0.1  # tasks, by which an average is told from what it is of
KIB: Final = 1024
GIB: Final = 2**30


def brief(seen: Look) -> list[str]:
    """Return the lines."""
    return [
        *_machine(seen),
        *_cpus(seen),
        *_devices(seen.devices),
        *_memory(seen),
        f"Short of: {seen.verdict.sentence}",
        *_doubts(seen),
        *_stolen(seen),
        *_changed(seen),
    ][:LINES_MAX]


def _changed(seen: Look) -> Iterator[str]:
    """Say what differs between the halves of the recording, of which every answer is the mean."""
    names = [one.name for one in lowest(seen.devices)]
    told = [
        f"{one.device} has {figure(one.first)} {one.words} in the first and {figure(one.second)} in"
        " the second"
        for one in changes(seen.used, names)
    ][:CHANGES_MAX]
    if told:
        yield (
            f"Its halves differ: {', '.join(told)}. Answers are from the mean of both: record what"
            " comes round more than once, or only what you mean."
        )


def _stolen(seen: Look) -> Iterator[str]:
    """Say what the host gives to others, and which requests take longer for it."""
    found = stretch_of(seen.used)
    if found is None:
        return
    told = [
        f"a {DIRECTIONS[column]} of {one.name} takes {figure(one.row[column])} ms, and"
        f" {figure(found.alone(one.name, column, one.row[column]))} ms while nothing is stolen"
        for one in lowest(seen.devices)
        for column in DIRECTIONS
        if (one.name, column) in found.powers
    ]
    takes = f"; {', '.join(told)}" if told else ""
    yield (
        "The host gives its CPUs to others as well (other guests, its own threads, or a limit):"
        f" work here takes {found.mean:.2g} times as long as alone{takes}."
    )


def _machine(seen: Look) -> Iterator[str]:
    facts = seen.source.facts
    parts = []
    if "kernel" in facts:
        parts.append(f"Linux {facts['kernel']}")
    if seen.cpu.cpus:
        parts.append(f"{seen.cpu.cpus} CPU{'s' if seen.cpu.cpus > 1 else ''}")
    size = facts.get("memory_bytes")
    if size is not None:
        parts.append(f"{float(size) / GIB:.3g} GiB of memory")
    length_s = sum(one.length_s or 0.0 for one in seen.used)
    recorded = f"{len(seen.used)} intervals"
    if length_s:
        recorded += f", {length_s:.0f} s together"
    yield f"{seen.source.name}: {', '.join([*parts, recorded])}."


def _cpus(seen: Look) -> Iterator[str]:
    cpu = seen.cpu
    if cpu.busy is None:
        return
    shares = (
        f"{value:.0f} % {name.removesuffix('_pct')}"
        for name, value in cpu.shares_pct.items()
        if name not in ("idle_pct", "iowait_pct") and name.endswith("_pct") and value >= 1
    )
    told = ", ".join(shares)
    waiting = cpu.shares_pct.get("iowait_pct", 0.0)
    yield (
        f"The CPUs are {100 * cpu.busy:.0f} % busy{f' ({told})' if told else ''}"
        f"{f', and idle with I/O under way for {waiting:.0f} %' if waiting >= 1 else ''}."
    )


def _devices(devices: Sequence[DeviceLook]) -> Iterator[str]:
    known = sorted(lowest(devices), key=lambda one: -one.busy_pct)
    for one in known[:DEVICES_MAX]:
        busy = f"{one.busy_pct:.0f} % busy" if one.util_pct is not None else "no %util recorded"
        does = " and ".join(_directions(one)) or f"{figure(one.rate_per_s)} requests/s"
        answer = await_of(one.row)
        takes = f", each answered in {figure(answer)} ms" if answer else ""
        yield f"{one.name} ({one.guess}) is {busy}: {does}{takes}."
    if len(known) > DEVICES_MAX:
        yield f"{len(known) - DEVICES_MAX} more devices do less."


def _directions(one: DeviceLook) -> Iterator[str]:
    for word, short in (("read", "r"), ("write", "w")):
        value, of = one.row.get(f"{short}_per_s", 0.0), one.row.get(f"{short}areq_bytes")
        if value >= 0.5:
            sized = f" of {figure(of / KIB)} KiB" if of else ""
            yield f"{figure(value)} {word}s/s{sized}"


def _memory(seen: Look) -> Iterator[str]:
    system = seen.system
    swap = max(system.swap_used_bytes, default=0.0)
    parts = []
    if system.load is not None:
        parts.append(f"The load average is {system.load:.2f}")
        parts += _behind(system.load, system.tasks)
    parts += _sleepers(seen.processes)
    if swap:
        parts.append(f"swap in use is {format_quantity(round(swap), 'bytes')}")
    told = [f"{'; '.join(parts)}."] if parts else []
    told += [system.pressure] if system.pressure else []
    if told:
        yield " ".join(told)


def _behind(load: float, told: Active | None) -> Iterator[str]:
    """Say how many tasks were active, if the load average, which lags by a minute, has others."""
    if told is None or told.in_io_alone or abs(load - told.mean) < max(DIFFERS, 2 * told.known_to):
        return
    yield f"{told.mean:.2f} tasks were active on average (it lags by a minute)"


def _sleepers(processes: Sequence[ProcessLook]) -> Iterator[str]:
    """Say whose tasks were in uninterruptible sleep, who had most of them first."""
    asleep = {one.name: one.asleep or 0.0 for one in processes}
    often = [name for name in asleep if asleep[name] >= ASLEEP_MIN]
    most = sorted(often, key=lambda name: -asleep[name])[:SLEEPERS_MAX]
    if most:
        told = ", ".join(f"{name} {figure(asleep[name])}" for name in most)
        yield f"tasks in uninterruptible sleep (D, as for a disk), on average: {told}"


def _doubts(seen: Look) -> Iterator[str]:
    numbers = ", ".join(str(number + 1) for number in seen.outliers)
    if len(seen.outliers) == 1:
        [told] = seen.outliers.values()
        yield f"Interval {numbers} is unlike the others ({told}): the twin is made without it."
    elif seen.outliers:
        yield (
            f"Intervals {numbers} are unlike the others: the twin is made without them. `iotwin"
            " look` says what they have."
        )
    wrong = sum(one.severity == "wrong" for one in seen.findings)
    if wrong == 1:
        yield "One finding contradicts the laws: `iotwin look` names it."
    elif wrong:
        yield f"{wrong} findings contradict the laws: `iotwin look` names them."
