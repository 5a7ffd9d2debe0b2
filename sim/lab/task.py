"""A lab, and what its tasks have in common; each kind of task is a class of its own (kinds/).

Models: an exercise and its questions.
Linux counterpart: none.
Invariants: the same lab and seed give the same server and the same texts. A kind of task says in
 its own file all that is of it: its keys in a lab's file, its blank on the sheet, what may stand
 there, what is run for it, and what is right. What has a blank under [answer] can be asked
 anywhere; a table of its own needs the student's file.
Left out: reading a lab's file (`labs`).
"""

import hashlib
import re
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Self

from sim.engine.rng import Streams
from sim.param import param
from sim.scenario import Scenario, open_scenario
from sim.study.outcome import Replication
from sim.study.trial import Trial, digest_of
from sim.toml.errors import Problem
from sim.toml.layers import Leaf, Table, merge, read_assignment
from sim.toml.reading import Reading

ANSWER: Final = "answer"  # the table of a sheet that has one line for a task
OK: Final = "OK"
FAIL: Final = "FAIL"
OPEN: Final = "--"
WIDTH: Final = 96
MODEL_DIGITS: Final = 12
_BLANK: Final = re.compile(r"\{([a-z_]+)\}")

Fill = Callable[[str], str]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What may be wrong with a server; without a resource it is a decoy, which does no harm."""

    name: str
    resource: str = param("", dim="text", source="scenario", doc="resource that is short")
    settings: tuple[str, ...]
    hint: str


@dataclass(frozen=True, kw_only=True)
class Mark:
    """The mark of one task; `told` says why, `answer` what is right."""

    task: "Task"
    status: str
    points: float
    told: str = ""
    answer: str = ""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is run for a task, and how its outcomes, in that order, become a mark.

    `failed` makes the mark of an error in which a run ends; without it such an error is no
    student's doing, and is raised.
    """

    trials: Sequence[Trial]
    judge: Callable[[Sequence[Replication]], Mark]
    failed: Callable[[Exception], Mark] | None = None


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What a marker works with: a drawn lab, its server, and the seeds of designs.

    `shows`: what is right is wanted for blanks, too.
    """

    lab: "Lab"
    seed: int
    base: Scenario
    design_seeds: Sequence[int]
    shows: bool


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """One question of a lab. Texts that change no figure are not in its repr()."""

    kind: ClassVar[str]
    section: ClassVar[str] = ANSWER  # table of the sheet that has its blank
    blank: ClassVar[str] = "a blank"  # what is told of one that is not filled in
    is_kept: ClassVar[bool] = False  # whether what was typed counts from when answers are shown
    lists: ClassVar[tuple[str, ...]] = ()  # its keys that are lists of texts
    tables: ClassVar[tuple[str, ...]] = ()  # its keys that are tables, read by read_tables()

    name: str
    points: int = param(1, dim="count", source="scenario", minimum=1, doc="marks for all of it")
    question: str = field(repr=False)
    hint: str = field(repr=False)

    @classmethod
    def read_tables(
        cls, _reading: Reading, _table: Table, _path: tuple[str, ...]
    ) -> dict[str, object]:
        """Return what the tables of a task say, by field; problems go to the reading."""
        return {}

    def filled(self, fill: Fill) -> Self:
        """Return the task with its texts filled in."""
        texts: dict[str, Any] = {key: tuple(map(fill, getattr(self, key))) for key in self.lists}
        return replace(self, question=fill(self.question), hint=fill(self.hint), **texts)

    @abstractmethod
    def lines(self, lab: "Lab") -> Iterator[str]:
        """Yield its lines of a sheet: the question, and the blank."""

    @abstractmethod
    def wrong(self, child: Leaf | Table) -> list[Problem]:
        """Return what is wrong with what stands in its blank, as far as its form tells."""

    @abstractmethod
    def plan(self, child: Leaf | Table | None, bench: Bench) -> Plan | None:
        """Return what is run for what was handed in; None if nothing needs to be.

        Raise ScenarioError if it cannot be read, before anything is run.
        """

    def asked(self) -> Iterator[str]:
        """Yield the lines of its question."""
        points = f"{self.points} {'point' if self.points == 1 else 'points'}"
        yield from comment(f"{self.kind.capitalize()}, {points}: {self.question}")

    def mark(self, status: str, points: float, told: str = "", answer: str = "") -> Mark:
        """Return a mark of this task."""
        return Mark(task=self, status=status, points=points, told=told, answer=answer)


@dataclass(frozen=True, kw_only=True)
class Lab:
    """A lab; drawn() puts the values of a seed into its texts."""

    name: str
    scenario: str = param(dim="text", source="scenario", doc="scenario that the lab is about")
    minutes: int = param(dim="count", source="scenario", minimum=5, doc="minutes that it takes")
    title: str
    question: str
    told: str
    commands: tuple[str, ...]
    settings: tuple[str, ...]
    draw: Mapping[str, tuple[str, ...]]
    tasks: tuple[Task, ...]
    servers: tuple[str, ...]
    faults: Mapping[str, Fault]
    decoys: Mapping[str, Fault]
    sick: Mapping[str, tuple[Fault, Fault]] = field(default_factory=dict)  # of a drawn lab

    def task(self, name: str) -> Task:
        """Return a task by name."""
        return next(one for one in self.tasks if one.name == name)

    def drawn(self, seed: int) -> "Lab":
        """Return the lab with what its seed has drawn in the place of each {name}."""
        streams = Streams(seed)
        values = {
            name: streams.stream(f"lab.{self.name}.{name}").choice(known)
            for name, known in self.draw.items()
        }

        def fill(text: str) -> str:
            return _BLANK.sub(lambda found: values.get(found[1], found[0]), text)

        return replace(
            self,
            sick=self._faults_by(streams),
            question=fill(self.question),
            told=fill(self.told),
            commands=tuple(map(fill, self.commands)),
            settings=tuple(map(fill, self.settings)),
            tasks=tuple(one.filled(fill) for one in self.tasks),
        )

    def model(self, seed: int) -> str:
        """Return what tells apart two models, or two versions of a drawn lab, of other figures.

        It is a hash of the model's sources, of the server, and of all that is asked but the words.
        """
        wrong = [fault.settings for two in self.sick.values() for fault in two]
        text = repr((digest_of(self.read(seed)), self.tasks, wrong))
        return hashlib.sha256(text.encode()).hexdigest()[:MODEL_DIGITS]

    def _faults_by(self, streams: Streams) -> dict[str, tuple[Fault, Fault]]:
        """Return what is wrong with each server, and what only seems to be."""
        chance = streams.stream(f"lab.{self.name}.faults")
        faults, decoys = (list(one.values()) for one in (self.faults, self.decoys))
        number = len(self.servers)
        drawn = zip(chance.sample(faults, number), chance.sample(decoys, number), strict=True)
        return dict(zip(self.servers, drawn, strict=True))

    def read(
        self,
        seed: int,
        change: Sequence[str] = (),
        design: Table | None = None,
        server: str = "",
    ) -> Scenario:
        """Return a server of a drawn lab, with a change or a design laid over it.

        Without a name it is the healthy one, of labs about one server the only one. Raise
        ScenarioError for a design that no server can be.
        """
        wrong = [text for one in self.sick.get(server, ()) for text in one.settings]
        layer: Table | None = None
        for one in (*map(read_assignment, (*self.settings, *wrong, *change)), design):
            if one is not None:
                layer = one if layer is None else merge(layer, one)
        return open_scenario(self.scenario).read(seed=seed, fit=layer)


def comment(text: str) -> Iterator[str]:
    """Yield a text as the comment lines of a sheet."""
    wrapped = textwrap.wrap(" ".join(text.split()), WIDTH - 2, break_on_hyphens=False)
    yield from (f"# {line}" for line in wrapped)


def text_of(reading: Reading, table: Table, name: str, path: Sequence[str]) -> str:
    """Return a text of one or several lines of a lab's file, which must be there."""
    leaf = table.leaf(name)
    value = None if leaf is None else leaf.value
    if not isinstance(value, str) or not value.strip():
        place = table.place if leaf is None else leaf.at
        reading.problems.append(Problem(place, f"{'.'.join((*path, name))} must be a text"))
        return ""
    return value.strip()
