"""The outcome of a study as text: one variant beside its recording, or what-ifs beside the base.

Models: the table in an administrator's report.
Linux counterpart: none.
Invariants: each text begins with scenario, seed, version and command; recorded figures stand
 beside simulated ones with their kind (reproduction or prediction) and a verdict, which is that of
 the median. A spread goes by its name: an interval of all runs' mean or median, or the range of
 those that were made.
Left out: plots (sim.report.plot) and JSON (sim.report.study_json).
"""

from collections.abc import Callable, Iterator, Sequence
from textwrap import fill

from sim.report.tables import Column, Table, figure, interval, signed
from sim.scenario import Scenario
from sim.scenario.calibrate import FOLLOWS, SAYS_NOTHING
from sim.study.intervals import RUNS_MIN, Interval
from sim.study.outcome import Replication, Study, VariantOutcome
from sim.study.recorded import AGREES, Figure, FigureSet
from sim.study.summary import Summary

INTERVAL = "90 % interval"
RANGE = "range of runs"
TOO_FEW = "too few"
WIDTH = 100  # of prose, characters
KIND_NOTES = {
    "reproduction": (
        "reproduction: parameters may have been fitted to these figures, (fitted): were"
    ),
    "prediction": "prediction: no parameter was fitted to these figures",
}
FITTED_NOTES = {
    "reproduction": "reproduction: parameters were fitted to a recording of this variant",
    "prediction": "prediction: parameters were fitted to a recording, but not of this variant",
}

PAIRED_NOTE = (
    "figures: mean of the replications; change: mean of the differences, seed by seed\n"
    "±: the mean of all such runs lies within it, nine times in ten; median and range of the runs:"
    " iotwin run, and --json"
)

_HALF_DONE = "figures are of what there was until then; run.duration may be too short"


def heading(outcome: VariantOutcome, version: str, command: str) -> str:
    """Return the lines that say what was run, and how to run it again."""
    runs = replications_text(len(outcome.replications))
    conditions = f"seed {outcome.scenario.seed}, {runs}, iotwin {version}"
    unfinished = outcome.seen.until
    text = scenario_heading(outcome.scenario, conditions, command)
    return f"{text}{unfinished}\n" if unfinished else text


def scenario_heading(scenario: Scenario, conditions: str, command: str) -> str:
    """Return scenario and what-if, under which conditions, and the command as typed."""
    lines = [f"{scenario.name}: {scenario.title}"]
    if scenario.what_if:
        lines.append(f"what-if {scenario.what_if.name}: {scenario.what_if.title}")
    return "\n".join([*lines, conditions, f"$ {command}"]) + "\n"


def replications_text(number: int) -> str:
    """Return how often a variant was run."""
    return "1 replication" if number == 1 else f"{number} replications"


def spread_note(runs: int) -> str:
    """Say what the numbers beside a mean and a median of so many runs are."""
    share = 100 * (runs - 1) / (runs + 1)
    return (
        "figures and changes: mean of the replications; verdicts: of their median\n"
        f"{INTERVAL}: where the mean, or the median, of all such runs lies, nine times in ten\n"
        f"{RANGE}: the least and the greatest of {runs}, where one more run would lie"
        f" {share:.0f} times in a hundred"
    )


def run_table(outcome: VariantOutcome) -> Table:
    """Return one variant beside its recording."""
    several = len(outcome.replications) > 1
    unfinished = bool(outcome.seen.missing)
    recorded = recorded_figures(outcome)
    standing = standing_of(outcome.scenario, outcome.recorded)
    simulated = ("mean", INTERVAL, "median", INTERVAL, RANGE) if several else ("simulated",)
    columns = [Column("figure"), *[Column(name, is_number=True) for name in simulated]]
    columns += [Column("unit")]
    columns += [Column("recorded", is_number=True), Column("verdict")] if recorded else []
    rows = []
    for name, summary in outcome.metrics.items():
        if name in recorded or not _is_idle(name, summary):
            row = [name, *_mean(summary, several)]
            row += _median(summary) if several else []
            row += [_range(summary)] if several else []
            row += [summary.unit]
            if recorded:
                row += _beside(summary, recorded.get(name), standing.get(name, ""), unfinished)
            rows.append(tuple(row))
    return Table(tuple(columns), _grouped(rows))


def _beside(
    summary: Summary, recorded: Figure | None, standing: str, unfinished: bool
) -> list[str]:
    """Return what was recorded and how it compares.

    That a figure agrees is said only where it could have come out otherwise: `standing` tells.
    """
    if recorded is None:
        return ["", ""]
    if unfinished:
        return [recorded.text, "unfinished"]
    verdict = recorded.verdict(summary.median, summary.unit)
    if standing in SAYS_NOTHING and verdict == AGREES:
        return [recorded.text, f"({standing})"]
    return [recorded.text, f"{verdict} ({standing})" if standing else verdict]


