"""Name: which resource of a server is short, or what is wrong with it, in one of the listed words.

Models: a diagnosis.
Linux counterpart: none.
Invariants: right is what the seed drew, so nothing is run. A wrong cause in the right resource is
 told what would be seen were it so, and never what is right.
Left out: two faults at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from sim.lab.task import FAIL, OK, Bench, Lab, Mark, Plan, Task, comment
from sim.param import param
from sim.toml.errors import Problem, ScenarioError, unknown
from sim.toml.layers import Leaf, Table
from sim.units import given_text

RESOURCE: Final = "resource"
CAUSE: Final = "cause"


@dataclass(frozen=True, kw_only=True)
class Name(Task):
    """A word for what is wrong with one of several servers."""

    kind = "name"

    server: str = param(dim="text", source="scenario", doc="server of several that it is about")
    of: str = param(dim="text", source="scenario", choices=(RESOURCE, CAUSE), doc="what is named")

    def choices(self, lab: Lab) -> tuple[str, ...]:
        """Return the words among which it asks for one."""
        if self.of == RESOURCE:
            return tuple(sorted({one.resource for one in lab.faults.values()}))
        return tuple(sorted(lab.faults))

    def lines(self, lab: Lab) -> Iterator[str]:
        """Yield the question, the words, and a blank for one of them."""
        yield from self.asked()
        yield from comment(f"One of: {', '.join(self.choices(lab))}")
        yield f'{self.name} = ""'

    def wrong(self, child: Leaf | Table) -> list[Problem]:
        """Refuse what is no word."""
        if isinstance(child, Leaf) and isinstance(child.value, str):
            return []
        given = given_text(child.value) if isinstance(child, Leaf) else "a table"
        place = child.at if isinstance(child, Leaf) else child.place
        return [Problem(place, f"{self.name}: one of the words that the sheet lists", given)]

    def plan(self, child: Leaf | Table | None, bench: Bench) -> Plan:
        """Return that nothing is run."""
        given = None
        if isinstance(child, Leaf):
            given, known = str(child.value).strip(), self.choices(bench.lab)
            if given not in known:
                where = f" for {self.name}"
                raise ScenarioError([unknown(child.at, self.of, given, known, where)])
        return Plan(trials=(), judge=partial(self._judged, given, bench.lab))

    def _judged(self, given: str | None, lab: Lab, _outcomes: object) -> Mark:
        """Judge a word; a wrong cause is told whether its resource is the right one at least."""
        fault, _decoy = lab.sick[self.server]
        right = fault.resource if self.of == RESOURCE else fault.name
        if given is None:
            return self.mark(FAIL, 0, self.blank, right)
        if given == right:
            return self.mark(OK, self.points, "", right)
        if self.of == RESOURCE:
            return self.mark(FAIL, 0, self.hint, right)
        if lab.faults[given].resource == fault.resource:
            told = f"the resource is right. Were it {given}: {lab.faults[given].hint}"
        else:
            told = f"another resource is short. {self.hint}"
        return self.mark(FAIL, 0, told, right)
