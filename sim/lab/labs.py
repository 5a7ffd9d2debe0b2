"""What labs there are, and what the file of one says.

Models: the exercise as its author writes it: a scenario, what is drawn by seed, questions.
Linux counterpart: none.
Invariants: the same lab and seed give the same server and the same texts. A lab's file holds no
 answer: what is right is computed.
Left out: labs of one's own outside the package; a lab is added as one file in labs/.

    title = "Where does await come from?"
    scenario = "generic"
    minutes = 30
    question = "..."
    commands = ["iotwin run {base}"]
    settings = ["process.server.rate={rate}", "run.duration=40 s"]
    told = "..."                      # the misconception, told after the check

    [draw]
    rate = ["36 /s", "40 /s"]         # {rate} in every text is one of them, by the seed

    [task.await]
    kind = "read"
    question = "..."
    figure = "disk.sda.await_ms"
    hint = "..."
    mistake.service = { figure = "disk.sda.svctm_ms", hint = "..." }

A task of kind predict has `change`, settings that lie over the others; one of kind read may have
it. One of kind design has `goals`, such as "transaction_p95_ms < 60 ms", and `allow`, the paths
that may be set: each with a list of values, or with a range "LOW..HIGH".

A lab may be about several `servers`. Each gets by the seed a [fault.NAME] of its own (`resource`,
`settings`, `hint`) and a [decoy.NAME], which does no harm. A task of kind name asks for the
`resource` or the `cause` `of` a `server`'s fault. A design of a `server` is laid over that one; a
figure that is `as_healthy` is within a tenth of that of the server without any fault.

With `cuts`, such as ["7 s"], the figure is one of a power cut at that moment (`iotwin run
--crash-at`). A design has `cut_goals` as well, which hold at each of its cuts.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from sim.engine.rng import Streams
from sim.param import param
from sim.registry import did_you_mean
from sim.scenario import Scenario, open_scenario
from sim.study.trial import digest_of
from sim.toml.errors import Problem, ScenarioError
from sim.toml.layers import Layer, Leaf, Table, merge, read_assignment, read_table
from sim.toml.reading import Reading
from sim.units import parse_quantity

HOME: Final = Path(__file__).resolve().parents[2] / "labs"
READ: Final = "read"
PREDICT: Final = "predict"
DESIGN: Final = "design"
NAME: Final = "name"
RESOURCE: Final = "resource"
CAUSE: Final = "cause"
MODEL_DIGITS: Final = 12
_BLANK: Final = re.compile(r"\{([a-z_]+)\}")


class UnknownLab(LookupError):
    """No lab has that name."""

    def __init__(self, name: str) -> None:
        known = tuple(lab_files())
        hint = did_you_mean(name, known)
        super().__init__(f"no lab '{name}'{hint} (known: {', '.join(known)})")


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """A wrong way that leads to a number of its own: a figure of the base's run, times a factor."""

    figure: str = param(dim="text", source="scenario", doc="figure that is taken by mistake")
    factor: float = param(1.0, dim="number", source="scenario", doc="what it is multiplied by")
    hint: str


