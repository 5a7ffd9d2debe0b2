"""Stored runs as Markdown.

Models: the tables of a report.
Invariants: a table depends on the stored figures, on docs/tables.toml and on what was recorded, and
 on nothing else: the same data gives the same text; a figure that a run has not shows as nothing.
Left out: which runs there are (docs/declared.py), simulating them (docs/runs.py).
"""

from collections.abc import Mapping, Sequence

from calibration.fit.predict import Prediction, predict
from calibration.fit.prediction_report import widest
from docs.declared import BASE, Exercise, Figure, Run, Table, Variant
from docs.runs import Sample, Store, fit_of, scenario_of, subject_of
from sim.report.exercise_table import exercise_table as printed_table
from sim.report.study_tables import INTERVAL, RANGE
from sim.report.tables import figure as figure_text
from sim.report.tables import interval as interval_text
from sim.scenario import Scenario, load
from sim.study import promises
from sim.study.metrics import units_of
from sim.study.recorded import Figure as Recorded
from sim.study.recorded import load_figures
from sim.study.summary import SPREAD_RUNS_MIN, Summary, summarise
from sim.study.trial import Figures, Trial

Row = Sequence[str]


class MissingRun(LookupError):
    """A table needs a run that is not stored."""


def markdown_table(headings: Row, rows: Sequence[Row], numbers_from: int = 1) -> str:
    """Return a Markdown table; columns from `numbers_from` on are set right."""
    marks = ["---" if i < numbers_from else "---:" for i in range(len(headings))]
    lines = [headings, marks, *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


# -- Tables of figures.


def figures_table(table: Table, store: Store) -> str:
    """Return a table of figures, and a line that says how it was made."""
    shown = [Shown(variant, samples_of(variant, store)) for variant in table.variants]
    render = _figures_as_rows if table.rows == "figures" else _variants_as_rows
    return f"{render(table, shown)}\n{_made_by(table)}\n"


def samples_of(variant: Variant, store: Store) -> list[Sample]:
    """Return the samples that are shown of a variant; raise MissingRun."""
    stored = store.get(variant.run)
    if stored is None or len(stored.samples) < variant.samples:
        raise MissingRun(variant.run.command)
    return stored.samples[: variant.samples]


class Shown:
    """A variant with its figures, and what was recorded of it."""

    def __init__(self, variant: Variant, samples: Sequence[Sample]) -> None:
        self.variant = variant
        self.samples = samples
        self.scenario = scenario_of(variant.run, 0)
        self.units = _units(variant.run, self.scenario)
        self.recorded: dict[str, Recorded] = {}
        for spec in self.scenario.recorded:
            self.recorded |= load_figures(spec).figures

    @property
    def label(self) -> str:
        """How the variant is called."""
        if self.variant.label is not None:
            return self.variant.label
        return f"`{self.variant.run.what_if or BASE}`"

    @property
    def title(self) -> str:
        """What the variant is, in words."""
        what_if = self.scenario.what_if
        return self.variant.label or (what_if.title if what_if else "(as it was)")

    def unit(self, figure: Figure) -> str:
        """Return the unit in which a figure is shown."""
        return self.units.get(figure.name, "") if figure.unit is None else figure.unit

    def cell(self, figure: Figure, column: str) -> str:
        """Return one cell."""
        summary = self.summary(figure)
        recorded = self.recorded.get(figure.name)
        if column == "recorded":
            return _recorded_text(recorded, figure, self.unit(figure))
        if summary is None:
            return ""
        if column == "verdict":
            if recorded is None:
                return ""
            scaled = self._values(figure.name)
            unit = self.units.get(figure.name, "")
            return recorded.verdict(summarise(scaled, unit).median, unit)
        if column == "width from":
            return widest(prediction_of(self.variant, self.samples), figure.name)
        median = figure_text(summary.median, summary.unit)
        between = interval_text(summary.lo, summary.hi, summary.unit)
        if column == "interval":
            return between
        return median if column == "median" else f"{median} ({between})"

    def summary(self, figure: Figure) -> Summary | None:
        """Return median and interval in the unit that is shown; None if no run has the figure."""
        values = [figure.factor * value for value in self._values(figure.name)]
        return summarise(values, self.unit(figure)) if values else None

    def _values(self, name: str) -> list[float]:
        return [float(one.figures[name]) for one in self.samples if name in one.figures]


def _units(run: Run, scenario: Scenario) -> Mapping[str, str]:
    return promises.UNITS if run.crash_at is not None else units_of(scenario.measure)


def _recorded_text(recorded: Recorded | None, figure: Figure, unit: str) -> str:
    if recorded is None:
        return ""
    if recorded.withheld or recorded.text.startswith("not recorded"):
        return "withheld" if recorded.withheld else ""
    if recorded.value is None or figure.factor == 1:
        return recorded.text
    return figure_text(figure.factor * recorded.value, unit)


_HEADINGS = {
    "median": "median",
    "interval": INTERVAL,
    "median and interval": f"median ({INTERVAL})",
    "recorded": "recorded",
    "verdict": "",
    "width from": "width mostly from",
}


def _heading(column: str, variant: Variant) -> str:
    """Return a column's heading; few runs have a range, and no interval of 90 %."""
    spread = INTERVAL if variant.samples >= SPREAD_RUNS_MIN else RANGE
    return _HEADINGS[column].replace(INTERVAL, spread)


def _figures_as_rows(table: Table, shown: Sequence[Shown]) -> str:
    headings = ["figure", "unit"]
    for one in shown:
        # The first column of a variant bears its name.
        first, *others = [_heading(column, one.variant) for column in table.columns]
        only = len(shown) == 1 and one.variant.label is None
        headings += [first if only else one.label, *others]
    rows = [
        [
            figure.label,
            next((one.unit(figure) for one in shown if one.unit(figure)), ""),
            *(one.cell(figure, column) for one in shown for column in table.columns),
        ]
        for figure in table.figures
    ]
    return markdown_table(headings, rows, 2)


def _variants_as_rows(table: Table, shown: Sequence[Shown]) -> str:
    headings = ["what if"]
    for figure in table.figures:
        unit = shown[0].unit(figure)
        _median, *others = [_heading(column, shown[0].variant) for column in table.columns]
        headings += [f"{figure.label}, {unit}" if unit else figure.label, *others]
    rows = [
        [one.title, *(one.cell(figure, col) for figure in table.figures for col in table.columns)]
        for one in shown
    ]
    return markdown_table(headings, rows)


def _made_by(table: Table) -> str:
    """Say how often was simulated, and by which commands one gets the same."""
    first = table.variants[0]
    number = {variant.samples for variant in table.variants}
    what = "members" if first.run.fit else "runs"
    times = f"{max(number)} {what}" if len(number) == 1 and max(number) > 1 else ""
    times = times or ("One run" if number == {1} else "Runs")
    commands = list(dict.fromkeys(_command_of(table, variant) for variant in table.variants))
    each = " each" if len(table.variants) > 1 else ""
    return f"*{times}{each}:* " + ", ".join(f"`{one}`" for one in commands)


def _command_of(table: Table, variant: Variant) -> str:
    """Return the command that prints a variant's figures; one for all plain what-ifs."""
    run, number = variant.run, variant.samples
    if run.fit is not None:
        return f"{run.command} --members {number}"
    if run.sets or run.crash_at is not None:
        return run.command if number == 1 else f"{run.command} --replications {number}"
    plain = [
        one
        for one in table.variants
        if one.run.scenario == run.scenario and not one.run.sets and one.samples == number
    ]
    what_ifs = [one.run.what_if for one in plain if one.run.what_if is not None]
    if len(plain) == 1:
        return run.command if number == 1 else f"{run.command} --replications {number}"
    return f"iotwin compare {' '.join([run.scenario, *what_ifs])} --replications {number}"


# -- Predictions: what widens them needs the fit as well.


def prediction_of(variant: Variant, samples: Sequence[Sample]) -> Prediction:
    """Return the prediction that `iotwin predict` makes of these members."""
    run, fit = variant.run, fit_of(variant.run)
    assert fit is not None
    base = load(run.scenario, what_if=run.what_if, sets=run.sets, fit=fit.layer(fit.best))
    return predict(
        fit,
        base,
        run.scenario,
        _Stored(samples),
        members=len(samples),
        replications=1,
        seed=base.seed,
        sets=run.sets,
    )


class _Stored:
    """Gives the figures of trials that were done before, by their seed (a Simulator)."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.planned = len(samples)
        self._by_seed = {one.seed: one.figures for one in samples}

    def figures(self, trials: Sequence[Trial]) -> list[Figures]:
        return [self._by_seed[trial.seed] for trial in trials]


# -- Exercise tables.


def exercise_table(exercise: Exercise, store: Store) -> str:
    """Return an exercise table as `iotwin table` prints it."""
    stored = store.get(exercise)
    if stored is None:
        raise MissingRun(exercise.command)
    table = printed_table(subject_of(exercise), stored.samples[0].figures["rows"])
    headings = [column.heading for column in table.columns]
    return f"{markdown_table(headings, table.rows)}\n*Made by* `{exercise.command}`\n"
