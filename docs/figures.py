"""Figures in running sentences: found between markers, written from what is stored.

Models: a footnote behind every number.
Invariants: a figure depends on stored runs, recordings, fits and the code, and on nothing else; no
 simulation is needed to write one. The markers cannot be seen on the page. A figure that cannot be
 made is one FigureError with its place. What stands outside the markers is never changed.
Left out: numbers that follow from no run and no recording: those of data sheets, of a derivation by
 hand, of the question itself.

    <!-- figure: recorded sendmail.before load1_peak -->37<!-- end -->

What a marker may say of where its figure comes from:

    recorded CASE.SET METRIC        a case's recording, in the words or digits of the recorder
    simulated TABLE[:VARIANT] METRIC [low|high]
                                    a table of docs/tables.toml: the median of its runs, or the
                                    ends of what the table shows as their range or interval
    withheld FIGURE [low|high]      the prediction of a withheld figure
    fitted FIT PARAMETER [low|high]
    prior FIT PARAMETER low|high    what was believed of the parameter before
    params SCENARIO [ORIGIN]        how many values a scenario has; per cent of them of one origin
    validation WHAT [median|worst]  runs, families, misses; errors in per cent: throughput, await
    measured RUN FIGURE low|high    of the repeats of a recorded run of the validation
    required throughput|await       the error in per cent that is still of use

    given SCENARIO[:WHAT_IF] PARAMETER
                                    the value of a parameter, as `iotwin params` shows it

`A / B` divides one by the other. Then: factor=F multiplies; digits=N leaves so many.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Final

from calibration.validate.limits import WITHIN
from calibration.validate.page import errors_of, families, misses
from docs.blocks import placed_blocks
from docs.declared import BASE, TOP, Block, Table
from docs.pages import Page
from docs.reference import WITHHELD, content_of_fit, stored_validation
from docs.render import MissingRun, Shown, samples_of
from docs.runs import Store
from sim.origin import Origin
from sim.registry import did_you_mean
from sim.report.params_text import counts
from sim.report.tables import figure as figure_text
from sim.scenario import Parameter, ScenarioError, UnknownScenario, load
from sim.scenario.cases import DATASET, HOME
from sim.scenario.spec import RecordedSpec
from sim.study.recorded import DatasetError, load_figures
from sim.units import format_quantity

_MARKER: Final = re.compile(r"<!-- figure: ([^<>\n]+?) -->([^<>\n]*)<!-- end -->")
_BEGIN: Final = "<!-- figure:"
_OVER: Final = "/"
_OPTIONS: Final = ("factor", "digits")
_NAMED: Final = 12  # of known names, in a complaint
_ENDS: Final = ("low", "high")
MAKE: Final = "figures"  # the name by which `python -m docs make` writes them


class FigureError(ValueError):
    """A marker of a figure that says nothing that is known, or stands where it cannot."""


@dataclass(frozen=True, kw_only=True)
class PlacedFigure:
    """A figure of a page: what its marker says, where it stands, what stands there."""

    line: int
    says: str
    text: str
    first: int  # of the text, in the page
    end: int


@dataclass(frozen=True, kw_only=True)
class Value:
    """A figure as its source writes it, and as a number if it is one."""

    text: str
    number: float | None = None
    unit: str = ""  # that a text brings along, as a fit's "342 ms"


def placed_figures(page: Page) -> list[PlacedFigure]:
    """Return the figures of a page; raise FigureError for a marker that cannot stand there."""
    found = [
        PlacedFigure(
            line=page.text.count("\n", 0, match.start()) + 1,
            says=match[1],
            text=match[2],
            first=match.start(2),
            end=match.end(2),
        )
        for match in _MARKER.finditer(page.text)
    ]
    for number, line in enumerate(page.text.split("\n"), start=1):
        if line.count(_BEGIN) != sum(one.line == number for one in found):
            raise FigureError(
                f"{page.name}:{number}: a figure is '{_BEGIN} ... -->TEXT<!-- end -->' on one line"
            )
    blocks = placed_blocks(page.text, page.name)
    for one in found:
        if any(block.first < one.line <= block.end for block in blocks):
            raise FigureError(f"{page.name}:{one.line}: a figure within a generated block")
    for place, what in _not_seen_through(page):
        raise FigureError(f"{page.name}:{place}: {what}")
    return found


def _not_seen_through(page: Page) -> Iterator[tuple[int, str]]:
    """Yield the markers that a reader would see, or that hide what stands behind them."""
    for line, _info, content in page.fences():
        if _BEGIN in content:
            yield line, "a figure in a block of code, where its marker is seen"
    for token in page.tokens:
        if token.type == "html_block" and _BEGIN in token.content:
            line = token.map[0] + 1 if token.map else 0
            yield line, "a figure at the beginning of a line, which Markdown takes for HTML"


def with_figures(page: Page, text_of: Callable[[str], str]) -> str:
    """Return the page's text with every figure written anew; raise FigureError."""
    text = page.text
    for one in reversed(placed_figures(page)):
        text = text[: one.first] + _told(page, one, text_of) + text[one.end :]
    return text


