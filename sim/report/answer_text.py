"""The answer of a study in sentences, each with its interval: what a reader sees first.

Models: the first lines of a letter to somebody who decides, and reads no tables.
Linux counterpart: none.
Invariants: service levels come before figures, since they are what was asked. A sentence has the
 numbers of the tables, and says of what its interval is one. A change that chance explains, or that
 too few runs cannot tell from it, is said to be that.
Left out: which what-if is better. A figure does not say whether more of it is good.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sim.report.levels_table import seen_text
from sim.report.study_tables import INTERVAL, TOO_FEW, recorded_figures, replications_text
from sim.report.tables import Column, Table, figure, signed
from sim.report.what_if_table import NONE
from sim.scenario import Scenario
from sim.study.bounds import response_of
from sim.study.intervals import RUNS_MIN
from sim.study.levels import MISSED, UNDECIDED, Judged
from sim.study.metrics import metrics_of, own_figures
from sim.study.outcome import Study, VariantOutcome
from sim.study.summary import Summary

# Figures that answer "how fast" or "how much": no counts of what was put in.
_RATES: Final = ("/s", "B/s")
_TELLING: Final = ("s", "ms", "us", *_RATES, "%")
# unit of a figure -> larger ones, the largest first
_LARGER: Final[Mapping[str, tuple[tuple[float, str], ...]]] = {
    "B/s": ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")),
    "B": ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")),
}


@dataclass(frozen=True)
class Scale:
    """The unit in which values of a size are told, and how many of the figure's own it is."""

    factor: float
    unit: str

    def told(self, value: float) -> str:
        """Return a value without its unit."""
        return figure(value / self.factor, self.unit)

    def by(self, value: float) -> str:
        """Return a change without its unit."""
        return signed(value / self.factor, self.unit)

    def of(self, value: float) -> str:
        """Return a value with its unit."""
        return _with_unit(self.told(value), self.unit)


def told_figures(scenario: Scenario) -> tuple[str, ...]:
    """Return the figure to tell of if none is asked for: the programs' first time or rate.

    Instead of a rate it is a response time where there is one: the rate of an open stream is what
    comes in, whatever the server does.
    """
    own = own_figures(scenario.measure) or metrics_of(scenario.measure)
    telling = [one for one in own if one.unit in _TELLING]
    first = [*telling, *own][:1]
    response = response_of(scenario.measure)
    return tuple(response if response and one.unit in _RATES else one.name for one in first)


def answer(study: Study, figures: Sequence[str]) -> list[str]:
    """Return the sentences: of the service levels if there are any, then of each figure."""
    base, *others = study.variants
    sentences = []
    if any(one.levels for one in study.variants):
        sentences.append(_levels_sentence(study.variants))
    for name in figures:
        if len(others) == 1:
            sentences.append(_change_sentence(base, others[0], name))
        else:
            sentences.append(_figure_sentence(base, others, name))
    return sentences


def answer_table(study: Study, name: str) -> Table:
    """Return what several what-ifs make of a figure: a row each."""
    base, *others = study.variants
    of_base = base.metrics.get(name)
    sizes = [abs(one.metrics[name].mean) for one in study.variants if name in one.metrics]
    scale = _scale("" if of_base is None else of_base.unit, max(sizes, default=0.0))
    heading = f"{name}, {scale.unit}" if scale.unit else name
    columns = [Column("what-if"), Column("title"), Column(heading, is_number=True)]
    columns += [Column("change", is_number=True), Column(f"its {INTERVAL}", is_number=True)]
    columns += [Column("change %", is_number=True), Column("more than chance")]
    first = (base.name, "as it is", _mean_of(base, name, scale), "", "", "", "")
    rows = (_answer_row(of_base, one, name, scale) for one in others)
    return Table(tuple(columns), (first, *rows))


def _answer_row(
    base: Summary | None, outcome: VariantOutcome, name: str, scale: Scale
) -> tuple[str, ...]:
    change = (outcome.change or {}).get(name)
    head = (outcome.name, outcome.title, _mean_of(outcome, name, scale))
    if change is None or base is None:
        return (*head, NONE, "", "", "")
    found = change.mean_interval
    between = TOO_FEW if found is None else f"{scale.by(found[0])} .. {scale.by(found[1])}"
    beyond = "too few to tell" if found is None else "yes" if name in outcome.named else "no"
    return (*head, scale.by(change.mean), between, _share(change, base), beyond)


def _mean_of(outcome: VariantOutcome, name: str, scale: Scale) -> str:
    return scale.told(outcome.metrics[name].mean) if name in outcome.metrics else NONE


# -- Service levels


