"""What an answer rests on: whether a variant lies where its parameters were fitted.

Models: the question of a careful reader: is this inside what was looked at, or beyond it?
Linux counterpart: none.
Invariants: a value that a what-if or --set changes is either one with a prior, and then inside or
 outside of it, or one that nothing was fitted of. What the what-if makes follow from its own values
 is not listed.
Left out: how wrong an answer outside is; the twin cannot know that of itself.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sim.scenario import Layer, Parameter, Scenario
from sim.scenario.calibrate import DISTRIBUTIONS, PriorSpec
from sim.units import format_quantity

NOT_THERE = "-"


@dataclass(frozen=True)
class Change:
    """A value that the variant sets otherwise than the base; texts with their units."""

    path: str
    before: str
    after: str


@dataclass(frozen=True)
class Outside:
    """A value outside its prior; `bounds` says what low and high are."""

    path: str
    value: str
    low: str
    high: str
    bounds: str


@dataclass(frozen=True, kw_only=True)
class Validity:
    """What is known of one variant.

    `priors` is how many parameters have one, `unfitted` are changed values without one.
    """

    priors: int
    changes: tuple[Change, ...]
    outside: tuple[Outside, ...]
    unfitted: tuple[Change, ...]


def validity_of(base: Scenario, variant: Scenario) -> Validity:
    """Return what a variant's answer rests on, beside the base's."""
    plan = variant.plan
    priors = {one.path: one for one in plan.priors} if plan is not None else {}
    changes = tuple(_changes(base, variant))
    return Validity(
        priors=len(priors),
        changes=changes,
        outside=tuple(_outside(variant, priors)),
        unfitted=tuple(one for one in changes if one.path not in priors),
    )


def _changes(base: Scenario, variant: Scenario) -> Iterator[Change]:
    before = {one.path: one for one in base.parameters}
    for one in variant.parameters:
        old = before.get(one.path)
        if one.layer >= Layer.WHAT_IF and (old is None or old.value != one.value):
            yield Change(one.path, NOT_THERE if old is None else _text(old), _text(one))


def _outside(variant: Scenario, priors: Mapping[str, PriorSpec]) -> Iterator[Outside]:
    for one in variant.parameters:
        prior = priors.get(one.path)
        if prior is None or not isinstance(one.value, int | float):
            continue
        if not prior.low <= one.value <= prior.high:
            low, high = (format_quantity(limit, prior.dim) for limit in (prior.low, prior.high))
            yield Outside(one.path, _text(one), low, high, DISTRIBUTIONS[prior.distribution])


def _text(one: Parameter) -> str:
    return NOT_THERE if one.value is None else format_quantity(one.value, one.dim)