def stale_figures(pages: Mapping[str, Page], text_of: Callable[[str], str]) -> Iterator[str]:
    """Yield the figures that are not what their data says."""
    for page in pages.values():
        try:
            for one in placed_figures(page):
                wanted = _told(page, one, text_of)
                if wanted != one.text:
                    yield (
                        f"{page.name}:{one.line}: '{one.text}' stands there, and '{one.says}' is"
                        f" '{wanted}'; python -m docs make {MAKE}"
                    )
        except FigureError as error:
            yield str(error)


def _told(page: Page, one: PlacedFigure, text_of: Callable[[str], str]) -> str:
    where = f"{page.name}:{one.line}: figure '{one.says}'"
    try:
        return text_of(one.says)
    except FigureError as error:
        raise FigureError(f"{where}: {error}") from None
    except MissingRun as error:
        raise FigureError(f"{where}: never run: {error}; python -m docs make") from None


# -- From what a marker says to a text.


class Book:
    """Looks figures up in what is declared and stored; each source is read once."""

    def __init__(self, declared: Mapping[str, Block], store: Store) -> None:
        self.declared = declared
        self.store = store
        self._shown: dict[str, Shown] = {}
        self._kinds: Final[Mapping[str, Callable[[list[str]], Value]]] = {
            "recorded": _recorded,
            "simulated": self._simulated,
            "withheld": _withheld,
            "fitted": _fitted,
            "prior": _prior,
            "params": _params,
            "given": _given,
            "validation": _validation,
            "measured": _measured,
            "required": _required,
        }

    def text_of(self, says: str) -> str:
        """Return the text of a figure; raise FigureError, MissingRun."""
        words, options = _options(says)
        sides = _sides(words)
        first, *rest = [self._value(side) for side in sides]
        if rest:
            [second] = rest
            if first.number is None or not second.number:
                raise FigureError("only numbers can be divided, and none by zero")
            first = Value(text="", number=first.number / second.number)
        return _formatted(first, options)

    def _value(self, words: list[str]) -> Value:
        kind, *rest = words
        if kind not in self._kinds:
            raise FigureError(_unknown("kind of figure", kind, self._kinds))
        try:
            return self._kinds[kind](rest)
        except FigureError:
            raise
        except (ScenarioError, UnknownScenario) as error:
            raise FigureError(str(error)) from None
        except ValueError:
            raise FigureError(f"'{' '.join(words)}' is not what docs/figures.py says") from None

    def _simulated(self, words: list[str]) -> Value:
        place, metric, *end = words
        name, _colon, variant = place.partition(":")
        table = self.declared.get(name)
        if not isinstance(table, Table):
            tables = [key for key, one in self.declared.items() if isinstance(one, Table)]
            raise FigureError(_unknown("table in docs/tables.toml", name, tables))
        shown = self._variant(table, variant)
        figures = {one.name: one for one in table.figures}
        if metric not in figures:
            raise FigureError(_unknown(f"figure in table '{name}'", metric, figures))
        summary = shown.summary(figures[metric])
        if summary is None:
            raise FigureError(f"no run of {place} has {metric}")
        number = {"low": summary.lo, "high": summary.hi}[_end(end)] if end else summary.median
        return Value(text=figure_text(number, summary.unit), number=number)

    def _variant(self, table: Table, name: str) -> Shown:
        variants = {one.run.what_if or BASE: one for one in table.variants}
        if not name and len(variants) == 1:
            [name] = variants
        if name not in variants:
            raise FigureError(_unknown(f"variant in table '{table.name}'", name, variants))
        key = f"{table.name}:{name}"
        if key not in self._shown:
            variant = variants[name]
            self._shown[key] = Shown(variant, samples_of(variant, self.store))
        return self._shown[key]


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return (
        f"no {what} '{name}'{did_you_mean(name, names)} (known: {', '.join(names[:_NAMED])}{more})"
    )


