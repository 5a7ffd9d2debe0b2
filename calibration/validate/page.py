"""The tables of the validation report, made of stored runs.

Models: Markdown that docs/ puts between the marks of its pages (docs/reference.py).
Linux counterpart: none.
Invariants: the same data make the same page, byte for byte; every kind of run that misses the
 requirement is listed, under the cause that causes.toml knows or as one without; every figure of a
 program that is far off in one of its runs is listed.
Left out: the text around the blocks, which a person writes.
"""

import tomllib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from statistics import median, quantiles
from typing import Final

from calibration.validate.compare import compared, flat, relative
from calibration.validate.conditions import CONDITIONS
from calibration.validate.emulated_disk import SlowdiskParams
from calibration.validate.limits import FIGURE_WITHIN, WITHIN, asked
from calibration.validate.rigs import GUEST, LOOP, rows
from calibration.validate.stored import Stored
from sim.param import params_of
from sim.units import format_quantity

CAUSES: Final = Path(__file__).with_name("causes.toml")
FITTED: Final = (
    "fit:",
    "result:",
    "recording:",
)  # how the source of a value begins that recordings decided
FAMILIES: Final[Mapping[str, str]] = {
    "a_randread": "loop rig: random reads of the device (fio)",
    "b_seqwrite": "loop rig: one file written from end to end (fio)",
    "c_mailq": "loop rig: 1, 8 and 32 writers of mail queue files, fsync each",
    "d_mta": "loop rig: sendmail storms",
    "e_overcommit": "loop rig: programs with more memory than there is",
    "f_pagecache": "loop rig: readers of a file larger than memory",
    "g_cpu": "loop rig: programs that compute, with and without readers",
    "i_fio": "loop rig, a slower machine: mixtures, logs, jobs on one file (fio)",
    "u_a_randread": "guest: random reads",
    "u_b_seqwrite": "guest: one file written",
    "u_c_mailq": "guest: writers of mail queue files",
    "u_d_mta": "guest: sendmail storms",
    "u_e_overcommit": "guest: programs with more memory than there is",
    "u_f_pagecache": "guest: readers of a file larger than memory",
    "u_g_cpu": "guest: programs that compute",
}
_SECOND: Final = "latency, time or ratio"
# Heading -> figure; these are asked nothing of.
_COUNTERS: Final[Mapping[str, str]] = {
    "writes/s": "wps",
    "size of a write": "wareq_sz",
    "queue length": "aqu_sz",
    "%util": "util",
    "active tasks": "own_load",
    "D tasks": "own_D",
}
_DECILES: Final = 10
_ALL: Final = "**all**"


@dataclass(frozen=True, kw_only=True)
class Cause:
    """What is known of why some runs miss the requirement."""

    runs: tuple[str, ...]  # patterns of names without the repeat
    figures: tuple[str, ...]
    text: str

    def explains(self, miss: "Miss") -> bool:
        """Whether it is about this miss."""
        named = any(fnmatch(miss.name, pattern) for pattern in self.runs)
        return named and miss.what in self.figures


@dataclass(frozen=True, kw_only=True)
class Miss:
    """A figure of a kind of run that is not as near as it should be."""

    name: str
    what: str  # that is asked; nothing for a figure that is only far off
    figure: str
    recorded: tuple[float, ...]
    simulated: tuple[float, ...]

    @property
    def errors(self) -> list[float]:
        """The relative errors of the repeats, signed."""
        both = zip(self.simulated, self.recorded, strict=True)
        return [error for pair in both if (error := relative(*pair)) is not None]


def causes(path: Path = CAUSES) -> list[Cause]:
    """Return the known causes of misses."""
    found = tomllib.loads(path.read_text(encoding="utf-8")).get("cause", ())
    return [
        Cause(runs=tuple(one["runs"]), figures=tuple(one["figures"]), text=one["text"].strip())
        for one in found
    ]


def misses(data: Sequence[Stored]) -> list[Miss]:
    """Return what misses the requirement in the median of its repeats, without any condition."""
    found: list[tuple[str, str, str, float, float]] = []
    for one in _described(data):
        row = one.row
        if row.predicted is None or row.measured is None:
            continue
        simulated = asked({**row.predicted, "util": row.measured["util"]})
        for what, (figure, recorded) in asked(row.measured).items():
            found.append((one.name, what, figure, recorded, simulated[what][1]))
    return [miss for miss in _by_kind(found) if _is_missed(miss)]


def _is_missed(miss: Miss) -> bool:
    """Return whether the median of the absolute errors is beyond what is required."""
    errors = [abs(error) for error in miss.errors]
    return bool(errors) and median(errors) > WITHIN[miss.what]


def far_off(data: Sequence[Stored]) -> list[Miss]:
    """Return the figures that are off in one run by more than any should be."""
    found = [
        (one.name, "", figure, recorded, simulated)
        for one in _described(data)
        for figure, (recorded, simulated) in compared(one.row).items()
    ]
    return [
        miss for miss in _by_kind(found) if any(abs(error) > FIGURE_WITHIN for error in miss.errors)
    ]


