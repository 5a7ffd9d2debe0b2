"""Time lines as SVG, for print and for readers without scripts, and as data for uPlot.

Models: the graphs of a report: a panel a row, its variants beside each other.
Linux counterpart: none. uPlot (static/uPlot.LICENSE) draws the same data on screen, where a reader
 can look at a moment and enlarge a part.
Invariants: all variants share the axes of a panel, so that heights and lengths can be compared by
 eye; what was recorded is dashed, the ends of the measured part are dotted. A chart comes with its
 least and greatest values in words. Nothing has a style of its own: colours are classes, so that
 dark, light and print can each have theirs, and the page's policy holds.
Left out: all points of a long run. A line has so many that the page stays small: of those that fall
 together the least and the greatest are kept, of lines that are stacked the mean.

By hand: 32,000 points on a page, each some 12 bytes of SVG and 12 of JSON: 0.8 MB.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Final

from sim.observation import Observation
from sim.report.html_page import Element, element
from sim.report.tables import figure
from sim.report.time_lines import Line, Lines, panels_of
from sim.study.outcome import Study
from sim.units import NS_PER_S

POINTS: Final = 32_000  # of all lines of a page
POINTS_LINE: Final = 1000  # of one line, more than a screen has columns
WIDTH, HEIGHT = 480, 200
LEFT, RIGHT, TOP, BOTTOM = 44, 44, 14, 26  # of the axes' labels, in the same units
_ROOM: Final = 1.15  # above the highest value
_TICKS: Final = 5


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A panel of one variant on the axes that its variants share; `tops` of both scales."""

    panel: str
    variant: str
    shown: Lines
    last_s: float
    tops: tuple[float, float]
    measured_s: tuple[float, float]

    @property
    def title(self) -> str:
        """What is drawn, of which variant."""
        return f"{self.panel}: {self.variant}"

    def x(self, t_s: float) -> float:
        """Return where a moment lies."""
        return LEFT + (WIDTH - LEFT - RIGHT) * t_s / (self.last_s or 1)

    def y(self, value: float, *, is_second: bool = False) -> float:
        """Return how far from the top a value lies; what is above the scale lies on its top."""
        share = min(value / self.tops[is_second], 1.0)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    @property
    def has_second(self) -> bool:
        """Whether a line is drawn on the second scale."""
        return any(line.is_second for line in self.shown.lines)


