"""The table of withheld figures: which simulations answer for which figure.

Models: calibration/predictions/withheld.toml:

    seed = 11
    [ensemble.NAME]          simulations that differ by parameters and chance
    scenario, what_if        as for `iotwin run`
    fit                      a fit that comes along, SCENARIO.AGAINST; left away: members drawn from
                             the priors of the scenario's [calibrate]
    members                  how many
    set                      further values, as --set has them
    same."PATH" = "PATH"     a parameter that takes the value which the member has for another
    [figure.NAME]
    unit, metric             the metric of the scenario times `factor` (1) is in this unit
    of.ENSEMBLE = weight     what is believed of each mechanism
    odds                     why these weights, if there are several ensembles
    gain_over.ENSEMBLE = "ENSEMBLE"   the figure is what the second has more, member by member
    within, because          the truth is within this factor of the twin, 9 times out of 10, and why
    why                      the mechanism in a line
    outcome                  what was recorded, once it is known: shown beside, used for nothing

Linux counterpart: none.
Invariants: a figure's ensembles are there, weights and factors are positive; the order is the
file's.
Left out: bounds of agreement: the interval is the claim.
"""

import math
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from calibration.drive.bad_input import BadInput
from sim.registry import did_you_mean

PREDICTIONS: Final = Path(__file__).parents[1] / "predictions"
TABLE: Final = PREDICTIONS / "withheld.toml"


@dataclass(frozen=True, kw_only=True)
class Ensemble:
    """Simulations of one variant."""

    name: str
    scenario: str
    what_if: str | None
    fit: str | None
    members: int
    sets: tuple[str, ...]
    same: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Question:
    """One withheld figure; `of` has the weight of each ensemble by name."""

    figure: str
    unit: str
    metric: str
    factor: float
    of: Mapping[str, float]
    gain_over: Mapping[str, str]
    within: float
    because: str
    why: str
    odds: str
    outcome: float | None


@dataclass(frozen=True, kw_only=True)
class Questions:
    """The whole table."""

    seed: int
    ensembles: Mapping[str, Ensemble]
    figures: Mapping[str, Question]


class Section:
    """One table of the file, whose keys are asked for by type; what is left over is a mistake."""

    def __init__(self, file: str, where: str, values: Mapping[str, Any]) -> None:
        self._place = f"{file}: [{where}]"
        self._values = dict(values)
        self._known: list[str] = []

    def take(self, key: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
        """Return a value; BadInput if it is of another type, or missing without a default."""
        self._known.append(key)
        if key not in self._values:
            if default is None:
                raise BadInput(self._place, f"lacks '{key}'")
            return default
        value = self._values.pop(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            names = [one.__name__ for one in (kind if isinstance(kind, tuple) else (kind,))]
            raise BadInput(self._place, f"'{key}'", given=value, allowed=" or ".join(names))
        return value

    def positive(self, key: str, default: float | None = None, least: float = 0.0) -> float:
        """Return a number above 0 and not below `least`."""
        return self.above(key, self.take(key, (int, float), default), least)

    def number(self, key: str) -> float | None:
        """Return a number, None if there is none."""
        value = self.take(key, (int, float), math.nan)
        return None if math.isnan(value) else float(value)

    def above(self, key: str, value: object, least: float = 0.0) -> float:
        """Return a number, checked."""
        if not isinstance(value, (int, float)) or value <= 0 or value < least:
            allowed = f"{least:g} or more" if least else "a number above 0"
            raise BadInput(self._place, f"'{key}'", given=value, allowed=allowed)
        return float(value)

    def wrong(self, key: str, name: str, known: Collection[str]) -> BadInput:
        """Return the error for a name that is not known."""
        hint = did_you_mean(name, known)
        return BadInput(self._place, f"'{key}': no '{name}'{hint}", allowed=", ".join(known))

    def finish(self) -> None:
        """Refuse what was not asked for."""
        for key in self._values:
            raise self.wrong("key", key, self._known)


def read_questions(path: Path = TABLE) -> Questions:
    """Return the table of a file; raise BadInput."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(str(path), f"cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise BadInput(str(path), f"not TOML: {error}") from None
    top = Section(path.name, "top", content)
    seed = int(top.take("seed", int))
    ensembles = {
        name: _ensemble(name, Section(path.name, f"ensemble.{name}", values))
        for name, values in top.take("ensemble", dict).items()
    }
    figures = {
        name: _question(name, Section(path.name, f'figure."{name}"', values), ensembles)
        for name, values in top.take("figure", dict).items()
    }
    top.finish()
    return Questions(seed=seed, ensembles=ensembles, figures=figures)


def _ensemble(name: str, section: Section) -> Ensemble:
    found = Ensemble(
        name=name,
        scenario=section.take("scenario", str),
        what_if=section.take("what_if", str, "") or None,
        fit=section.take("fit", str, "") or None,
        members=int(section.positive("members", least=2)),
        sets=tuple(section.take("set", list, [])),
        same=section.take("same", dict, {}),
    )
    section.finish()
    return found


def _question(name: str, section: Section, ensembles: Mapping[str, Ensemble]) -> Question:
    of = section.take("of", dict)
    for key, weight in of.items():
        if key not in ensembles:
            raise section.wrong("of", key, tuple(ensembles))
        section.above(f"of.{key}", weight)
    found = Question(
        figure=name,
        unit=section.take("unit", str),
        metric=section.take("metric", str),
        factor=section.positive("factor", 1.0),
        of=of,
        gain_over=_gain_over(section, of, ensembles),
        within=section.positive("within", least=1.0),
        because=section.take("because", str),
        why=section.take("why", str),
        odds=section.take("odds", str, "" if len(of) == 1 else None),
        outcome=section.number("outcome"),
    )
    section.finish()
    return found


def _gain_over(
    section: Section, of: Mapping[str, float], ensembles: Mapping[str, Ensemble]
) -> dict[str, str]:
    """Return the ensemble that each ensemble's members are set against, by name."""
    found: dict[str, str] = section.take("gain_over", dict, {})
    for name, other in found.items():
        if name not in of:
            raise section.wrong("gain_over", name, tuple(of))
        if other not in ensembles:
            raise section.wrong("gain_over", str(other), tuple(ensembles))
    return found


def chosen(questions: Questions, names: Collection[str]) -> tuple[Question, ...]:
    """Return the figures named, all if none is, in the table's order; BadInput for others."""
    for name in names:
        if name not in questions.figures:
            hint = did_you_mean(name, questions.figures)
            known = ", ".join(questions.figures)
            raise BadInput("--only", f"no figure '{name}'{hint}", allowed=known)
    return tuple(one for name, one in questions.figures.items() if not names or name in names)