def _by_kind(found: Sequence[tuple[str, str, str, float, float]]) -> list[Miss]:
    """Return (kind of run, what is asked, figure, recorded, simulated), repeats together."""
    kinds: dict[tuple[str, str, str], list[tuple[float, float]]] = defaultdict(list)
    for name, what, figure, *both in found:
        kinds[name, what, figure].append((both[0], both[1]))
    return [
        Miss(
            name=name,
            what=what,
            figure=figure,
            recorded=tuple(recorded for recorded, _ in pairs),
            simulated=tuple(simulated for _, simulated in pairs),
        )
        for (name, what, figure), pairs in kinds.items()
    ]


def errors_of(data: Sequence[Stored], what: str) -> list[float]:
    """Return the absolute relative errors of a required figure, run by run."""
    return list(named_errors(data, what).values())


def named_errors(data: Sequence[Stored], what: str) -> dict[str, float]:
    """Return the absolute relative errors of a required figure by the runs' names."""
    found = {}
    for one in data:
        row = one.row
        if row.predicted is None or row.measured is None:
            continue
        recorded = asked(row.measured).get(what)
        if recorded is not None:
            simulated = asked({**row.predicted, "util": row.measured["util"]})[what]
            error = relative(simulated[1], recorded[1])
            if error is not None:
                found[row.id] = abs(error)
    return found


def families(data: Sequence[Stored]) -> dict[str, list[Stored]]:
    """Return the runs of each family that are simulated, without any condition."""
    found: dict[str, list[Stored]] = {}
    for one in _described(data):
        if one.row.predicted is not None:
            found.setdefault(one.row.family, []).append(one)
    return found


def _described(data: Sequence[Stored]) -> list[Stored]:
    return [one for one in data if not one.row.condition]


def _made(data: Sequence[Stored]) -> str:
    """Say what was simulated when, by what."""
    simulated = [one for members in families(data).values() for one in members]
    made = {(one.date, one.sources, one.seed): None for one in data}
    days = "; ".join(f"{date}, sources {sources}, seed {seed}" for date, sources, seed in made)
    runs = len(simulated)
    return f"{runs} recorded runs of {len(families(data))} families. Simulated: {days}.\n"


def _all_families(data: Sequence[Stored]) -> str:
    """Return the table of all families, with a row of all runs at its end."""
    return family_table(data, [*families(data), _ALL])


def family_table(data: Sequence[Stored], names: Sequence[str]) -> str:
    """Return median, 90th percentile and worst error of what is required, a family a row."""
    headings = ["family", "what was run", "runs"]
    for what in WITHIN:
        headings += [f"{what}: median", "90th", "worst", "the worst"]
    known = families(data)
    known[_ALL] = [one for members in known.values() for one in members]
    lines = []
    for name in names:
        cells = [name, FAMILIES.get(name, ""), str(len(known[name]))]
        for what in WITHIN:
            cells += _spread(named_errors(known[name], what))
        lines.append(cells)
    return _table(headings, lines, left=2)


def _spread(named: Mapping[str, float]) -> list[str]:
    """Return median, 90th percentile and greatest, in per cent, and the name of the greatest."""
    if not named:
        return ["", "", "", ""]
    errors = list(named.values())
    high = quantiles(errors, n=_DECILES, method="inclusive")[-1] if len(errors) > 1 else errors[0]
    worst = max(named, key=lambda name: named[name])
    return [_percent(median(errors)), _percent(high), _percent(max(errors)), f"`{worst}`"]


def _miss_list(data: Sequence[Stored]) -> str:
    """Return all misses under their causes; those without a cause come last."""
    left = misses(data)
    parts = []
    for cause in causes():
        explained = [miss for miss in left if cause.explains(miss)]
        left = [miss for miss in left if miss not in explained]
        if explained:
            parts.append(f"{cause.text}\n\n{_miss_table(explained)}")
    if left:
        parts.append(f"The cause of these is not known:\n\n{_miss_table(left)}")
    return "\n".join(parts) if parts else "No kind of run misses it.\n"


def _far_off_list(data: Sequence[Stored]) -> str:
    """Return every figure that is far off, and how many of how many kinds of run these are of."""
    found = far_off(data)
    kinds = {one.name for members in families(data).values() for one in members}
    of_kinds = f"Of {len({miss.name for miss in found})} among {len(kinds)} kinds of run"
    told = f"{of_kinds} one figure or more is off by more than {100 * FIGURE_WITHIN:.0f} %"
    return f"{told}: {len(found)} figures.\n\n{_miss_table(found)}" if found else f"{told}.\n"


def _miss_table(found: Sequence[Miss]) -> str:
    headings = ["run", "figure", "recorded", "simulated", "error %"]
    lines = [
        [
            miss.name,
            miss.figure,
            _range(miss.recorded),
            _range(miss.simulated),
            _signed_range(miss.errors),
        ]
        for miss in found
    ]
    return _table(headings, lines, left=2)


