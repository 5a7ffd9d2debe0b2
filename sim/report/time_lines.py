"""A run over time as numbers: load average, CPU states, disk, mail, with what was recorded.

Models: the columns that an administrator would take from iostat and uptime to draw a graph.
Linux counterpart: none.
Invariants: made of the readings of a variant's first replication. A value that holds between two
 readings is there twice, at the beginning and at the end of that time, so that a straight line from
 point to point is the step that it means.
Left out: drawing (sim.report.plot, sim.report.html_charts).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from sim.observation import Observation
from sim.report.study_tables import recorded_figures
from sim.study.outcome import Study, VariantOutcome
from sim.tools.parse import parse_loadavg
from sim.units import NS_PER_S
from sim.user.smtp.figures import refused_spans


@dataclass(frozen=True)
class Line:
    """Values at the times of a panel; `is_second`: on the second scale."""

    name: str
    unit: str
    values: tuple[float, ...]
    is_second: bool = False


@dataclass(frozen=True)
class Mark:
    """A recorded figure: its words, and the height at which it lies."""

    words: str
    height: float
    is_second: bool = False


@dataclass(frozen=True, kw_only=True)
class Lines:
    """What one panel shows of one variant, times in seconds.

    `spans` are times in which something was the case that `span_name` names; `top` is the height of
    the scale, None for one that follows the values; `is_stacked`: values add up.
    """

    times_s: tuple[float, ...]
    lines: tuple[Line, ...]
    marks: tuple[Mark, ...] = ()
    spans: tuple[tuple[float, float], ...] = ()
    span_name: str = ""
    top: float | None = None
    is_stacked: bool = False


@dataclass(frozen=True)
class Panel:
    """One kind of graph: which family of figures it belongs to, its title, what it shows."""

    family: str
    title: str
    lines: Callable[[VariantOutcome, Observation], Lines]


def panels_of(study: Study) -> list[Panel]:
    """Return the panels of what a study measures."""
    families = study.variants[0].scenario.measure.families
    return [panel for panel in PANELS if panel.family in families]


def load_lines(outcome: VariantOutcome, seen: Observation) -> Lines:
    """Return the load average of each reading."""
    samples = seen.result.samples
    loads = tuple(parse_loadavg(sample.text("loadavg")).load1 for sample in samples)
    return Lines(
        times_s=tuple(sample.t_ns / NS_PER_S for sample in samples),
        lines=(Line("load average", "tasks", loads),),
        marks=_marks(outcome, "load1_peak", "peak"),
    )


def cpu_lines(outcome: VariantOutcome, seen: Observation) -> Lines:
    """Return how all CPUs' time is shared; what lacks to 100 % is idle."""
    lines = tuple(
        Line(state, "%", _doubled([getattr(report.cpu, f"{state}_pct") for report in seen.reports]))
        for state in ("user", "system", "iowait")
    )
    idle = recorded_figures(outcome).get("cpu_idle_pct_min")
    marks: tuple[Mark, ...] = ()
    if idle is not None and idle.value is not None:
        marks = (Mark(f"recorded lowest idle, %: {idle.text}", 100 - idle.value),)
    return Lines(times_s=_steps(seen), lines=lines, marks=marks, top=100, is_stacked=True)


def disk_lines(outcome: VariantOutcome, seen: Observation) -> Lines:
    """Return how busy the first measured device was, and how long a request took."""
    name = outcome.scenario.measure.devices[0]
    rows = [next((d for d in report.devices if d.name == name), None) for report in seen.reports]
    busy = _doubled([row.util_pct if row else 0.0 for row in rows])
    await_ms = _doubled([row.await_ms if row else 0.0 for row in rows])
    return Lines(
        times_s=_steps(seen),
        lines=(
            Line(f"{name} %util", "%", busy),
            Line("await", "ms", await_ms, is_second=True),
        ),
        marks=_marks(outcome, f"disk.{name}.await_ms", "await, ms:", is_second=True),
        top=105,
    )


def mail_lines(outcome: VariantOutcome, seen: Observation) -> Lines:
    """Return the messages accepted a second, and when the port refused connections."""
    accepted = [record.t_ns for record in seen.result.marks("message_accepted")]
    rates = [
        sum(prev.t_ns < t_ns <= cur.t_ns for t_ns in accepted) * NS_PER_S / (cur.t_ns - prev.t_ns)
        for prev, cur in pairwise(seen.result.samples)
    ]
    spans = tuple((low / NS_PER_S, high / NS_PER_S) for low, high in refused_spans(seen.result))
    return Lines(
        times_s=_steps(seen),
        lines=(Line("accepted", "/s", _doubled(rates)),),
        marks=_marks(outcome, "throughput_per_s", "mean"),
        spans=spans,
        span_name="port refused",
    )


def _marks(
    outcome: VariantOutcome, name: str, word: str, *, is_second: bool = False
) -> tuple[Mark, ...]:
    """Return the mark of a recorded figure, at its value."""
    figure = recorded_figures(outcome).get(name)
    if figure is None or figure.value is None:
        return ()
    return (Mark(f"recorded {word} {figure.text}", figure.value, is_second),)


def _steps(seen: Observation) -> tuple[float, ...]:
    """Return begin and end of each report in seconds."""
    samples = seen.result.samples
    return tuple(
        t_ns / NS_PER_S for prev, cur in pairwise(samples) for t_ns in (prev.t_ns, cur.t_ns)
    )


def _doubled(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(value for value in values for _end in range(2))


PANELS: Final = (
    Panel("load", "load average, 1 minute", load_lines),
    Panel("cpu", "CPU, % of all", cpu_lines),
    Panel("disk", "disk: busy and await", disk_lines),
    Panel("storm", "messages accepted per second; port", mail_lines),
)
