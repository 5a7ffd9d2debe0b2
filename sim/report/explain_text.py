"""Where the time went, as text and JSON.

Models: a page of a performance report: per kind of transaction a table of what it waited for, and
what that was underneath; the busiest resource; who the load average counted.
Linux counterpart: none.
Invariants: rows and columns of a table sum to its last row and second column, but for rounding;
places where tasks sleep have the names that the scenario's kernel shows.
Left out: a picture; flamegraph.pl or speedscope draw one from folded_text().
"""

from collections.abc import Sequence
from typing import Any

from sim.report.study_tables import scenario_heading
from sim.report.tables import Column, Table, figure
from sim.sched.version import kernel_version
from sim.study.explain import ENDS, Explanation, Kind, Part
from sim.study.waits import kernel_name

SMALL_SHARE = 0.005  # parts below half a per cent are rows "others" of the longest ways
WAYS = 6


def heading(found: Explanation, command: str) -> str:
    """Return the lines that say what was run, and how to run it again."""
    conditions = (
        f"seed {found.scenario.seed}, {found.start_ns / 1e9:.1f} s to {found.end_ns / 1e9:.1f} s of"
        f" the run, iotwin {found.version}"
    )
    return scenario_heading(found.scenario, conditions, command)


def kind_heading(kind: Kind) -> str:
    """Return the line above a kind's table."""
    return (
        f"{kind.name}: {kind.count} transactions, {figure(kind.mean_ms)} ms on average;"
        f" {kind.sampled} of them followed, mean ms:"
    )


def kind_table(kind: Kind) -> Table:
    """Return rows by what the transaction waited for, columns by what that was underneath."""
    rows: dict[str, dict[str, float]] = {}
    for part in kind.parts:
        row = rows.setdefault(part.waits_for, {})
        row[part.ends_in] = row.get(part.ends_in, 0.0) + part.mean_ms
    ends = [end for end in ENDS if any(row.get(end, 0.0) >= 0.005 for row in rows.values())]
    columns = [Column("waits for"), Column("ms", is_number=True), Column("share", is_number=True)]
    columns += [Column(end, is_number=True) for end in ends]
    ordered = sorted(rows.items(), key=lambda pair: -sum(pair[1].values()))
    cells = [_row(name, row, ends, kind.sampled_ms) for name, row in ordered]
    total = {end: sum(row.get(end, 0.0) for row in rows.values()) for end in ENDS}
    cells += [("",) * len(columns), _row("sum", total, ends, kind.sampled_ms)]
    return Table(tuple(columns), tuple(cells))


def _row(name: str, row: dict[str, float], ends: Sequence[str], whole: float) -> tuple[str, ...]:
    spent = sum(row.values())
    parts = [figure(row[end]) if row.get(end, 0.0) >= 0.005 else "" for end in ends]
    return (name, figure(spent), f"{100 * spent / whole:.1f} %", *parts)


def ways(found: Explanation, kind: Kind) -> str:
    """Return the longest ways by which time was lost, and the journal's share."""
    lines = [
        f"  {_share(part, kind)}  {' > '.join(_frames(found, part))}" for part in _longest(kind)
    ]
    if kind.journal_share > SMALL_SHARE:
        lines.append(f"  {100 * kind.journal_share:5.1f} %  behind a journal, by all ways")
    return "\n".join(lines) + "\n"


def reason(found: Explanation) -> str:
    """Say what most of the time goes into, of the kind of transactions that takes most of it."""
    kind = max(found.kinds, key=lambda one: one.count * one.mean_ms)
    waits: dict[str, float] = {}
    for part in kind.parts:
        waits[part.waits_for] = waits.get(part.waits_for, 0.0) + part.mean_ms
    if not kind.sampled_ms:
        return f"{kind.name} takes no time"
    longest = max(waits, key=waits.__getitem__)
    share = 100 * waits[longest] / kind.sampled_ms
    text = f"{kind.name} takes {figure(kind.mean_ms)} ms, {share:.0f} % of it {longest}"
    if kind.journal_share > SMALL_SHARE:
        text += f", {100 * kind.journal_share:.0f} % behind a journal"
    return text