def standing_of(scenario: Scenario, recorded: Sequence[FigureSet]) -> dict[str, str]:
    """Return what the calibration says of recorded figures: "fitted", or why agreement is empty."""
    plan = scenario.plan
    shown = {found.name for found in recorded}
    found: dict[str, str] = {}
    for against in plan.against.values() if plan is not None else ():
        if against.figures in shown:
            found |= {metric: against.says_nothing(metric) for metric in against.left_out}
            found |= {column.metric: "fitted" for column in against.columns}
    for figures in recorded:
        found |= {name: one.follows for name, one in figures.figures.items() if one.follows}
    return found


def not_fitted(outcome: VariantOutcome) -> list[str]:
    """Return the recorded figures that no parameter was fitted to and that do not follow from such.

    Those are what the twin had to bring by itself. Derived from [calibrate.against].
    """
    standing = standing_of(outcome.scenario, outcome.recorded)
    return [
        name
        for name, one in recorded_figures(outcome).items()
        if one.low is not None and not standing.get(name) and name in outcome.metrics
    ]


def _is_idle(name: str, *summaries: Summary | None) -> bool:
    """Whether a figure of a disk is zero throughout: then its row says nothing."""
    bounds = [(one.least, one.greatest) for one in summaries if one is not None]
    return name.startswith("disk.") and all(pair == (0, 0) for pair in bounds)