def _counter_table(data: Sequence[Stored]) -> str:
    """Return median and worst error of the other figures; iowait in points, of quiet runs only."""
    headings = ["family", _SECOND, *_COUNTERS, "iowait, points (quiet runs)"]
    lines = []
    for name, members in families(data).items():
        errors: dict[str, list[float]] = defaultdict(list)
        for one in members:
            _note_errors(one, errors)
        names = (_SECOND, *_COUNTERS, "iowait")
        lines.append([name, *(_median_and_worst(errors[figure]) for figure in names)])
    return _table(headings, lines, left=1)


def _note_errors(one: Stored, errors: dict[str, list[float]]) -> None:
    found, measured = one.row.error(), one.row.measured
    if not isinstance(found, dict) or measured is None:
        return
    told = dict(flat(found))
    all_told = {heading: told.get(figure) for heading, figure in _COUNTERS.items()}
    all_told[_SECOND] = next(islice(found["result"].values(), 1, None), None)
    for heading, error in all_told.items():
        if error is not None:
            errors[heading].append(abs(error))
    if measured.get("clean", True):
        points = (one.row.predicted or {})["iowait"] - measured["iowait"]
        errors["iowait"].append(abs(points) / 100)


def _median_and_worst(errors: Sequence[float]) -> str:
    return f"{_percent(median(errors))} / {_percent(max(errors))}" if errors else ""


def _condition_table(data: Sequence[Stored]) -> str:
    """Return the runs of which something is claimed, as described and with the condition."""
    described = {one.row.id: one for one in _described(data)}
    parts = []
    for name, condition in CONDITIONS.items():
        with_it = [one for one in data if one.row.condition == name]
        if not with_it:
            continue
        pairs = [(described[one.row.id], one) for one in with_it if one.row.id in described]
        figures = list(dict(flat(pairs[0][1].row.predicted or {})))
        lines = [
            cells for figure in figures if (cells := _condition_line(figure, pairs)) is not None
        ]
        text = f"`{name}`, {len(pairs)} runs: {condition.evidence}.\n\n"
        parts.append(text + _table(["figure", "as described", f"with {name}"], lines, left=1))
    return "\n".join(parts) if parts else "No run was simulated with a condition.\n"


def _condition_line(figure: str, pairs: Sequence[tuple[Stored, Stored]]) -> list[str] | None:
    """Return the median absolute errors of one figure without and with a condition."""
    cells = [figure]
    for side in zip(*pairs, strict=True):
        told = [dict(flat(one.row.error() or {})).get(figure) for one in side]
        known = [abs(error) for error in told if error is not None]
        if not known:
            return None
        cells.append(_percent(median(known)))
    return cells


def _fitted_table(data: Sequence[Stored]) -> str:
    """Return all values of the two machines that recordings decided, by their sources."""
    lines = []
    for name, rig in (("loop rig", LOOP), ("guest", GUEST)):
        by_source: dict[str, list[str]] = defaultdict(list)
        for key, value, source in rows(rig):
            if source.startswith(FITTED):
                by_source[source].append(f"{key} {value}".replace('"', ""))
        lines += [[name, ", ".join(values), source] for source, values in by_source.items()]
    for one in params_of(SlowdiskParams):
        if one.source.startswith(FITTED):
            value = "" if one.default is None else format_quantity(one.default, one.dim)
            lines.append(["way to the disk", f"{one.key} {value}", one.source])
    return _table(["of", "values", "source"], lines, left=3)


def _unsupported_list(data: Sequence[Stored]) -> str:
    """Return what is recorded and not simulated, with the reason."""
    reasons: dict[tuple[str, str], int] = defaultdict(int)
    for one in _described(data):
        if one.row.predicted is None:
            reasons[one.row.family, one.row.why_not] += 1
    lines = [[family, str(number), why] for (family, why), number in reasons.items()]
    return _table(["family", "runs", "why not"], lines, left=3) if lines else "None.\n"


def _range(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return _figure(low) if _figure(low) == _figure(high) else f"{_figure(low)} .. {_figure(high)}"


def _signed_range(errors: Sequence[float]) -> str:
    low, high = f"{100 * min(errors):+.0f}", f"{100 * max(errors):+.0f}"
    return low if low == high else f"{low} .. {high}"


def _figure(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def _percent(error: float) -> str:
    return f"{100 * error:.1f}" if error < 0.1 else f"{100 * error:.0f}"


def _table(headings: Sequence[str], lines: Sequence[Sequence[str]], left: int) -> str:
    """Return a table in Markdown; the first columns are texts, the others numbers."""
    marks = ["---" if number < left else "---:" for number in range(len(headings))]
    return "".join(_line(cells) for cells in (headings, marks, *lines))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


BLOCKS: Final[Mapping[str, Callable[[Sequence[Stored]], str]]] = {
    "validation-made": _made,
    "validation-misses": _miss_list,
    "validation-far-off": _far_off_list,
    "validation-families": _all_families,
    "validation-counters": _counter_table,
    "validation-conditions": _condition_table,
    "validation-fitted": _fitted_table,
    "validation-not-simulated": _unsupported_list,
}