def _longest(kind: Kind) -> list[Part]:
    shown = [part for part in kind.parts if part.mean_ms >= SMALL_SHARE * kind.sampled_ms]
    return shown[:WAYS]


def _share(part: Part, kind: Kind) -> str:
    return f"{100 * part.mean_ms / kind.sampled_ms:5.1f} %"


def resource_text(found: Explanation) -> str:
    """Return how busy everything was, the busiest first, and what to make of it."""
    lines = [f"  {one.busy_pct:5.1f} %  {one.name}" for one in found.resources]
    return "busy:\n" + "\n".join(lines) + f"\n{resource_verdict(found)}\n"


def resource_verdict(found: Explanation) -> str:
    """Say what to make of how busy everything was."""
    busiest = found.resources[0]
    if busiest.busy_pct >= 90:
        return f"bottleneck: {busiest.name}"
    if busiest.busy_pct >= 60:
        return f"nearest to its limit: {busiest.name}; what runs one by one leaves it gaps"
    return "no CPU, disk or journal is near its limit: the load sets the pace, or the network"


def load_text(found: Explanation) -> str:
    """Return the tasks that the load average counts."""
    load = found.load
    rows = [("on a CPU", load.on_cpu), ("on a run queue", load.run_queue)]
    rows += [(f"blocked in {wchan}", number) for wchan, number in _blocked(found).items()]
    lines = [f"  {number:7.2f}  {name}" for name, number in rows if number >= 0.005]
    lines.append(f"  {load.journal:7.2f}  of those blocked wait for a journal, or for a lock whose")
    lines.append("           holder does")
    return f"tasks that the load average counts: {load.mean:.2f} on average\n" + "\n".join(lines)


def folded_text(found: Explanation) -> str:
    """Return a line for each part, microseconds behind its path: what flamegraph.pl reads."""
    return "".join(
        f"{';'.join((kind.name, *_frames(found, part)))} {round(1000 * part.mean_ms)}\n"
        for kind in found.kinds
        for part in kind.parts
    )


def _frames(found: Explanation, part: Part) -> list[str]:
    """Return a part's path, places in the kernel as the release calls them."""
    version = kernel_version(found.scenario.server.kernel)
    return [kernel_name(frame, version) for frame in part.path]


def _blocked(found: Explanation) -> dict[str, float]:
    """Return how many tasks sleep where, as the release calls the places, most first."""
    version = kernel_version(found.scenario.server.kernel)
    numbers: dict[str, float] = {}
    for wchan, number in found.load.blocked:
        name = kernel_name(wchan, version)
        numbers[name] = numbers.get(name, 0.0) + number
    return dict(sorted(numbers.items(), key=lambda pair: -pair[1]))


def explanation_json(found: Explanation) -> dict[str, Any]:
    """Return the explanation as what json can write; times in ms, shares of 1."""
    scenario = found.scenario
    return {
        "scenario": scenario.name,
        "what_if": scenario.what_if.name if scenario.what_if else None,
        "seed": scenario.seed,
        "version": found.version,
        "window_s": [found.start_ns / 1e9, found.end_ns / 1e9],
        "transactions": [_kind_json(found, kind) for kind in found.kinds],
        "busy_pct": {one.name: one.busy_pct for one in found.resources},
        "load": {
            "mean": found.load.mean,
            "on_cpu": found.load.on_cpu,
            "run_queue": found.load.run_queue,
            "blocked": _blocked(found),
            "behind_journal": found.load.journal,
        },
    }


def _kind_json(found: Explanation, kind: Kind) -> dict[str, Any]:
    return {
        "kind": kind.name,
        "count": kind.count,
        "mean_ms": kind.mean_ms,
        "followed": kind.sampled,
        "followed_mean_ms": kind.sampled_ms,
        "behind_journal_share": kind.journal_share,
        "parts": [
            {
                "path": _frames(found, part),
                "waits_for": part.waits_for,
                "ends_in": part.ends_in,
                "mean_ms": part.mean_ms,
            }
            for part in kind.parts
        ],
    }
