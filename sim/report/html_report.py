"""A report of a scenario and its what-ifs: one page of HTML to hand on.

Models: what an administrator writes for who decides: question, answer, service levels, before and
 after beside what was recorded, time lines, where the time goes, what was put in, what the answer
 rests on, how to do it again.
Linux counterpart: none.
Invariants: the answer stands on the first screen. Tables and texts are those of `iotwin compare`,
 `explain` and `params`; nothing is computed here. The page is at most `SIZE_MAX` long and asks
 nobody for anything (sim.report.html_page).
Left out: every figure of every run, which `--json` has; where a page would be too long, what-ifs
 have to be named.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain
from typing import Final

from sim.origin import Origin
from sim.report import explain_text
from sim.report.answer_text import answer, answer_table
from sim.report.html_charts import Chart, chart_json, chart_svg, charts, in_words
from sim.report.html_page import (
    Content,
    Element,
    document,
    element,
    folded,
    html_table,
    items,
    section,
    text_block,
)
from sim.report.levels_table import levels_table
from sim.report.params_text import parameters_table, share_line
from sim.report.study_tables import (
    FITTED_NOTES,
    KIND_NOTES,
    changes_text,
    compare_table,
    notes,
    recorded_figures,
    replications_text,
    run_table,
)
from sim.report.tables import Column, Table
from sim.scenario import Scenario
from sim.study.explain import Explanation, Kind
from sim.study.findings import Findings
from sim.study.levels import MET, UNDECIDED
from sim.study.metrics import own_figures
from sim.study.outcome import VariantOutcome
from sim.study.trial import model
from sim.study.validity import Change, Outside, Validity

SIZE_MAX: Final = 1_500_000  # bytes of a page
MEANS: Final = "means of all runs, and what a what-if changes seed by seed"
PAIRED: Final = "means ± half of their 90 % interval, changes seed by seed"
FOLDED: Final = 3  # what-ifs; of more, what is told of each is folded
KINDS_OPEN: Final = 2  # kinds of transactions that are shown at once, those with most time
_NOTHING_KNOWN: Final = (
    "nothing was fitted and nothing recorded: the figures rest on the sources of the values alone"
)
_SECTIONS: Final = (
    ("levels", "Service levels"),
    ("figures", "Before and after"),
    ("lines", "Over time"),
    ("time", "Where the time goes"),
    ("parameters", "What was put in"),
    ("validity", "What the answer rests on"),
    ("reproduce", "How to do it again"),
)


class TooLargeError(ValueError):
    """A page that would be longer than a page may be."""

    def __init__(self, size: int, variants: int) -> None:
        super().__init__(
            f"the page of {variants} variants would have {size / 1e6:.1f} MB, at most"
            f" {SIZE_MAX / 1e6:.1f}: name fewer what-ifs"
        )


@dataclass(frozen=True, kw_only=True)
class Head:
    """What a page says of how it was made: the command as typed, and the figures to tell of."""

    command: str
    figures: tuple[str, ...]


def report_html(findings: Findings, head: Head) -> str:
    """Return the page; raise TooLargeError."""
    study = findings.study
    base = study.variants[0]
    rows = charts(study)
    scenario = base.scenario
    body = [
        element("a", "To the answer", href="#answer", class_="skip"),
        element(
            "header",
            element("p", f"iotwin report: {scenario.name}", class_="faint"),
            element("h1", scenario.title),
        ),
        element(
            "main",
            _question(findings),
            _answer(findings, head),
            element(
                "nav",
                items(element("a", title, href=f"#{name}") for name, title in _SECTIONS),
                aria_label="Parts of this report",
            ),
            _levels(findings),
            _figures(findings, head),
            _lines(rows),
            _time(findings),
            _parameters(scenario),
            _validity(findings),
            _reproduce(findings, head),
        ),
        element(
            "footer",
            element("p", "Figures are those of a simulation, a discrete-event twin of the server."),
        ),
    ]
    page = document(
        f"{scenario.name}: {scenario.title}",
        body,
        style=_static("uPlot.min.css") + _static("report.css"),
        scripts=[_licensed(_static("uPlot.iife.min.js")), _static("report.js")],
        data={"charts": [chart_json(one) for one in chain.from_iterable(row for _, row in rows)]},
    )
    size = len(page.encode())
    if size > SIZE_MAX:
        raise TooLargeError(size, len(study.variants))
    return page


def _static(name: str) -> str:
    return files("sim.report").joinpath("static", name).read_text(encoding="utf-8")


def _licensed(code: str) -> str:
    """Return uPlot with its licence, which goes with every copy."""
    return f"/*\n{_static('uPlot.LICENSE')}*/\n{code}"


# -- The first screen


def _question(findings: Findings) -> Element:
    base, *others = findings.study.variants
    asked = [element("p", text) for text in _paragraphs(base.scenario.doc)]
    for outcome in others:
        what_if = outcome.scenario.what_if
        doc = what_if.doc if what_if is not None else ""
        asked.append(
            element("p", element("strong", f"{outcome.title}. "), " ".join(doc.split()))
            if len(others) == 1
            else element("p", element("code", outcome.name), f": {outcome.title}")
        )
    if len(others) > 1:
        asked = [*asked[: -len(others)], folded(f"{len(others)} what-ifs", *asked[-len(others) :])]
    return section("question", "Question", *asked)


def _answer(findings: Findings, head: Head) -> Element:
    study = findings.study
    sentences = answer(study, head.figures) or ["The scenario measures no figure."]
    tables = [
        html_table(answer_table(study, name), f"{name}: {MEANS}")
        for name in head.figures
        if len(study.variants) > 2
    ]
    return section(
        "answer",
        "Answer",
        *(element("p", text, class_="mind") for text in _cautions(findings)),
        *(element("p", text, class_="lead") for text in sentences),
        *tables,
        _reasons(findings),
        element(
            "p",
            element("a", _standing(findings), href="#validity"),
            class_="faint",
        ),
    )


def _cautions(findings: Findings) -> list[str]:
    """Return what a reader must know before the answer."""
    study = findings.study
    found = [] if findings.unfinished is None else [findings.unfinished.message]
    for outcome in study.variants:
        found += [f"{outcome.name}: {outcome.seen.until}"] if outcome.seen.until else []
        steady = Counter(bool(run.seen.unsteady) for run in outcome.replications)
        if steady[True]:
            of = replications_text(len(outcome.replications))
            found.append(f"{outcome.name}: no steady state in {steady[True]} of {of}")
        outside = findings.validity[outcome.name].outside
        if outside:
            found.append(f"{outcome.name}: outside what was thought possible: {_paths(outside)}")
    return found


def _reasons(findings: Findings) -> Element | None:
    """Return of each variant what its time goes into, and what is nearest to its limit."""
    told = [
        f"{name}: {explain_text.reason(found)}; {explain_text.resource_verdict(found)}"
        for name, found in findings.explained.items()
        if isinstance(found, Explanation) and found.resources
    ]
    if not told:
        return None
    if len(told) > FOLDED + 1:
        return folded("Where the time goes, and what is busy", items(told))
    return items(told)


def _standing(findings: Findings) -> str:
    """Return in one line what the answer rests on."""
    variants = findings.study.variants
    parameters = variants[0].scenario.parameters
    assumed = sum(one.origin is Origin.ASSUMED for one in parameters)
    known = ", ".join(f"{one.name}: {one.kind}" for one in variants if one.kind is not None)
    known = known or "nothing fitted, nothing recorded"
    share = 100 * assumed / len(parameters) if parameters else 0.0
    return f"{known}; {assumed} of {len(parameters)} values ({share:.0f} %) are assumed"


def _paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]


# -- Levels and figures


def _levels(findings: Findings) -> Element:
    variants = findings.study.variants
    if not any(one.levels for one in variants):
        told = "None is asked for: neither the scenario's [slo] nor --slo names one."
        return section("levels", "Service levels", element("p", told))
    table = html_table(levels_table(variants), "What was asked, what was seen, the verdict")
    for cell in table.iter("td"):
        word = (cell.text or "").partition(",")[0]
        if word in _VERDICTS:
            cell.set("class", _VERDICTS[word])
    return section("levels", "Service levels", table)


_VERDICTS: Final = {
    MET: "met",
    "missed": "missed",
    "no data": "missed",
    UNDECIDED: "undecided",
}


def _figures(findings: Findings, head: Head) -> Element:
    study = findings.study
    base, *others = study.variants
    content: list[Content] = []
    for outcome in others:
        whole = compare_table(study, outcome)
        names = _telling(base, outcome, head)
        content += _part(
            findings,
            outcome,
            _what_changes(findings.validity[outcome.name]),
            html_table(_rows(whole, names), f"{outcome.name} beside the base: {PAIRED}"),
            element("p", " ".join(changes_text(outcome).split()), class_="faint"),
            folded("All figures", html_table(whole, f"All figures of base and {outcome.name}")),
        )
    for outcome in study.variants:
        if not others or outcome.recorded:
            content.append(_beside_recorded(outcome, is_only=not others))
    content.append(folded("What these figures are", text_block(notes(study.variants), "Notes")))
    return section("figures", "Before and after", *content)


def _part(findings: Findings, outcome: VariantOutcome, *content: Content) -> list[Element]:
    """Return what is told of one variant under its heading; folded where what-ifs are many."""
    what_if = outcome.scenario.what_if
    title = f"{outcome.name}: {outcome.title}" if what_if else "base: as it is"
    if what_if and len(findings.study.variants) > FOLDED + 1:
        return [folded(title, *content)]
    return [element("h3", title), element("div", *content)]


def _beside_recorded(outcome: VariantOutcome, *, is_only: bool) -> Element:
    """Return the figures beside what was recorded, if anything was; of a variant alone all."""
    whole = run_table(outcome)
    if not outcome.recorded:
        return html_table(whole, f"{outcome.name}: nothing was recorded")
    table = whole if is_only else _rows(whole, list(recorded_figures(outcome)))
    recorded = "; ".join(f"{one.data_set}, {one.title}" for one in outcome.recorded)
    return element(
        "div",
        element("h3", f"{outcome.name} beside what was recorded"),
        html_table(table, f"Recorded: {recorded}"),
    )


def _what_changes(validity: Validity) -> Element:
    columns = (Column("changes"), Column("from", is_number=True), Column("to", is_number=True))
    rows = tuple((one.path, one.before, one.after) for one in validity.changes)
    if not rows:
        return element("p", "It changes no value.", class_="faint")
    table = html_table(Table(columns, rows), "What it changes")
    return table if len(rows) < 12 else folded(f"It changes {len(rows)} values", table)


def _telling(base: VariantOutcome, outcome: VariantOutcome, head: Head) -> list[str]:
    """Return the figures that are asked for, judged, recorded, or the programs' own."""
    names = [one.name for one in own_figures(base.scenario.measure)]
    names += [*head.figures, *recorded_figures(base), *recorded_figures(outcome)]
    return names + [judged.level.figure for one in (base, outcome) for judged in one.levels]