def _options(says: str) -> tuple[list[str], dict[str, str]]:
    """Return the words of a marker, and what stands behind them as KEY=VALUE."""
    words = says.split()
    given = [word for word in words if "=" in word]
    options = dict(word.split("=", 1) for word in given)
    for key in options:
        if key not in _OPTIONS:
            raise FigureError(_unknown("option", key, _OPTIONS))
    if not words or words[len(words) - len(given) :] != given:
        raise FigureError("options stand at the end")
    return words[: len(words) - len(given)], options


def _sides(words: list[str]) -> list[list[str]]:
    """Return what stands before and behind a stroke."""
    if _OVER not in words:
        return [words]
    middle = words.index(_OVER)
    sides = [words[:middle], words[middle + 1 :]]
    if not all(sides) or _OVER in sides[1]:
        raise FigureError("a quotient is of two figures: A / B")
    return sides


def _formatted(value: Value, options: Mapping[str, str]) -> str:
    if not options and value.text:
        return value.text
    if value.number is None:
        raise FigureError(f"'{value.text}' is no number, and has no {', '.join(options)}")
    try:
        number = value.number * float(options.get("factor", 1))
        digits = int(options["digits"]) if "digits" in options else None
    except ValueError as error:
        raise FigureError(f"factor and digits are numbers: {error}") from None
    text = figure_text(number) if digits is None else rounded(number, digits)
    return f"{text} {value.unit}".rstrip()


def rounded(number: float, digits: int) -> str:
    """Return a number with so many digits, thousands apart, never in exponential form."""
    if digits < 1:
        raise FigureError(f"digits is one or more, got {digits}")
    # The exponent after rounding: 9.97 has two digits before the point once it is rounded to 10.
    exponent = int(f"{number:.{digits - 1}e}".partition("e")[2])
    decimals = max(0, digits - 1 - exponent)
    return f"{round(number, digits - 1 - exponent):,.{decimals}f}"


def _end(words: Sequence[str]) -> str:
    [end] = words
    if end not in _ENDS:
        raise FigureError(_unknown("end of an interval", end, _ENDS))
    return end


# -- The sources.


def _recorded(words: list[str]) -> Value:
    place, metric = words
    case, _dot, figures = place.partition(".")
    folder = HOME / case.replace("-", "_") / "recording"
    if not (folder / DATASET).is_file():
        known = sorted(path.parents[1].name for path in HOME.glob(f"*/recording/{DATASET}"))
        raise FigureError(_unknown("recorded case", case, known))
    try:
        found = load_figures(RecordedSpec(figures=figures, folder=folder)).figures
    except DatasetError as error:
        raise FigureError(str(error)) from None
    if metric not in found:
        raise FigureError(_unknown(f"figure in {place}", metric, found))
    one = found[metric]
    if one.withheld:
        raise FigureError(f"{metric} is withheld")
    return Value(text=one.text, number=one.value)


def _withheld(words: list[str]) -> Value:
    name, *end = words
    rows = {row["figure"]: row for row in json.loads(WITHHELD.read_text(encoding="utf-8"))}
    if name not in rows:
        raise FigureError(_unknown("withheld figure", name, rows))
    key = {"low": "lo", "high": "hi"}[_end(end)] if end else "median"
    number = float(rows[name][key])
    return Value(text=figure_text(number), number=number)


