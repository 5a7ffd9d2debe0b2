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

Each kind of task is a file in kinds/, which says what its keys are. A task of kind predict has
`change`, settings that lie over the others; one of kind read or design may have it. With `cuts`,
such as ["7 s"], the figure is one of a power cut at that moment (`iotwin run --crash-at`).

A lab may be about several `servers`. Each gets by the seed a [fault.NAME] of its own (`resource`,
`settings`, `hint`) and a [decoy.NAME], which does no harm. A task of kind name asks for the
`resource` or the `cause` `of` a `server`'s fault. A design of a `server` is laid over that one.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from sim.lab.kinds import KINDS
from sim.lab.task import Fault, Lab, Task, text_of
from sim.registry import did_you_mean
from sim.toml.errors import ScenarioError, unknown
from sim.toml.layers import Layer, Table, read_table
from sim.toml.reading import Reading

HOME: Final = Path(__file__).resolve().parents[2] / "labs"


class UnknownLab(LookupError):
    """No lab has that name."""

    def __init__(self, name: str) -> None:
        known = tuple(lab_files())
        hint = did_you_mean(name, known)
        super().__init__(f"no lab '{name}'{hint} (known: {', '.join(known)})")


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
    texts = {key: text_of(reading, root, key, ()) for key in ("title", "question", "told")}
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
    leaf = table.leaf("kind")
    kind = None if leaf is None else KINDS.get(str(leaf.value))
    if kind is None:
        place, given = (table.place, "") if leaf is None else (leaf.at, str(leaf.value))
        reading.problems.append(
            unknown(place, "kind of task", given, KINDS, f" in [{'.'.join(path)}]")
        )
        return None
    own = ("kind", "question", "hint", *kind.lists, *kind.tables)
    [values] = reading.values(table, path, (kind,), others=own)
    found: dict[str, Any] = {
        key: text_of(reading, table, key, path) for key in ("question", "hint")
    }
    found |= {key: reading.texts(table, path, key) or () for key in kind.lists}
    found |= kind.read_tables(reading, table, path)
    return None if values is None else kind(**{"name": name, **values, **found})


def _fault(reading: Reading, name: str, table: Table, path: tuple[str, ...]) -> Fault | None:
    [values] = reading.values(table, path, (Fault,), others=("settings", "hint"))
    settings = reading.texts(table, path, "settings") or ()
    hint = text_of(reading, table, "hint", path) if path[0] == "fault" else ""
    return None if values is None else Fault(name=name, settings=settings, hint=hint, **values)