def _rows(table: Table, names: Sequence[str]) -> Table:
    return Table(table.columns, tuple(row for row in table.rows if row[0] in names))


# -- Over time


def _lines(rows: Sequence[tuple[str, Sequence[Chart]]]) -> Element:
    shown = [(title, row) for title, row in rows if row]
    if not shown:
        told = "The scenario measures nothing that is drawn over time."
        return section("lines", "Over time", element("p", told))
    content: list[Content] = [
        element(
            "p",
            "The first run of each variant. Recorded figures are dashed; dotted lines are the ends"
            " of the part that was measured.",
            class_="faint",
        ),
        element(
            "p",
            "Move over a chart, or use the arrow keys in it, to see the values of a moment; drag to"
            " enlarge a part, Escape shows all.",
            class_="faint screen",
        ),
    ]
    for title, row in shown:
        figures = [_chart(one) for one in row]
        content += [element("h3", title), element("div", *figures, class_="row")]
    return section("lines", "Over time", *content)


def _chart(chart: Chart) -> Element:
    keys = [(f"line{at}", line.name) for at, line in enumerate(chart.shown.lines)]
    keys += [("span", chart.shown.span_name)] if chart.shown.spans else []
    caption = element(
        "figcaption",
        *(
            element("span", element("span", class_=f"colour {kind}"), name, class_="key")
            for kind, name in keys
        ),
        element("span", in_words(chart.shown), class_="words"),
    )
    return element(
        "figure",
        element("h4", chart.variant),
        element("div", chart_svg(chart), class_="plot"),
        caption,
        class_="chart",
    )