def _fitted(words: list[str]) -> Value:
    name, path, *end = words
    return _of_fit(name, path, _end(end) if end else "median")


def _prior(words: list[str]) -> Value:
    name, path, *end = words
    return _of_fit(name, path, f"prior_{_end(end)}")


def _of_fit(name: str, path: str, key: str) -> Value:
    try:
        parameters = content_of_fit(name)["parameter"]
    except OSError:
        raise FigureError(f"no fit '{name}' comes along") from None
    if path not in parameters:
        raise FigureError(_unknown(f"parameter in fit {name}", path, parameters))
    text = str(parameters[path][key])
    number, _space, unit = text.partition(" ")
    return Value(text=text, number=float(number), unit=unit)


@cache
def _origins(scenario: str) -> Mapping[str, int]:
    return {origin.key: number for origin, number in counts(load(scenario)).items()}


def _params(words: list[str]) -> Value:
    scenario, *origin = words
    found = _origins(scenario)
    total = sum(found.values())
    if not origin:
        return Value(text=str(total), number=total)
    [one] = origin
    if one not in found:
        raise FigureError(_unknown("origin", one, [known.key for known in Origin]))
    share = 100 * found[one] / total
    return Value(text=f"{share:.0f}", number=share)


@cache
def _parameters(scenario: str, what_if: str) -> Mapping[str, Parameter]:
    return {one.path: one for one in load(scenario, what_if=what_if or None).parameters}


def _given(words: list[str]) -> Value:
    place, path = words
    scenario, _colon, what_if = place.partition(":")
    parameters = _parameters(scenario, what_if)
    if path not in parameters:
        raise FigureError(_unknown(f"parameter of {place}", path, parameters))
    one = parameters[path]
    if one.value is None:
        raise FigureError(f"{place} gives no {path}")
    text = format_quantity(one.value, one.dim)
    number, _space, unit = text.partition(" ")
    return Value(text=text, number=float(number), unit=unit)


def _validation(words: list[str]) -> Value:
    what, *which = words
    data = stored_validation()
    described = [one for members in families(data).values() for one in members]
    numbers = {
        "runs": lambda: len(described),
        "families": lambda: len(families(data)),
        "misses": lambda: len({one.name for one in misses(data)}),
    }
    if what in numbers:
        number = numbers[what]()
        return Value(text=str(number), number=number)
    if what not in WITHIN:
        raise FigureError(_unknown("figure of the validation", what, (*numbers, *WITHIN)))
    [one] = which
    ways: Mapping[str, Callable[[Sequence[float]], float]] = {"median": median, "worst": max}
    if one not in ways:
        raise FigureError(_unknown("figure of errors", one, ways))
    error = 100 * ways[one](errors_of(described, what))
    return Value(text=figure_text(error), number=error)


def _measured(words: list[str]) -> Value:
    name, metric, end = words
    repeats = {one.row.id: one for one in stored_validation() if one.name == name}
    if not repeats:
        raise FigureError(_unknown("recorded run", name, {one.name for one in stored_validation()}))
    results = [one.row.measured["result"] for one in repeats.values() if one.row.measured]
    numbers = [result[metric] for result in results if metric in result]
    if not numbers:
        raise FigureError(f"{name} has no result '{metric}'")
    number = {"low": min, "high": max}[_end([end])](numbers)
    return Value(text=figure_text(number), number=number)


def _required(words: list[str]) -> Value:
    [what] = words
    if what not in WITHIN:
        raise FigureError(_unknown("requirement", what, WITHIN))
    return Value(text=f"{100 * WITHIN[what]:.0f}", number=100 * WITHIN[what])


def write_figures(pages: Mapping[str, Page], book: Book, top: Path = TOP) -> list[str]:
    """Write the figures of all pages; return the names of those that changed."""
    changed = []
    for page in pages.values():
        text = with_figures(page, book.text_of)
        if text != page.text:
            (top / page.name).write_text(text, encoding="utf-8")
            changed.append(page.name)
    return changed