def charts(study: Study) -> list[tuple[str, list[Chart]]]:
    """Return the title of each panel, and its chart for each variant whose readings are there."""
    variants = [one for one in study.variants if one.replications[0].result is not None]
    looked = [(one, one.observation()) for one in variants]
    last_s = max((seen.result.samples[-1].t_ns for _one, seen in looked), default=1) / NS_PER_S
    found = [
        (panel, [panel.lines(outcome, seen) for outcome, seen in looked])
        for panel in panels_of(study)
    ]
    number = sum(len(lines.lines) for _panel, row in found for lines in row)
    most = min(POINTS_LINE, POINTS // max(number, 1))
    rows = []
    for panel, row in found:
        tops = (_top(row, is_second=False), _top(row, is_second=True))
        rows.append(
            (
                panel.title,
                [
                    Chart(
                        panel=panel.title,
                        variant=outcome.name,
                        shown=thinned(lines, most),
                        last_s=last_s,
                        tops=tops,
                        measured_s=_measured(seen),
                    )
                    for (outcome, seen), lines in zip(looked, row, strict=True)
                ],
            )
        )
    return rows


def _measured(seen: Observation) -> tuple[float, float]:
    return seen.begin_ns / NS_PER_S, seen.end_ns / NS_PER_S


def _top(row: Sequence[Lines], *, is_second: bool) -> float:
    """Return the top of a scale that all variants share."""
    fixed = [lines.top for lines in row if lines.top is not None]
    if fixed and not is_second:
        return max(fixed)
    values = [
        value
        for lines in row
        for line in lines.lines
        if line.is_second == is_second
        for value in line.values
    ]
    marks = [mark.height for lines in row for mark in lines.marks if mark.is_second == is_second]
    return _ROOM * max([1.0, *values, *marks])


def thinned(shown: Lines, most: int) -> Lines:
    """Return lines of `most` points at the most, and their highest and lowest ones among them."""
    number = len(shown.times_s)
    if number <= most:
        return shown
    size = -(-number // max(most // 2, 1))
    parts = [slice(at, min(at + size, number)) for at in range(0, number, size)]
    times = [t for part in parts for t in (shown.times_s[part][0], shown.times_s[part][-1])]

    def kept(line: Line) -> Line:
        inside = [line.values[part] for part in parts]
        pairs = [(fmean(one),) * 2 if shown.is_stacked else _extremes(one) for one in inside]
        return replace(line, values=tuple(value for pair in pairs for value in pair))

    return replace(shown, times_s=tuple(times), lines=tuple(map(kept, shown.lines)))


def _extremes(values: Sequence[float]) -> tuple[float, float]:
    """Return the least and the greatest in the order in which they came."""
    low, high = min(values), max(values)
    return (low, high) if values.index(low) <= values.index(high) else (high, low)


# -- In words


def in_words(shown: Lines) -> str:
    """Return the least, mean and greatest of each line."""
    parts = [
        f"{line.name} {figure(min(line.values), line.unit)} to"
        f" {figure(max(line.values), line.unit)} {line.unit}".rstrip()
        for line in shown.lines
        if line.values
    ]
    parts += [mark.words for mark in shown.marks]
    if shown.spans:
        whole = sum(high - low for low, high in shown.spans)
        parts.append(f"{shown.span_name} for {figure(whole)} s")
    return "; ".join(parts)


# -- As data


def chart_json(chart: Chart) -> dict[str, Any]:
    """Return what the page's script draws."""
    shown = chart.shown
    return {
        "title": chart.title,
        "last": _short(chart.last_s),
        "tops": [_short(top) for top in chart.tops],
        "times": [round(t, 3) for t in shown.times_s],
        "stacked": shown.is_stacked,
        "lines": [
            {
                "name": line.name,
                "unit": line.unit,
                "second": line.is_second,
                "values": [_short(value) for value in line.values],
            }
            for line in shown.lines
        ],
        "marks": [
            {"words": one.words, "height": one.height, "second": one.is_second}
            for one in shown.marks
        ],
        "spans": [[round(low, 3), round(high, 3)] for low, high in shown.spans],
        "measured": [round(t, 3) for t in chart.measured_s],
    }


def _short(value: float) -> float:
    return float(f"{value:.4g}")


# -- As SVG


def chart_svg(chart: Chart) -> Element:
    """Return a chart as it is printed, and as who has no scripts sees it."""
    shown = chart.shown
    return element(
        "svg",
        element("title", f"{chart.title}: {in_words(shown)}"),
        *_axes(chart),
        *(_span(chart, low, high) for low, high in shown.spans),
        *_lines(chart),
        *(_vertical(chart.x(t_s), "measured") for t_s in chart.measured_s),
        *_marks(chart),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
    )


def _axes(chart: Chart) -> Iterator[Element]:
    for value in ticks(chart.tops[0]):
        yield _horizontal(chart.y(value), "grid")
        yield _text(figure_short(value), LEFT - 5, chart.y(value) + 3.5, "end")
    if chart.has_second:
        for value in ticks(chart.tops[1]):
            height = chart.y(value, is_second=True) + 3.5
            yield _text(figure_short(value), WIDTH - RIGHT + 5, height, "start")
    for t_s in ticks(chart.last_s):
        yield _text(f"{figure_short(t_s)} s", chart.x(t_s), HEIGHT - BOTTOM + 14, "middle")


def ticks(top: float) -> list[float]:
    """Return round values from 0 to the top: steps of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(top / _TICKS))
    step = power * next(one for one in (1, 2, 5, 10) if one * power * _TICKS >= top * 0.999)
    return [step * number for number in range(math.floor(top / step + 1e-9) + 1)]


def figure_short(value: float) -> str:
    """Return the text of a tick."""
    return f"{value:.6g}"


def _lines(chart: Chart) -> Iterator[Element]:
    times = chart.shown.times_s
    below = [0.0] * len(times)
    for number, line in enumerate(chart.shown.lines):
        values = line.values
        if chart.shown.is_stacked:
            values = tuple(low + value for low, value in zip(below, values, strict=True))
        there = [
            f"{_at(chart.x(t_s))},{_at(chart.y(value, is_second=line.is_second))}"
            for t_s, value in zip(times, values, strict=True)
        ]
        if chart.shown.is_stacked:
            back = [
                f"{_at(chart.x(t_s))},{_at(chart.y(value))}"
                for t_s, value in zip(reversed(times), reversed(below), strict=True)
            ]
            yield element("polygon", points=" ".join([*there, *back]), class_=f"area line{number}")
            below = list(values)
        else:
            yield element("polyline", points=" ".join(there), class_=f"line{number}")


def _marks(chart: Chart) -> Iterator[Element]:
    for mark in chart.shown.marks:
        height = chart.y(mark.height, is_second=mark.is_second)
        yield _horizontal(height, "recorded")
        yield _text(mark.words, WIDTH - RIGHT - 3, height - 3, "end")


def _span(chart: Chart, low_s: float, high_s: float) -> Element:
    return element(
        "rect",
        x=_at(chart.x(low_s)),
        y=str(TOP),
        width=_at(max(chart.x(high_s) - chart.x(low_s), 0.5)),
        height=str(HEIGHT - TOP - BOTTOM),
        class_="span",
    )


def _horizontal(y: float, kind: str) -> Element:
    return element("line", x1=str(LEFT), x2=str(WIDTH - RIGHT), y1=_at(y), y2=_at(y), class_=kind)


def _vertical(x: float, kind: str) -> Element:
    return element("line", x1=_at(x), x2=_at(x), y1=str(TOP), y2=str(HEIGHT - BOTTOM), class_=kind)


def _text(text: str, x: float, y: float, anchor: str) -> Element:
    return element("text", text, x=_at(x), y=_at(y), text_anchor=anchor)


def _at(place: float) -> str:
    return f"{place:.1f}".removesuffix(".0")