def _grouped(rows: Sequence[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Return the rows with a blank line before those of each disk."""
    found: list[tuple[str, ...]] = []
    for row in rows:
        if found and _group(row[0]) != _group(found[-1][0]):
            found.append(("",) * len(row))
        found.append(row)
    return tuple(found)


def _group(name: str) -> str:
    """Return the disk that a figure belongs to, "" for the others."""
    return ".".join(name.split(".")[:2]) if name.startswith("disk.") else ""


def recorded_figures(outcome: VariantOutcome) -> dict[str, Figure]:
    """Return all recorded figures that stand beside this variant."""
    return {name: one for found in outcome.recorded for name, one in found.figures.items()}


def notes(outcomes: Sequence[VariantOutcome]) -> str:
    """Return what is alike, which recordings, which reports were averaged, what is not shown."""
    lines = list(_alike(outcomes))
    lines += [
        f"recorded ({outcome.name}): {found.data_set}, {found.title} ({_kind_note(found)})"
        for outcome in outcomes
        for found in outcome.recorded
    ]
    lines += [
        f"not fitted directly ({outcome.name}): {', '.join(not_fitted(outcome)) or 'none'}"
        for outcome in outcomes
        if outcome.recorded and outcome.scenario.plan is not None
    ]
    lines += [
        f"follows from fitted figures ({outcome.name}): {', '.join(names)}"
        for outcome in outcomes
        if (
            names := [
                name
                for name, kind in standing_of(outcome.scenario, outcome.recorded).items()
                if kind == FOLLOWS
            ]
        )
    ]
    lines += [
        f"{one.name}: {FITTED_NOTES[one.kind]}"
        for one in outcomes
        if one.kind is not None and not one.recorded
    ]
    for outcome in outcomes:
        seed = outcome.replications[0].seed
        seen = outcome.seen
        lines.append(f"cpu.*, disk.* ({outcome.name}, seed {seed}): {seen.part}")
        lines += unsteady(outcome.name, outcome.replications)
        if seen.until:
            lines.append(f"{outcome.name}, seed {seed}, {seen.until}: {_HALF_DONE}")
    runs = len(outcomes[0].replications)
    if len(outcomes) > 1 and runs >= RUNS_MIN:
        lines.append(PAIRED_NOTE)
    elif len(outcomes) == 1 and runs > 1:
        lines.append(spread_note(runs))
    lines.append("figures of disks that are zero throughout and were not recorded are left out")
    return "\n".join(lines) + "\n"


def _alike(outcomes: Sequence[VariantOutcome]) -> Iterator[str]:
    """Yield which variants have the same figures: what they differ in had no effect."""
    groups: list[list[VariantOutcome]] = []
    for one in outcomes:
        figures = [run.metrics for run in one.replications]
        same = (g for g in groups if [run.metrics for run in g[0].replications] == figures)
        group = next(same, None)
        if group is None:
            groups.append([one])
        else:
            group.append(one)
    for group in groups:
        if len(group) > 1:
            names = f"{', '.join(one.name for one in group[:-1])} and {group[-1].name}"
            yield (
                f"{names} have the same figures: what they differ in changes nothing"
                f" here{_empty_cache(group)}"
            )


def _empty_cache(group: Sequence[VariantOutcome]) -> str:
    """Say of sizes of memory that changed nothing that no file was in it at the start."""
    sizes = {one.scenario.server.memory_bytes for one in group}
    is_warm = any(process.warm for one in group for process in one.scenario.processes.values())
    if len(sizes) == 1 or is_warm:
        return ""
    return "; the page cache is empty at the start, but for files of a process with warm = true"


def unsteady(name: str, replications: Sequence[Replication]) -> list[str]:
    """Say in how many runs there was no steady state where one was asked for."""
    runs = [run for run in replications if run.seen.unsteady]
    if not runs:
        return []
    of = f"{len(runs)} of {replications_text(len(replications))}"
    first = f"seed {runs[0].seed}: {runs[0].seen.unsteady}"
    return [f"{name}: no steady state in {of}, which have no figures ({first})"]


def _kind_note(found: FigureSet) -> str:
    """Say what the figures of a set are to the simulation."""
    note = KIND_NOTES[found.kind]
    if found.kind == "prediction":
        if any(one.follows for one in found.figures.values()):
            note += ", but to others from which some of them follow"
        if any(one.outcome is not None for one in found.figures.values()):
            note += "; predicted before the outcome was known (calibration/predictions)"
    return note


def compare_table(study: Study, variant: VariantOutcome) -> Table:
    """Return a what-if beside the base, with the paired change.

    Means and changes go with half their 90 % interval; a single variant's table has the rest.
    """
    base = study.variants[0]
    assert variant.change is not None
    recorded = [recorded_figures(base), recorded_figures(variant)]
    headings = ["base", *_recorded_heading(recorded[0])]
    headings += [variant.name, *_recorded_heading(recorded[1]), "change", "change %"]
    columns = (Column("figure"), Column("unit"), *[Column(h, is_number=True) for h in headings])
    rows = []
    for name in dict.fromkeys([*base.metrics, *variant.metrics]):
        low, high = base.metrics.get(name), variant.metrics.get(name)
        if _is_idle(name, low, high) and not any(name in figures for figures in recorded):
            continue
        row = [name, next(one.unit for one in (low, high) if one is not None)]
        for summary, figures in zip((low, high), recorded, strict=True):
            row.append("-" if summary is None else _around(figure, summary))
            row += [figures[name].text if name in figures else ""] if figures else []
        row += _change(variant.change.get(name), low)
        rows.append(tuple(row))
    return Table(columns, _grouped(rows))


def _recorded_heading(recorded: dict[str, Figure]) -> list[str]:
    return ["recorded"] if recorded else []


def changes_text(variant: VariantOutcome) -> str:
    """Return which figures change by more than chance, or that the runs are too few to tell."""
    assert variant.change is not None
    test = f"paired t, Holm's correction for {len(variant.change)} figures, 10 %"
    listed = ", ".join(variant.named) or "no figure"
    if len(variant.replications) < RUNS_MIN:
        test = f"{replications_text(len(variant.replications))}, of at least {RUNS_MIN}"
        listed = "too few to tell"
    text = f"changed by more than chance ({test}): {listed}"
    return fill(text, WIDTH, subsequent_indent="  ") + "\n"


def _mean(summary: Summary, several: bool) -> list[str]:
    spread = [_interval(summary.mean_interval, summary.unit)] if several else []
    return [figure(summary.mean, summary.unit), *spread]


def _median(summary: Summary) -> list[str]:
    spread = _interval(summary.median_interval, summary.unit)
    return [figure(summary.median, summary.unit), spread]


def _interval(found: Interval | None, unit: str) -> str:
    return TOO_FEW if found is None else interval(*found, unit)


def _range(summary: Summary) -> str:
    return interval(summary.least, summary.greatest, summary.unit)


def _around(text_of: Callable[[float, str], str], summary: Summary) -> str:
    """Return a mean, and half its interval with as many decimals if there is one."""
    mean, found = text_of(summary.mean, summary.unit), summary.mean_interval
    if found is None:
        return mean
    decimals = len(mean.partition(".")[2])
    return f"{mean} ± {(found[1] - found[0]) / 2:.{decimals}f}"


def _change(change: Summary | None, base: Summary | None) -> list[str]:
    """Return the mean of the paired changes, and its share of the base's mean."""
    if change is None:
        return ["-", ""]
    share = f"{100 * change.mean / base.mean:+.0f} %" if base and base.mean else ""
    return [_around(signed, change), share]