# -- Where the time goes


def _time(findings: Findings) -> Element:
    content: list[Content] = [
        element(
            "p",
            "One run of each variant, its transactions followed: a row says what a transaction"
            " waited for, a column what that was underneath.",
            class_="faint",
        )
    ]
    for outcome in findings.study.variants:
        found = findings.explained.get(outcome.name, "not explained")
        told = element("p", found) if isinstance(found, str) else _explained(outcome.name, found)
        content += _part(findings, outcome, told)
    return section("time", "Where the time goes", *content)


def _explained(name: str, found: Explanation) -> Element:
    """Return the kinds of transactions, those with most time first, and what was busy."""
    kinds = sorted(found.kinds, key=lambda kind: -kind.count * kind.mean_ms)
    tables = [list(_kind(found, kind)) for kind in kinds]
    rest = list(chain.from_iterable(tables[KINDS_OPEN:]))
    return element(
        "div",
        *chain.from_iterable(tables[:KINDS_OPEN]),
        folded(f"{len(kinds) - KINDS_OPEN} more kinds", *rest) if rest else None,
        text_block(explain_text.resource_text(found), f"{name}: busy"),
        text_block(explain_text.load_text(found), f"{name}: load average"),
    )


def _kind(found: Explanation, kind: Kind) -> Iterable[Element]:
    yield html_table(explain_text.kind_table(kind), explain_text.kind_heading(kind))
    yield text_block(explain_text.ways(found, kind), f"{kind.name}: the longest ways")