@dataclass(frozen=True, kw_only=True)
class Task:
    """One question of a lab, and how its answer is judged."""

    name: str
    kind: str = param(
        dim="text", source="scenario", choices=(READ, PREDICT, DESIGN, NAME), doc="kind of task"
    )
    points: int = param(1, dim="count", source="scenario", minimum=1, doc="marks for all of it")
    figure: str = param("", dim="text", source="scenario", doc="figure that is asked for")
    server: str = param("", dim="text", source="scenario", doc="server of several that it is about")
    of: str = param(
        "", dim="text", source="scenario", choices=("", RESOURCE, CAUSE), doc="what is named"
    )
    as_healthy: str = param(
        "", dim="text", source="scenario", doc="figure that is to be as without any fault"
    )
    most: int = param(
        0, dim="count", source="scenario", minimum=0, doc="values a design may set; 0: any number"
    )
    question: str
    hint: str
    change: tuple[str, ...] = ()
    goals: tuple[str, ...] = ()
    cuts: tuple[str, ...] = ()
    cut_goals: tuple[str, ...] = ()
    allow: Mapping[str, tuple[str, ...] | str]
    mistakes: tuple[Mistake, ...] = ()

    @property
    def cuts_ns(self) -> tuple[int, ...]:
        """The moments of a drawn task at which the power is cut."""
        return tuple(int(parse_quantity(text, "time_ns")) for text in self.cuts)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What may be wrong with a server; without a resource it is a decoy, which does no harm."""

    name: str
    resource: str = param("", dim="text", source="scenario", doc="resource that is short")
    settings: tuple[str, ...]
    hint: str


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

    def choices(self, task: Task) -> tuple[str, ...]:
        """Return the names among which a task asks for one."""
        if task.of == RESOURCE:
            return tuple(sorted({one.resource for one in self.faults.values()}))
        return tuple(sorted(self.faults))

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

        def fill_all(texts: Sequence[str]) -> tuple[str, ...]:
            return tuple(fill(text) for text in texts)

        tasks = tuple(
            replace(
                one,
                question=fill(one.question),
                hint=fill(one.hint),
                change=fill_all(one.change),
                goals=fill_all(one.goals),
                cuts=fill_all(one.cuts),
                cut_goals=fill_all(one.cut_goals),
                mistakes=tuple(replace(m, hint=fill(m.hint)) for m in one.mistakes),
            )
            for one in self.tasks
        )
        return replace(
            self,
            sick=self._faults_by(streams),
            question=fill(self.question),
            told=fill(self.told),
            commands=fill_all(self.commands),
            settings=fill_all(self.settings),
            tasks=tasks,
        )

    def model(self, seed: int) -> str:
        """Return what tells apart two models, or two versions of a drawn lab, of other figures.

        It is a hash of the model's sources, of the server, and of all that is asked but the words.
        """
        asked = [replace(one, question="", hint="", mistakes=()) for one in self.tasks]
        wrong = [fault.settings for two in self.sick.values() for fault in two]
        text = repr((digest_of(self.read(seed)), asked, wrong))
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


@cache
def lab_files() -> Mapping[str, Path]:
    """Return the labs that come along, by name; looked for once."""
    return MappingProxyType({path.stem: path for path in sorted(HOME.glob("*.toml"))})


@cache
def open_lab(name: str) -> Lab:
    """Return a lab by name; raise UnknownLab, or ScenarioError for a mistake in its file."""
    if name not in lab_files():
        raise UnknownLab(name)
    path = lab_files()[name]
    root = read_table(path.read_text(encoding="utf-8"), f"labs/{path.name}", Layer.SCENARIO)
    reading = Reading("")
    lists = ("commands", "settings", "servers")
    own = ("title", "question", "told", "draw", "task", "fault", "decoy", *lists)
    [values] = reading.values(root, (), (Lab,), others=own)
    draw = reading.table(root, (), "draw")
    tasks = [_task(reading, *one) for one in reading.named_tables(root, (), "task")]
    texts = {key: _text(reading, root, key, ()) for key in ("title", "question", "told")}
    commands, settings, servers = (reading.texts(root, (), key) or () for key in lists)
    faults, decoys = (
        [_fault(reading, *one) for one in reading.named_tables(root, (), kind)]
        for kind in ("fault", "decoy")
    )
    drawn = {key: reading.texts(draw, ("draw",), key) or () for key in draw.children}
    if values is None or None in (*tasks, *faults, *decoys) or reading.problems:
        raise ScenarioError(reading.problems)
    found = tuple(one for one in tasks if one is not None)
    return Lab(
        name=name,
        commands=commands,
        settings=settings,
        draw=drawn,
        tasks=found,
        servers=servers,
        faults={one.name: one for one in faults if one is not None},
        decoys={one.name: one for one in decoys if one is not None},
        **(values | texts),
    )


def _task(reading: Reading, name: str, table: Table, path: tuple[str, ...]) -> Task | None:
    lists = ("change", "goals", "cuts", "cut_goals")
    own = ("question", "hint", "allow", "mistake", *lists)
    [values] = reading.values(table, path, (Task,), others=own)
    mistakes = [_mistake(reading, *one) for one in reading.named_tables(table, path, "mistake")]
    allowed = reading.table(table, path, "allow")
    allow: dict[str, tuple[str, ...] | str] = {}
    for key, child in allowed.children.items():
        is_range = isinstance(child, Leaf) and isinstance(child.value, str)
        known = reading.texts(allowed, (*path, "allow"), key) or ()
        allow[key] = known[0] if is_range else known
    texts = {key: _text(reading, table, key, path) for key in ("question", "hint")}
    several = {key: reading.texts(table, path, key) or () for key in lists}
    if values is None or None in mistakes:
        return None
    return Task(
        name=name,
        allow=allow,
        mistakes=tuple(one for one in mistakes if one is not None),
        **(values | texts | several),
    )


def _fault(reading: Reading, name: str, table: Table, path: tuple[str, ...]) -> Fault | None:
    [values] = reading.values(table, path, (Fault,), others=("settings", "hint"))
    settings = reading.texts(table, path, "settings") or ()
    hint = _text(reading, table, "hint", path) if path[0] == "fault" else ""
    return None if values is None else Fault(name=name, settings=settings, hint=hint, **values)


def _mistake(reading: Reading, _name: str, table: Table, path: tuple[str, ...]) -> Mistake | None:
    [values] = reading.values(table, path, (Mistake,), others=("hint",))
    hint = _text(reading, table, "hint", path)
    return None if values is None else Mistake(hint=hint, **values)


def _text(reading: Reading, table: Table, name: str, path: Sequence[str]) -> str:
    """Return a text of one or several lines, which must be there."""
    leaf = table.leaf(name)
    value: Any = None if leaf is None else leaf.value
    if not isinstance(value, str) or not value.strip():
        place = table.place if leaf is None else leaf.at
        reading.problems.append(Problem(place, f"{'.'.join((*path, name))} must be a text"))
        return ""
    return value.strip()
