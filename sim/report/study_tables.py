"""The outcome of a study as text: one variant beside its recording, or what-ifs beside the base.

Models: the table in an administrator's report.
Linux counterpart: none.
Invariants: each text begins with scenario, seed, version and command; recorded figures stand
 beside simulated ones with their kind (reproduction or prediction) and a verdict.
Left out: plots (sim.report.plot) and JSON (sim.report.study_json).
"""

from collections.abc import Sequence
from textwrap import fill

from sim.report.tables import Column, Table, figure, interval, signed
from sim.scenario import Scenario
from sim.scenario.calibrate import FOLLOWS, SAYS_NOTHING
from sim.study.outcome import Study, VariantOutcome
from sim.study.recorded import AGREES, Figure, FigureSet
from sim.study.summary import INTERVAL_RUNS_MIN, Summary, is_beyond

INTERVAL = "90 % interval"
RANGE = "range of runs"
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


def spread_name(runs: int) -> str:
    """Return what the two numbers beside a median of so many runs are."""
    return INTERVAL if runs >= INTERVAL_RUNS_MIN else RANGE


def spread_note(runs: int) -> str:
    """Say what they mean."""
    if runs >= INTERVAL_RUNS_MIN:
        return f"figures: median of the replications; {INTERVAL}: 5th to 95th percentile"
    share = 100 * (runs - 1) / (runs + 1)
    return (
        f"figures: median of the replications; {RANGE}: the least and the greatest of {runs}, where"
        f" one more run would lie {share:.0f} times in a hundred"
    )


def run_table(outcome: VariantOutcome) -> Table:
    """Return one variant beside its recording."""
    several = len(outcome.replications) > 1
    unfinished = bool(outcome.seen.missing)
    recorded = recorded_figures(outcome)
    standing = _standing(outcome)
    columns = [Column("figure"), Column("simulated", is_number=True), Column("unit")]
    columns += [Column(spread_name(len(outcome.replications)), is_number=True)] if several else []
    columns += [Column("recorded", is_number=True), Column("verdict")] if recorded else []
    rows = []
    for name, summary in outcome.metrics.items():
        if name in recorded or not _is_idle(name, summary):
            row = [name, figure(summary.median, summary.unit), summary.unit]
            row += [interval(summary.lo, summary.hi, summary.unit)] if several else []
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


def _standing(outcome: VariantOutcome) -> dict[str, str]:
    """Return what the calibration says of recorded figures: "fitted", or why agreement is empty."""
    plan = outcome.scenario.plan
    shown = {found.name for found in outcome.recorded}
    found: dict[str, str] = {}
    for against in plan.against.values() if plan is not None else ():
        if against.figures in shown:
            found |= {metric: against.says_nothing(metric) for metric in against.left_out}
            found |= {column.metric: "fitted" for column in against.columns}
    for figures in outcome.recorded:
        found |= {name: one.follows for name, one in figures.figures.items() if one.follows}
    return found


def not_fitted(outcome: VariantOutcome) -> list[str]:
    """Return the recorded figures that no parameter was fitted to and that do not follow from such.

    Those are what the twin had to bring by itself. Derived from [calibrate.against].
    """
    standing = _standing(outcome)
    return [
        name
        for name, one in recorded_figures(outcome).items()
        if one.low is not None and not standing.get(name) and name in outcome.metrics
    ]


def _is_idle(name: str, *summaries: Summary | None) -> bool:
    """Whether a figure of a disk is zero throughout: then its row says nothing."""
    bounds = [(one.lo, one.hi) for one in summaries if one is not None]
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
    """Return which recordings, which reports were averaged, and what is not shown."""
    lines = [
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
        if (names := [name for name, kind in _standing(outcome).items() if kind == FOLLOWS])
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
        if seen.until:
            lines.append(f"{outcome.name}, seed {seed}, {seen.until}: {_HALF_DONE}")
    if len(outcomes[0].replications) > 1:
        lines.append(spread_note(len(outcomes[0].replications)))
    lines.append("figures of disks that are zero throughout and were not recorded are left out")
    return "\n".join(lines) + "\n"


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
    """Return a what-if beside the base, with the paired change."""
    base = study.variants[0]
    assert variant.change is not None
    several = len(base.replications) > 1
    spread = [spread_name(len(base.replications))] if several else []
    headings = ["base", *spread, "recorded", variant.name, *spread, "recorded"]
    headings += ["change", *spread, "change %"]
    columns = (Column("figure"), Column("unit"), *[Column(h, is_number=True) for h in headings])
    recorded = [recorded_figures(base), recorded_figures(variant)]
    rows = []
    for name in dict.fromkeys([*base.metrics, *variant.metrics]):
        low, high = base.metrics.get(name), variant.metrics.get(name)
        if _is_idle(name, low, high) and not any(name in figures for figures in recorded):
            continue
        row = [name, (low or high or Summary(0, 0, 0, "")).unit]
        row += [*_cells(low, several), _recorded_text(recorded[0], name)]
        row += [*_cells(high, several), _recorded_text(recorded[1], name)]
        row += _change(variant.change.get(name), low, several)
        rows.append(tuple(row))
    return Table(columns, _grouped(rows))


def beyond_text(study: Study, variant: VariantOutcome) -> str:
    """Return which figures change by more than runs alike differ; "" for one replication."""
    base = study.variants[0]
    assert variant.change is not None
    if len(base.replications) == 1:
        return ""
    names = [
        name
        for name, change in variant.change.items()
        if is_beyond(base.metrics[name], variant.metrics[name], change)
    ]
    listed = ", ".join(names) or "no figure"
    return fill(f"beyond the base's interval: {listed}", WIDTH, subsequent_indent="  ") + "\n"


def _recorded_text(recorded: dict[str, Figure], name: str) -> str:
    return recorded[name].text if name in recorded else ""


def _cells(summary: Summary | None, several: bool) -> list[str]:
    """Return the median, and the interval if there are several replications."""
    if summary is None:
        return ["-", ""] if several else ["-"]
    spread = [interval(summary.lo, summary.hi, summary.unit)] if several else []
    return [figure(summary.median, summary.unit), *spread]


def _change(change: Summary | None, base: Summary | None, several: bool) -> list[str]:
    """Return the paired change, its interval, and its share of the base."""
    if change is None:
        return ["-", "", ""] if several else ["-", ""]
    share = f"{100 * change.median / base.median:+.0f} %" if base and base.median else ""
    low, high = signed(change.lo, change.unit), signed(change.hi, change.unit)
    spread = [f"{low} .. {high}"] if several else []
    return [signed(change.median, change.unit), *spread, share]