def _levels_sentence(variants: Sequence[VariantOutcome]) -> str:
    texts = {one.level.text for outcome in variants for one in outcome.levels}
    if len(texts) == 1:
        told = "; ".join(
            f"{_word(one)} {_subject(outcome)}: {seen_text(one)}"
            for outcome in variants
            for one in outcome.levels
        )
        return f"{texts.pop()} is {told} (in brackets: {INTERVAL})."
    told = "; ".join(f"{_subject(one)} {_judged(one.levels)}" for one in variants)
    return f"{_capital(told)} (in brackets: {INTERVAL})."


def _judged(levels: Sequence[Judged]) -> str:
    """Say of one variant what is missed, else what is undecided, else that all is met."""
    found: Sequence[Judged] = [one for one in levels if one.is_missed]
    found = found or [one for one in levels if one.verdict == UNDECIDED] or levels
    if not found:
        return "no service level is asked for"
    told = ", ".join(f"{one.level.text}: {seen_text(one)}" for one in found)
    return f"{len(found)} of {len(levels)} service levels are {_word(found[0])}, {told}"


def _word(judged: Judged) -> str:
    return MISSED if judged.is_missed else judged.verdict


# -- Figures


def _figure_sentence(outcome: VariantOutcome, others: Sequence[VariantOutcome], name: str) -> str:
    """Say what a figure is as it is, and between which what-ifs it lies."""
    summary = outcome.metrics.get(name)
    if summary is None:
        return f"As it is, no run has the figure {name}."
    known = sorted(
        (one for one in others if name in one.metrics), key=lambda one: one.metrics[name].mean
    )
    scale = _scale(summary.unit, summary.mean)
    recorded = _recorded(outcome, name)
    text = f"As it is, {name} is {scale.of(summary.mean)}{_spread(summary, scale.told, 'the mean')}"
    text += f"; recorded: {recorded}" if recorded else ""
    if known:
        ends = [known[0], known[-1]]
        text += "; " + " and ".join(f"{_of_what_if(one, name)} {_subject(one)}" for one in ends)
        text += f", the least and the greatest of {len(known)} what-ifs"
    return f"{text}."


def _of_what_if(outcome: VariantOutcome, name: str) -> str:
    summary = outcome.metrics[name]
    scale = _scale(summary.unit, summary.mean)
    found = summary.mean_interval
    if found is None or found[0] == found[1]:
        return scale.of(summary.mean)
    return f"{scale.of(summary.mean)} ({scale.told(found[0])} .. {scale.told(found[1])})"


def _change_sentence(base: VariantOutcome, variant: VariantOutcome, name: str) -> str:
    low, high = base.metrics.get(name), variant.metrics.get(name)
    change = (variant.change or {}).get(name)
    if low is None or high is None or change is None:
        lacking = "as it is" if low is None else _subject(variant)
        return f"{_capital(_subject(variant))}: no change of {name}, which no run has {lacking}."
    scale = _scale(low.unit, max(abs(low.mean), abs(high.mean)))
    share = _share(change, low)
    text = (
        f"{_capital(_subject(variant))} {name} is {scale.of(high.mean)} instead of"
        f" {scale.of(low.mean)}: {_with_unit(scale.by(change.mean), scale.unit)}"
        f"{f', {share}' if share else ''}{_spread(change, scale.by, 'the change')}."
    )
    if change.mean_interval is not None and name not in variant.named:
        text += " That is no more than chance can do."
    before, after = _recorded(base, name), _recorded(variant, name)
    if before:
        text += f" Recorded: {before}{f' before, {after} after' if after else ' before'}."
    return text


def _recorded(outcome: VariantOutcome, name: str) -> str:
    """Return what was recorded, "" if that is no value."""
    found = recorded_figures(outcome).get(name)
    return "" if found is None or found.value is None else found.text


def _share(change: Summary, base: Summary) -> str:
    """Return a change as a share of the base's mean, "" of nothing and where it would show as 0."""
    share = 100 * change.mean / base.mean if base.mean else 0.0
    return f"{share:+.0f} %" if abs(share) >= 0.5 else ""


def _spread(summary: Summary, told: Callable[[float], str], what: str) -> str:
    """Return the interval in words; why there is none, if the runs are too few."""
    found = summary.mean_interval
    if found is None:
        return f" ({replications_text(summary.runs)}: fewer than {RUNS_MIN} have no interval)"
    if found[0] == found[1]:
        return f" (the same in all {summary.runs} runs)"
    return f" ({INTERVAL} of {what}: {told(found[0])} .. {told(found[1])})"


def _scale(unit: str, size: float) -> Scale:
    """Return the largest unit of which there is one."""
    fitting = (one for one in _LARGER.get(unit, ()) if abs(size) >= one[0])
    return Scale(*next(fitting, (1.0, unit)))


def _with_unit(text: str, unit: str) -> str:
    return f"{text} {unit}".rstrip()


def _subject(outcome: VariantOutcome) -> str:
    return f'with "{outcome.title}"' if outcome.scenario.what_if else "as it is"


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"