# -- What was put in, and what that is worth


def _parameters(scenario: Scenario) -> Element:
    assumed = [one for one in scenario.parameters if one.origin is Origin.ASSUMED]
    others = [one for one in scenario.parameters if one.origin is not Origin.ASSUMED]
    number = len(scenario.parameters)
    share = 100 * len(assumed) / number if number else 0.0
    return section(
        "parameters",
        "What was put in",
        element(
            "p", element("strong", f"{share:.0f} % of {number} values are assumed"), ", as it is."
        ),
        element("p", share_line(scenario)),
        folded(
            f"The {len(assumed)} values that are assumed",
            html_table(parameters_table(assumed), "Assumed values"),
        ),
        folded(
            f"The {len(others)} others, with their sources",
            html_table(parameters_table(others), "Values with a source"),
        ),
    )


def _validity(findings: Findings) -> Element:
    content: list[Content] = []
    for outcome in findings.study.variants:
        lines = items(_valid(outcome, findings.validity[outcome.name]))
        content += _part(findings, outcome, lines)
    content.append(element("h3", "Parameters that the recording did not identify"))
    content.append(element("p", _unidentified(findings)))
    omitted = list(
        dict.fromkeys(chain.from_iterable(o.scenario.omissions for o in findings.study.variants))
    )
    content.append(element("h3", "What the twin leaves out, and a figure would show"))
    content.append(items(omitted) if omitted else element("p", "Nothing that is known."))
    return section("validity", "What the answer rests on", *content)


def _valid(outcome: VariantOutcome, validity: Validity) -> list[str]:
    kinds = KIND_NOTES if outcome.recorded else FITTED_NOTES
    lines = [_NOTHING_KNOWN if outcome.kind is None else kinds[outcome.kind]]
    if not validity.priors:
        lines.append("the scenario has no [calibrate]: it has no priors to lie outside of")
    elif validity.outside:
        lines += [
            f"outside its prior: {one.path} = {one.value} ({one.bounds} {one.low} .. {one.high})"
            for one in validity.outside
        ]
    else:
        lines.append(f"inside the priors of all {validity.priors} parameters that have one")
    if validity.unfitted:
        lines.append(
            f"it changes {len(validity.unfitted)} values that are no fitted parameters, so that the"
            f" model alone says what follows: {_paths(validity.unfitted)}"
        )
    return lines


def _unidentified(findings: Findings) -> str:
    fit = findings.fit or findings.shipped
    if fit is None:
        return "No fit comes with the scenario, and --fit names none: nothing is known of it."
    which = "--fit" if findings.fit is not None else "the fit that comes with the scenario"
    of = f"{len(fit.unidentified)} of {len(fit.parameters)}, as {which} ({fit.file}) says"
    if not fit.unidentified:
        return f"{of}."
    named = ", ".join(fit.unidentified)
    return f"{of}: {named}. Of these the recording says little more than was believed before."


def _paths(found: Iterable[Change | Outside]) -> str:
    return ", ".join(one.path for one in found)


# -- How to do it again


def _reproduce(findings: Findings, head: Head) -> Element:
    study = findings.study
    base = study.variants[0]
    facts = (
        ("version", f"iotwin {study.version}"),
        ("model", f"{model()} (hash of the sources that simulate and measure)"),
        ("seeds", _seeds(base)),
    )
    rows = tuple(
        (outcome.name, str(run.seed), run.digest[:16])
        for outcome in study.variants
        for run in outcome.replications
    )
    columns = (Column("variant"), Column("seed", is_number=True), Column("digest"))
    return section(
        "reproduce",
        "How to do it again",
        text_block(f"$ {head.command}\n", "The command"),
        items(f"{name}: {value}" for name, value in facts),
        element("p", "One run of each variant alone:"),
        text_block("".join(f"$ {one}\n" for one in findings.commands.values()), "Single runs"),
        folded(
            f"The {len(rows)} runs: the same digest means the same run, byte for byte",
            html_table(Table(columns, rows), "Runs"),
        ),
    )


def _seeds(outcome: VariantOutcome) -> str:
    first, last = outcome.replications[0].seed, outcome.replications[-1].seed
    runs = replications_text(len(outcome.replications))
    return f"{first} ({runs})" if first == last else f"{first} to {last} ({runs} of each variant)"
