"""A look as text in sections, and as JSON.

Models: the page that is shown to the colleague.
Linux counterpart: none.
Invariants: every number on the page is in the JSON; text is plain, at most 100 columns where a
table does not need more.
Left out: pictures.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from math import isfinite
from statistics import median
from textwrap import wrap
from typing import Any

from calibration.host import Mount
from calibration.look.cpus import CpuLook
from calibration.look.demand import Demand, Demands
from calibration.look.devices import DeviceLook
from calibration.look.intervals import await_of
from calibration.look.processes import ProcessLook
from calibration.look.summary import Look
from sim.report.tables import Column, Table, figure, plain

WIDTH = 98
SCHEMA = "iotwin.look/1"
FACTS = ("tool", "kernel", "hostname", "arch", "cpus", "memory_bytes", "start", "date", "command")


def to_text(seen: Look) -> str:
    """Return the page."""
    sections = (
        ("", _recording(seen)),
        ("Bottleneck", _paragraph(seen.verdict.sentence)),
        ("CPUs", _cpus(seen)),
        ("Devices", (*_devices(seen.devices), *_journals(seen))),
        ("Volumes", _stacks(seen)),
        ("Demand of a transaction", _demands(seen.demands)),
        ("Memory and load", _system(seen)),
        ("Busiest processes", _processes(seen.processes)),
        ("Does the recording agree with itself?", _checks(seen)),
    )
    texts = []
    for title, lines in sections:
        body = "\n".join(line.rstrip() for line in lines)
        if body:
            texts.append(f"{title}\n{'-' * len(title)}\n{body}\n" if title else f"{body}\n")
    return "\n".join(texts)


def to_json(seen: Look) -> dict[str, Any]:
    """Return the look as JSON; shares in %, times in ms, sizes in bytes; null for no bound."""
    content: dict[str, Any] = _finite(_content(seen))
    return content


def _finite(content: Any) -> Any:
    """Return content with null in place of infinity, which is no JSON."""
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not isfinite(content) else content


def _content(seen: Look) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "source": seen.source.name,
        "facts": seen.source.facts,
        "formats": list(seen.formats),
        "intervals": len(seen.intervals),
        "intervals_used": len(seen.used),
        "reports_since_boot": seen.since_boot,
        "left_aside": list(seen.source.left_aside),
        "problems": sum(len(one.problems) for one in seen.source.recordings),
        "bottleneck": asdict(seen.verdict),
        "cpu": _cpu_json(seen.cpu),
        "devices": [_device_json(one) for one in seen.devices],
        "stacks": [asdict(one) | {"unexplained": one.unexplained} for one in seen.stacks],
        "without_journal": [one.place for one in _without_journal(seen)],
        "demands": asdict(seen.demands) if seen.demands is not None else None,
        "system": asdict(seen.system),
        "processes": [asdict(one) for one in seen.processes],
        "outliers": {number + 1: told for number, told in seen.outliers.items()},
        "findings": [asdict(one) for one in seen.findings],
    }


def _cpu_json(cpu: CpuLook) -> dict[str, Any]:
    content = asdict(cpu)
    content["placings"] = [one._asdict() for one in cpu.placings]
    content["steps"] = cpu.steps._asdict() if cpu.steps is not None else None
    return content


def _device_json(device: DeviceLook) -> dict[str, Any]:
    extra = {"entered_per_s": device.entered_per_s, "merge_ratio": device.merge_ratio}
    return asdict(device) | extra


def _recording(seen: Look) -> Iterator[str]:
    data = seen.source.data_set
    yield f"{seen.source.name}: {data.title}" if data is not None else seen.source.name
    facts = seen.source.facts
    rows = [(name, facts[name]) for name in FACTS if name in facts]
    rows.append(("formats", ", ".join(seen.formats)))
    rows.append(("intervals", _intervals(seen)))
    problems = sum(len(one.problems) for one in seen.source.recordings)
    if problems:
        rows.append(("not read", f"{problems} lines (iotwin samples lists them)"))
    yield from plain(Table((Column(""), Column("")), tuple(rows))).splitlines()[1:]


def _intervals(seen: Look) -> str:
    lengths = [one.length_s for one in seen.intervals if one.length_s]
    text = f"{len(seen.intervals)}"
    if lengths:
        text += f" of {round(median(lengths), 1):g} s"
    if len(seen.used) < len(seen.intervals):
        text += f", {len(seen.used)} used (the others are warm-up or cool-down)"
    if seen.since_boot:
        text += f"; {seen.since_boot} since boot, not used"
    return text


def _paragraph(text: str) -> Iterator[str]:
    yield from wrap(text, WIDTH, break_on_hyphens=False)


def _cpus(seen: Look) -> Iterator[str]:
    cpu = seen.cpu
    if cpu.busy is None:
        return
    names = [n for n in cpu.shares_pct if n.endswith("_pct") and cpu.shares_pct[n] >= 0.005]
    shares = ", ".join(
        f"{cpu.shares_pct[name]:.2f} % {name.removesuffix('_pct')}" for name in names
    )
    yield from _paragraph(f"{shares}; {100 * cpu.busy:.2f} % busy.")
    number = f"{cpu.cpus} CPUs" if cpu.cpus != 1 else "1 CPU"
    yield from _paragraph(f"{number if cpu.cpus else 'Number of CPUs'}: {cpu.source}.")
    if cpu.ratio is not None:
        yield from _paragraph(_waiters(cpu))
    if cpu.steps is not None:
        yield from _paragraph(
            f"In {cpu.steps.hits} of {cpu.steps.intervals} intervals with iowait, idle time stands"
            f" on a step of 1/{cpu.steps.cpus}: one of {cpu.steps.cpus} CPUs waits all the time."
        )


def _waiters(cpu: CpuLook) -> str:
    text = f"iowait / (util of {cpu.device} x (1 - busy)) = {cpu.ratio:.3f}"
    if _is_countable(cpu):
        text += f": {cpu.waiters:.1f} tasks wait inside I/O on {cpu.cpus} CPUs, or more that gather"
        text += " on few of them"
    elif cpu.cpus == 1 and cpu.ratio is not None and cpu.ratio < 1:
        text += f": somebody waits inside I/O in {100 * cpu.ratio:.0f} % of the time it is busy"
    others = ", ".join(f"{p.waiters} on {p.cpus} CPUs ({p.ratio:.3f})" for p in cpu.placings)
    return f"{text}; {others} would look alike." if others else f"{text}."


def _is_countable(cpu: CpuLook) -> bool:
    """With one CPU, or a ratio over 1, waiters cannot be counted."""
    return cpu.waiters is not None and isfinite(cpu.waiters)


def _devices(devices: Sequence[DeviceLook]) -> Iterator[str]:
    if not devices:
        yield "No device was recorded, or none had requests."
        return
    heads = (
        "util %",
        "X /s",
        "read /s",
        "write /s",
        "MB/s",
        "size KiB",
        "in : out",
        "S ms",
        "await ms",
        "in queue",
    )
    columns = (Column("device"), *(Column(head, is_number=True) for head in heads))
    yield from plain(Table(columns, tuple(map(_device_row, devices)))).splitlines()
    yield "S = util / X; in : out = (requests + merges) / requests."
    for one in devices:
        if not one.is_stacked:
            yield from wrap(f"{one.name}: {one.guess} ({one.reason}).", WIDTH)


def _journals(seen: Look) -> Iterator[str]:
    """Say which file systems have no journal: their fsyncs are single flushes."""
    bare = _without_journal(seen)
    if bare:
        places = ", ".join(f"{mount.place} ({mount.source})" for mount in bare)
        yield from _paragraph(f"ext4 without a journal: {places}; /proc/fs/jbd2 has none of it.")


def _without_journal(seen: Look) -> list[Mount]:
    """Return the mounts that lack one as far as was recorded, one of each file system."""
    host = seen.source.host
    found: dict[str, Mount] = {}
    if host is not None:
        for one in sorted(host.mounts, key=lambda one: len(one.place)):
            if host.lacks_journal(one):
                found.setdefault(one.source, one)
    return list(found.values())


def _device_row(one: DeviceLook) -> tuple[str, ...]:
    row = one.row
    values = (
        one.util_pct,
        one.rate_per_s,
        row.get("r_per_s"),
        row.get("w_per_s"),
        _scaled(one.bytes_per_s, 1e6),
        _scaled(one.size_bytes, 1024),
        one.merge_ratio,
        one.service_ms,
        await_of(row),
        row.get("aqu_sz"),
    )
    return (one.name, *map(_cell, values))


def _cell(value: float | None) -> str:
    return figure(value) if value is not None and isfinite(value) else "-"


def _scaled(value: float | None, unit: float) -> float | None:
    return value / unit if value is not None else None


def _stacks(seen: Look) -> Iterator[str]:
    for stack in seen.stacks:
        by = "/sys" if stack.is_known else "what enters"
        yield from _paragraph(
            f"{', '.join(stack.volumes)} on {stack.disk} (by {by}): {stack.handed_per_s:.1f}"
            f" writes/s handed down, {stack.entered_per_s:.1f} entered (w + wrqm)."
        )


def _demands(demands: Demands | None) -> Iterator[str]:
    if demands is None:
        return
    yield f"Throughput {demands.throughput_per_s:g} /s ({demands.source})."
    heads = ("mean ms", "requests", "KiB", "X at most", "busiest ms", "requests", "X at most")
    columns = (Column("resource"), *(Column(head, is_number=True) for head in heads))
    yield from plain(Table(columns, tuple(map(_demand_row, demands.rows)))).splitlines()
    yield from _paragraph(
        "mean: over the intervals used; busiest: in the one in which the busiest device was"
        " busiest. X at most: transactions/s that would fill the resource, 1 / D; a bound, not a"
        " prediction."
    )
    yield from _taken_away(demands.rows)
    bound = demands.population_bound_per_s
    if bound is not None and isfinite(bound):
        yield f"So many customers reach {figure(bound)} /s at most."


def _demand_row(one: Demand) -> tuple[str, ...]:
    values = (
        one.demand_ms,
        one.visits,
        _scaled(one.bytes, 1024),
        one.bound_per_s,
        one.busiest_ms,
        one.busiest_visits,
        one.busiest_bound_per_s,
    )
    return (one.resource, *map(_cell, values))


def _taken_away(rows: Sequence[Demand]) -> Iterator[str]:
    """Say what the next bound is, without the resource that fills up first."""
    by_bound = sorted(
        (one for one in rows if isfinite(one.busiest_bound_per_s)),
        key=lambda one: one.busiest_bound_per_s,
    )
    if len(by_bound) >= 2:
        first, second = by_bound[:2]
        yield from _paragraph(
            f"{first.resource} fills up first, at {figure(first.busiest_bound_per_s)} /s; were it"
            f" taken away, {second.resource} would, at {figure(second.busiest_bound_per_s)} /s."
        )


def _system(seen: Look) -> Iterator[str]:
    system = seen.system
    if any(system.swap_used_bytes):
        values = " to ".join(f"{value / 1024:.0f}" for value in system.swap_used_bytes)
        yield f"Swap in use: {values} KiB."
    if system.load is not None:
        yield from _paragraph(
            f"Load average {system.load:.2f} ({system.load_source}){_tasks(seen)}."
        )
    if system.pressure:
        yield from _paragraph(system.pressure)


def _processes(processes: Sequence[ProcessLook]) -> Iterator[str]:
    """Say who was busy, in columns that some table had."""
    values = {
        "CPU %": [one.cpu_pct for one in processes],
        "wait %": [one.wait_pct for one in processes],
        "read MB/s": [_scaled(one.read_bytes_per_s, 1e6) for one in processes],
        "written MB/s": [_scaled(one.write_bytes_per_s, 1e6) for one in processes],
        "majflt/s": [one.majflt_per_s for one in processes],
        "in D": [one.asleep for one in processes],
        "RSS MB": [_scaled(one.rss_bytes, 1e6) for one in processes],
    }
    told = {
        title: [_cell(one) for one in column]
        for title, column in values.items()
        if any(one is not None for one in column)
    }
    if not told:
        return
    columns = (Column(""), *(Column(title, is_number=True) for title in told))
    rows = tuple(zip((one.name for one in processes), *told.values(), strict=True))
    yield from plain(Table(columns, rows)).splitlines()


def _tasks(seen: Look) -> str:
    """Say what tasks the load average is made of, as far as is known."""
    system = seen.system
    parts = {
        "runnable": system.running,
        "blocked by I/O": system.blocked,
        "uninterruptible": system.uninterruptible,
    }
    known = ", ".join(f"{value:.1f} {name}" for name, value in parts.items() if value is not None)
    text = f"; tasks at the samples: {known}" if known else ""
    waiters = seen.cpu.waiters if _is_countable(seen.cpu) else None
    if waiters is None or system.blocked is not None or (system.load or 0) <= 2 * (waiters + 1):
        return text
    others = "the others run, or sleep uninterruptibly elsewhere (locks, journal)"
    return f"{text}; by iowait {waiters:.0f} of them inside I/O: {others}"


def _checks(seen: Look) -> Iterator[str]:
    wrong = [one for one in seen.findings if one.severity == "wrong"]
    names = ", ".join(dict.fromkeys(one.check for one in wrong))
    if wrong:
        number = len(wrong)
        told = "1 finding that contradicts" if number == 1 else f"{number} findings that contradict"
        yield f"{told} the laws: {names}."
    else:
        laws = ", ".join(seen.laws) or "none could be checked: too few columns"
        yield from _paragraph(f"Yes: nothing contradicts the laws ({laws}).")
    for one in seen.findings:
        where = f"{one.where}: " if one.where else ""
        yield from wrap(
            f"{one.severity} [{one.check}] {where}{one.text}.",
            WIDTH,
            subsequent_indent="    ",
            break_on_hyphens=False,
        )
