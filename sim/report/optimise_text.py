"""A choice between priced options as a table, in sentences, and as JSON.

Models: the answer to "what must be bought?".
Linux counterpart: none.
Invariants: a row for each combination that was run, the cheapest first. A choice is called the
 cheapest only where all cheaper ones are shown to miss a level.
Left out: the figures of each combination: the JSON has them.
"""

from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import Any, Final

from sim.report.levels_table import missed_text
from sim.report.study_tables import WIDTH, unsteady
from sim.report.tables import Column, Table
from sim.study.levels import MISSED, UNDECIDED, Judged
from sim.study.optimise import Combination, Optimum

NOTHING: Final = "no option"
_NAMES_MAX: Final = 5  # combinations that a sentence names
COLUMNS: Final = (
    Column("options"),
    Column("price", is_number=True),
    Column("levels"),
    Column("runs", is_number=True),
    Column("because of"),
)


def options_text(one: Combination) -> str:
    """Return the options of a combination."""
    return one.name or NOTHING


def price_text(price: float, unit: str) -> str:
    """Return a sum of money."""
    text = f"{price:,.0f}" if price == int(price) else f"{price:,.2f}"
    return f"{text} {unit}".rstrip()


def optimise_table(found: Optimum) -> Table:
    """Return a row for each combination that was run."""
    rows = []
    for number, measured in found.measured.items():
        one = found.combinations[number]
        tried = found.search.tried[number]
        deciding = [judged for judged in measured.levels if _decides(judged, tried.verdict)]
        rows.append(
            (
                options_text(one),
                price_text(one.price, found.unit),
                tried.verdict,
                str(len(measured.replications)),
                ", ".join(map(missed_text, deciding)),
            )
        )
    return Table(COLUMNS, tuple(rows))


def _decides(judged: Judged, verdict: str) -> bool:
    """Return whether a level is why a combination is missed or undecided."""
    return judged.is_missed if verdict == MISSED else judged.verdict == UNDECIDED


def sentences(found: Optimum) -> str:
    """Return the answer, how sure it is, the next one, and what it took."""
    lines = [*_answer(found), *_spent(found)]
    for number, measured in found.measured.items():
        lines += unsteady(options_text(found.combinations[number]), measured.replications)
    return "".join(fill(line, WIDTH, subsequent_indent="  ") + "\n" for line in lines)


def _answer(found: Optimum) -> Iterator[str]:
    search, chosen = found.search, found.chosen
    often = f"right in at least {100 * search.correct:g} of 100 such studies"
    if search.verdict == MISSED:
        yield f"no combination meets all levels: {often}"
    elif search.verdict == UNDECIDED:
        yield from _undecided(found)
    elif chosen is not None:
        what = f"the cheapest that meets all levels: {_priced(found, chosen)}"
        if not chosen.options:
            what = "nothing has to be bought: all levels are met without any option"
        yield f"{what} ({often})"
        yield from _next(found)


def _undecided(found: Optimum) -> Iterator[str]:
    tried = [found.combinations[number] for number in found.search.undecided_tried]
    untried = len(found.search.undecided) - len(tried)
    why = "the budget is spent" if found.unfinished is None else "the study did not end"
    if found.chosen is not None:
        yield f"shown to meet all levels: {_priced(found, found.chosen)}"
        yield f"undecided, and cheaper: {_listed(found, tried)} ({why})"
        return
    yield f"undecided: no combination is shown to meet all levels ({why})"
    if tried:
        yield f"undecided after their runs: {_listed(found, tried)}"
    if untried:
        yield f"not tried: {untried:,} dearer combinations"


def _next(found: Optimum) -> Iterator[str]:
    """Tell the next one; whoever needs nothing needs no alternative."""
    if found.chosen is None or not found.chosen.options:
        return
    left_out = "left out: those that are this one and more"
    if found.next is not None:
        yield f"the next dearer one that also meets: {_priced(found, found.next)} ({left_out})"
    else:
        why = ": the budget is spent" if found.search.is_out_of_budget else ""
        yield f"no dearer one is shown to meet as well{why} ({left_out})"


def _priced(found: Optimum, one: Combination) -> str:
    return f"{options_text(one)}, {price_text(one.price, found.unit)}"


def _listed(found: Optimum, those: Sequence[Combination]) -> str:
    names = "; ".join(_priced(found, one) for one in those[:_NAMES_MAX])
    more = len(those) - _NAMES_MAX
    return f"{names}; and {more:,} more" if more > 0 else names


def _spent(found: Optimum) -> Iterator[str]:
    tried, all_ = len(found.search.tried), len(found.combinations)
    yield (
        f"{found.search.spent} of at most {found.search.budget} runs were spent on {tried} of"
        f" {all_:,} combinations; all have the same seeds"
    )


def optimise_result(found: Optimum) -> dict[str, Any]:
    """Return the result in the JSON."""
    search = found.search
    return {
        "verdict": search.verdict,
        "chosen": _json(found.chosen),
        "probability": None if search.verdict == UNDECIDED else search.correct,
        "next": _json(found.next),
        "undecided": [_json(found.combinations[number]) for number in search.undecided_tried],
        "unit": found.unit or None,
        "combinations": len(found.combinations),
        "tried": [
            {
                **_options(found.combinations[number]),
                "verdict": one.verdict,
                "runs": one.runs,
            }
            for number, one in sorted(search.tried.items())
        ],
        "runs": search.spent,
        "budget": search.budget,
    }


def _json(one: Combination | None) -> dict[str, Any] | None:
    return None if one is None else _options(one)


def _options(one: Combination) -> dict[str, Any]:
    return {"options": list(one.options), "price": one.price}
