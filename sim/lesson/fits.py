"""Fits for lessons: the sets of parameters that agree with a recording.

Models: a student who gets the outcome of a calibration, and asks what it leaves open.
Linux counterpart: none.
Invariants: a member's values are texts with units, as run(set=...) takes them.
Left out: making a fit, which takes minutes: `iotwin calibrate` does.
"""

from sim.lesson.runs import alike
from sim.registry import did_you_mean
from sim.scenario.cases import shipped_fit, shipped_fits
from sim.scenario.fitted import read_fit


class UnknownFitError(ValueError):
    """No such fit comes along; the message names the nearest and all that there are."""


class Member(dict[str, str]):
    """One set of parameters, by path: run(scenario, set=member) simulates it."""

    def number(self, path: str, unit: str) -> float:
        """Return a value in a unit such as "s"; raise ValueError if it measures something else."""
        found = alike(self[path], f"1 {unit}")
        if found is None:
            raise ValueError(f"{path} = {self[path]} is not measured in {unit!r}")
        value, one = found
        return value / one


def ensemble(name: str) -> list[Member]:
    """Return the members of a fit that comes along, such as "sendmail.before"."""
    known = [path.stem for path in shipped_fits()]
    if name not in known:
        hint = did_you_mean(name, known)
        raise UnknownFitError(f"no fit {name!r}{hint} (known: {', '.join(known)})")
    fit = read_fit(shipped_fit(name))
    return [Member(fit.member(number)) for number in range(len(fit.members))]
