"""The outcome of a study as text: one variant beside its recording, or what-ifs beside the base.

Models: the table in an administrator's report.
Linux counterpart: none.
Invariants: each text begins with scenario, seed, version and command; recorded figures stand
 beside simulated ones with their kind (reproduction or prediction) and a verdict.
Left out: plots (sim.report.plot) and JSON (sim.report.study_json).
"""

from sim.report.tables import Column, Table, figure, interval, signed
from sim.study.outcome import Study, VariantOutcome
from sim.study.recorded import Figure
from sim.study.summary import Summary

KIND_NOTES = {
    "reproduction": "reproduction: parameters may have been fitted to these figures",
    "prediction": "prediction: no parameter was fitted to these figures",
}


def heading(outcome: VariantOutcome, version: str, command: str) -> str:
    """Return the lines that say what was run, and how to run it again."""
    scenario = outcome.scenario
    lines = [f"{scenario.name}: {scenario.title}"]
    if scenario.what_if:
        lines.append(f"what-if {scenario.what_if.name}: {scenario.what_if.title}")
    number = len(outcome.replications)
    runs = "1 replication" if number == 1 else f"{number} replications"
    lines.append(f"seed {scenario.seed}, {runs}, iotwin {version}")
    lines.append(f"$ {command}")
    return "\n".join(lines) + "\n"


def run_table(outcome: VariantOutcome) -> Table:
    """Return one variant beside its recording."""
    several = len(outcome.replications) > 1
    recorded = recorded_figures(outcome)
    columns = [Column("figure"), Column("simulated", is_number=True), Column("unit")]
    columns += [Column("90 % interval", is_number=True)] if several else []
    columns += [Column("recorded", is_number=True), Column("verdict")] if recorded else []
    rows: list[tuple[str, ...]] = []
    for name, summary in outcome.metrics.items():
        row = [name, figure(summary.median, summary.unit), summary.unit]
        row += [interval(summary.lo, summary.hi, summary.unit)] if several else []
        row += _beside(summary, recorded.get(name)) if recorded else []
        if rows and _group(name) != _group(rows[-1][0]):
            rows.append(("",) * len(row))
        rows.append(tuple(row))
    return Table(tuple(columns), tuple(rows))


def _beside(summary: Summary, recorded: Figure | None) -> list[str]:
    if recorded is None:
        return ["", ""]
    return [recorded.text, recorded.verdict(summary.median)]


def _group(name: str) -> str:
    """Return what keeps rows together: the device, or nothing but the first word."""
    return ".".join(name.split(".")[:2]) if name.startswith("disk.") else ""


def recorded_figures(outcome: VariantOutcome) -> dict[str, Figure]:
    """Return all recorded figures that stand beside this variant."""
    return {name: one for found in outcome.recorded for name, one in found.figures.items()}


def notes(outcome: VariantOutcome) -> str:
    """Return which recording, and which reports were averaged."""
    lines = [
        f"recorded: {found.data_set}, {found.title} ({KIND_NOTES[found.kind]})"
        for found in outcome.recorded
    ]
    averaged = outcome.observation().describe()
    lines.append(f"cpu.* and disk.*: mean of iostat's {averaged}")
    if len(outcome.replications) > 1:
        first = outcome.replications[0].seed
        lines[-1] += f" (seed {first})"
        lines.append(
            "simulated: median of the replications; 90 % interval: their 5th to 95th percentile"
        )
    return "\n".join(lines) + "\n"


def compare_table(study: Study, variant: VariantOutcome) -> Table:
    """Return a what-if beside the base, with the paired change."""
    base = study.variants[0]
    assert variant.change is not None
    headings = ["base", "90 % interval", "recorded", variant.name, "90 % interval", "recorded"]
    headings += ["change", "90 % interval", "change %"]
    columns = (Column("figure"), Column("unit"), *[Column(h, is_number=True) for h in headings])
    recorded = [recorded_figures(base), recorded_figures(variant)]
    rows: list[tuple[str, ...]] = []
    for name in dict.fromkeys([*base.metrics, *variant.metrics]):
        low, high = base.metrics.get(name), variant.metrics.get(name)
        unit = (low or high or Summary(0, 0, 0, "")).unit
        row = (
            name, unit,
            *_cells(low), _recorded_text(recorded[0], name),
            *_cells(high), _recorded_text(recorded[1], name),
            *_change(variant.change.get(name), low),
        )  # fmt: skip
        if rows and _group(name) != _group(rows[-1][0]):
            rows.append(("",) * len(row))
        rows.append(row)
    return Table(columns, tuple(rows))


def _recorded_text(recorded: dict[str, Figure], name: str) -> str:
    return recorded[name].text if name in recorded else ""


def _cells(summary: Summary | None) -> tuple[str, str]:
    if summary is None:
        return "-", ""
    median = figure(summary.median, summary.unit)
    return median, interval(summary.lo, summary.hi, summary.unit)


def _change(change: Summary | None, base: Summary | None) -> tuple[str, str, str]:
    if change is None:
        return "-", "", ""
    share = f"{100 * change.median / base.median:+.0f} %" if base and base.median else ""
    low, high = signed(change.lo, change.unit), signed(change.hi, change.unit)
    return signed(change.median, change.unit), f"{low} .. {high}", share
